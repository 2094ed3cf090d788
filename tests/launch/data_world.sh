# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Made-up data sets and mirrors for tests of launch/get-data. To be sourced after harness.sh.
skip_without curl flock gzip md5sum
# shellcheck disable=SC2154  # harness.sh sets it
get_data=$repo/launch/get-data
names=(train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte)

# A set "tiny" in truth/, a mirror of it in good/tiny/, and the table of sets. No mirror but those a test names.
make_world() {
  local name
  mkdir -p truth good/tiny
  : >sets.txt
  for name in "${names[@]}"; do
    head -c $((20000 + RANDOM)) /dev/urandom >"truth/$name"
    gzip -c "truth/$name" >"good/tiny/$name.gz"
    echo "file tiny $name $(stat -c %s "truth/$name") md5:$(md5sum <"truth/$name" | cut -d ' ' -f 1)" >>sets.txt
  done
  export LOCKSTEP_DATA_SETS=$PWD/sets.txt LOCKSTEP_NO_INSTALL=1
  unset LOCKSTEP_DATA LOCKSTEP_MIRRORS LOCKSTEP_MIRRORS_ONLY XDG_CACHE_HOME
}

mirrors() {
  local name list=
  for name in "$@"; do list+="file://$PWD/$name "; done
  export LOCKSTEP_MIRRORS=$list
}

# damage FILE BYTE: that byte is another then, whichever it was.
damage() {
  local is
  is=$(od -An -tu1 -j "$2" -N 1 "$1")
  printf '%b' "\\x$(printf %x $((255 - is)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

expect_complete_in() {
  local name
  for name in "${names[@]}"; do expect_same_file "$1/$name" "truth/$name"; done
  expect_no_file "$1/.partial"
}

# expect_had [TEXT]: the set is fetched into the cache, and that is said.
expect_had() {
  expect_says 0 "${1:-complete and verified in $HOME/.cache/lockstep/tiny}" timeout 60 "$get_data" tiny
  expect_complete_in .cache/lockstep/tiny
}

# A set "boxed" that its mirrors have as one archive, with a file in it that is none of the set's.
make_archive() {
  mkdir -p box/inner good/boxed
  head -c 5000 /dev/urandom >box/inner/one.bin && head -c 700 /dev/urandom >box/inner/test.bin
  echo cat >box/inner/names.txt && echo evil >box/inner/extra && echo evil >box/escaped
  tar -czf good/boxed/boxed.tar.gz -C box -P inner/one.bin inner/test.bin inner/names.txt inner/extra inner/../escaped
  {
    echo "archive boxed boxed.tar.gz $(stat -c %s good/boxed/boxed.tar.gz) md5:$(md5sum <good/boxed/boxed.tar.gz | cut -d ' ' -f 1)"
    echo "folder boxed inner" && echo "names boxed names.txt"
    echo "file boxed one.bin 5000 -" && echo "file boxed test.bin 700 -"
  } >>sets.txt
}
