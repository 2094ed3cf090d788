#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/get-data, against mirrors that are folders: no network, a few kilobytes.
# shellcheck disable=SC2016  # no word is carried out
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
skip_without curl flock gzip md5sum
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

Get_data_puts_the_uncompressed_files_into_the_cache_and_asks_no_mirror_again() {
  make_world && mirrors good
  expect_had
  mirrors nowhere
  expect_says 0 "complete and verified in $HOME/.cache/lockstep/tiny" "$get_data" tiny
}

Get_data_respects_root_and_xdg_cache_home() {
  make_world && mirrors good
  expect_exit 0 "$get_data" tiny --root "$PWD/my data"
  expect_complete_in "my data/tiny"
  XDG_CACHE_HOME=$PWD/xdg expect_exit 0 "$get_data" tiny
  expect_complete_in xdg/lockstep/tiny
}

Get_data_takes_plain_files_where_a_mirror_has_no_compressed_ones() {
  make_world && mkdir plain && cp -r truth plain/tiny && mirrors plain
  expect_had
}

Get_data_executes_nothing_that_its_table_or_a_mirror_says() {
  local line
  make_world && mirrors good
  for line in 'file tiny x a[$(touch${IFS}executed)0] md5:0' 'file tiny ../../../x 10 md5:0' 'file tiny -rf 10 md5:0' 'archive tiny x 1e3 md5:0' 'file ../t x 10 md5:0'; do
    cp sets.txt other.txt && echo "$line" >>other.txt
    LOCKSTEP_DATA_SETS=$PWD/other.txt expect_exit 65 "$get_data" "$(cut -d ' ' -f 2 <<<"$line")" --root data
  done
  for line in -K/tmp/curlrc --output=x ftp://x/y 'data'; do
    LOCKSTEP_MIRRORS=$line expect_says 2 "the mirror '$line' begins with neither" "$get_data" tiny
  done
  expect_no_file executed
  expect_no_file data
}

Get_data_writes_through_no_link() {
  local cache=.cache/lockstep/tiny
  make_world && mirrors good
  mkdir -p "$cache" victim && echo mine >victim/file
  ln -s "$PWD/victim/file" "$cache/.lock"
  expect_says 74 ".lock is not a file of ours" "$get_data" tiny
  rm "$cache/.lock" && ln -s "$PWD/victim" "$cache/.partial"
  expect_says 74 ".partial is a symbolic link" "$get_data" tiny
  rm "$cache/.partial" && mkdir "$cache/.partial"
  ln -s "$PWD/victim/file" "$cache/.partial/${names[0]}.gz"
  ln -s "$PWD/victim/file" "$cache/.partial/${names[0]}.unpacked"
  ln "$PWD/victim/file" "$cache/.partial/${names[1]}.gz"
  expect_exit 0 "$get_data" tiny
  expect_equal "$(cat victim/file)" mine
  expect_complete_in "$cache"
}

Get_data_leaves_what_is_not_its_own() {
  make_world && mirrors good
  mkdir -p .cache/lockstep/tiny/.partial/folder && echo mine >.cache/lockstep/tiny/.partial/notes
  expect_exit 0 "$get_data" tiny
  expect_equal "$(cat .cache/lockstep/tiny/.partial/notes)" mine
}

Get_data_leaves_a_set_in_lockstep_data_where_it_is() {
  make_world && mirrors nowhere
  LOCKSTEP_DATA=$PWD/good expect_exit 0 "$get_data" tiny
  LOCKSTEP_DATA=$PWD/truth expect_exit 0 "$get_data" tiny
  expect_no_file .cache
}

Get_data_does_not_believe_lockstep_data_with_other_bytes() {
  make_world && mirrors good && cp -r good other
  gzip -c sets.txt >"other/tiny/${names[1]}.gz"
  LOCKSTEP_DATA=$PWD/other expect_exit 0 "$get_data" tiny
  expect_complete_in .cache/lockstep/tiny
}

Get_data_turns_to_the_next_mirror_when_one_has_damaged_files() {
  make_world && cp -r good bad && mirrors bad good
  damage "bad/tiny/${names[0]}.gz" 5000
  head -c 3000 "good/tiny/${names[1]}.gz" >"bad/tiny/${names[1]}.gz"
  rm "bad/tiny/${names[2]}.gz"
  gzip -c sets.txt >"bad/tiny/${names[3]}.gz"
  expect_says 0 "${names[1]}.gz is no whole gzip file" "$get_data" tiny
  expect_contains "$output" "${names[3]} has $(stat -c %s sets.txt) bytes instead of $(stat -c %s "truth/${names[3]}")"
  expect_complete_in .cache/lockstep/tiny
}

Get_data_asks_a_mirror_that_cannot_be_reached_for_one_file_alone() {
  make_world
  LOCKSTEP_MIRRORS=http://127.0.0.1:1 expect_exit 66 "$get_data" tiny
  expect_equal "$(grep -c '^    http://127.0.0.1:1/tiny: ' <<<"$output")" 1
}

# expect_asked CODE TIMES: curl ends with this code, and so many files are asked for.
expect_asked() {
  CODE=$1 expect_exit 66 "$get_data" tiny
  expect_equal "$1: $(grep -c "^    file://$PWD/good/tiny: " <<<"$output")" "$1: $2"
}

Get_data_knows_by_curls_exit_code_that_a_mirror_cannot_be_reached() {
  local code
  make_world && mirrors good
  stand_in curl 'echo "$*" >asked; exit "$CODE"'
  for code in 5 6 7 18 28 35 52 55 56; do expect_asked "$code" 1; done
  for code in 22 37; do expect_asked "$code" 4; done
  expect_contains "$(cat asked)" " -C - --connect-timeout 5 --speed-limit 1000 --speed-time 15 -o "
}

Get_data_waits_half_an_hour_for_another_that_fetches() {
  make_world && mirrors good
  stand_in flock 'echo "$*" >>asked; exit 1'
  expect_says 74 "tiny: another process is fetching it into $HOME/.cache/lockstep/tiny; waiting" "$get_data" tiny
  expect_contains "$output" "waited half an hour for the lock of $HOME/.cache/lockstep/tiny"
  expect_equal "$(cat asked)" $'-n 9\n-w 1800 9'
}

Get_data_says_that_there_is_no_curl() {
  make_world && mirrors good
  mkdir tools && ln -sf /bin/* /usr/bin/* tools/ && rm tools/curl
  PATH=$PWD/tools expect_says 69 "curl is not installed: run launch/install-dependencies first" "$get_data" tiny
}

Get_data_takes_the_folder_of_a_package_where_it_is_installed() {
  make_world && mirrors nowhere
  cp sets.txt without.txt && echo "package tiny some-package $PWD/good/tiny" >>sets.txt
  LOCKSTEP_MIRRORS_ONLY=1 expect_exit 66 "$get_data" tiny
  expect_had "fetching from file://$PWD/good/tiny"
  cp without.txt sets.txt && echo "package tiny some-package $PWD/nosuch" >>sets.txt
  expect_says 66 "Debian's package some-package: not installed" "$get_data" tiny --root other
}

# serve HOW FILE: a mirror at $port that has FILE, of which it sends ten bytes a second ("slowly"), or that ends each connection
# after HOW bytes.
serve() {
  [ -x /usr/bin/python3 ] || skip "python3 is not installed"
  /usr/bin/python3 - "$@" >port <<'END' &
import pathlib, socket, sys, threading, time
how, whole = sys.argv[1], pathlib.Path(sys.argv[2]).read_bytes()
def answer(connection):
    try:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(whole) + whole[:0 if how == "slowly" else int(how)])
        for byte in whole if how == "slowly" else b"":
            connection.sendall(bytes([byte]))
            time.sleep(0.1)
        connection.close()
    except OSError:
        pass
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()
END
  server=$!
  trap 'kill "$server"' EXIT
  wait_for 20 test -s port
  port=$(cat port)
}

# Seconds of curl are fifteen times as fast here.
Get_data_turns_to_the_next_mirror_when_one_has_stalled() {
  make_world && mirrors good && serve slowly "good/tiny/${names[0]}.gz"
  LOCKSTEP_MIRRORS="http://127.0.0.1:$port $LOCKSTEP_MIRRORS"
  # shellcheck disable=SC2317  # the script calls it
  curl() { command curl "${@/#15/1}"; }
  export -f curl
  expect_had "http://127.0.0.1:$port/tiny"
}

Get_data_keeps_the_good_files_of_a_mirror_that_lacks_one() {
  make_world && cp -r good half && mirrors half && rm "half/tiny/${names[3]}.gz"
  expect_exit 66 "$get_data" tiny
  expect_same_file ".cache/lockstep/tiny/${names[0]}" "truth/${names[0]}"
  expect_no_file ".cache/lockstep/tiny/${names[3]}"
  mkdir -p rest/tiny && cp "good/tiny/${names[3]}.gz" rest/tiny && mirrors rest
  expect_had
}

# The second mirror's copy begins with other bytes: only a download that starts where the first one ended can succeed.
Get_data_goes_on_elsewhere_with_what_a_mirror_sent_before_it_was_cut_off() {
  local part=.cache/lockstep/tiny/.partial/${names[0]}.gz
  make_world && serve 3000 "good/tiny/${names[0]}.gz"
  LOCKSTEP_MIRRORS=http://127.0.0.1:$port expect_exit 66 "$get_data" tiny
  head -c 3000 "good/tiny/${names[0]}.gz" >sent
  expect_same_file "$part" sent
  cp -r good tail && mirrors tail
  head -c 3000 /dev/zero | dd of="tail/tiny/${names[0]}.gz" conv=notrunc status=none
  expect_had
}

Get_data_starts_afresh_when_what_is_left_of_a_download_is_wrong() {
  make_world && mirrors good
  mkdir -p .cache/lockstep/tiny/.partial
  head -c 3000 /dev/urandom >".cache/lockstep/tiny/.partial/${names[0]}.gz"
  head -c 90000 /dev/urandom >".cache/lockstep/tiny/.partial/${names[1]}.gz"
  expect_had
}

Get_data_replaces_a_damaged_file_in_the_cache() {
  make_world && mirrors good
  expect_exit 0 "$get_data" tiny
  damage ".cache/lockstep/tiny/${names[2]}" 77
  expect_had "fetching it again"
}

Get_data_keeps_a_file_with_other_bytes_until_it_has_the_right_ones() {
  make_world && mirrors nowhere
  mkdir -p .cache/lockstep/tiny && echo mine >".cache/lockstep/tiny/${names[0]}"
  expect_says 66 "fetching it again" "$get_data" tiny
  expect_equal "$(cat ".cache/lockstep/tiny/${names[0]}")" mine
  mirrors good
  expect_had "fetching it again"
}

Get_data_started_four_times_at_once_fetches_once() {
  make_world && mirrors good
  local pids=() pid
  for _ in 1 2 3 4; do "$get_data" tiny >>said 2>&1 & pids+=($!); done
  for pid in "${pids[@]}"; do wait "$pid" || fail "one of four failed: $(cat said)"; done
  expect_equal "$(grep -c 'fetching from' said)" 1
  expect_equal "$(grep -c 'complete and verified' said)" 4
  expect_complete_in .cache/lockstep/tiny
}

Get_data_names_every_place_when_nobody_has_the_set_and_no_character_that_a_terminal_obeys() {
  make_world && mirrors nowhere elsewhere/tiny
  echo "mirror tiny file://$PWD/public" >>sets.txt
  LOCKSTEP_DATA=$PWD/mine expect_exit 66 "$get_data" tiny
  local place
  for place in mine/tiny .cache/lockstep/tiny nowhere/tiny elsewhere/tiny public; do expect_contains "$output" "$PWD/$place"; done
  expect_contains "$output" "    $PWD/mine/tiny: no ${names[0]}"
  expect_lacks "$output" elsewhere/tiny/tiny
  expect_contains "$output" "Fix: put ${names[*]} (or *.gz of them) into $PWD/.cache/lockstep/tiny, or name a mirror that has them in LOCKSTEP_MIRRORS."
  expect_exit 66 "$get_data" tiny --root "$PWD/"$'\e[31mred'
  expect_lacks "$output" $'\e'
}

Get_data_asks_only_the_given_mirrors_when_told_so() {
  make_world && mirrors nowhere
  echo "mirror tiny file://$PWD/good/tiny" >>sets.txt
  LOCKSTEP_MIRRORS_ONLY=1 expect_exit 66 "$get_data" tiny
  expect_exit 0 "$get_data" tiny
}

Get_data_verifies_compressed_checksums_too() {
  make_world && cp -r good bad && mirrors bad
  local name
  for name in "${names[@]}"; do
    echo "file old $name $(stat -c %s "truth/$name") gz-sha256:$(sha256sum <"good/tiny/$name.gz" | cut -d ' ' -f 1)" >>sets.txt
  done
  mv bad/tiny bad/old && gzip -1 -c "truth/${names[0]}" | cat - sets.txt >"bad/old/${names[0]}.gz"
  expect_says 66 "SHA-256" "$get_data" old
  cp -r good/tiny good/old && mirrors bad good
  expect_says 0 "old: complete and verified in" "$get_data" old --root fresh
  expect_says 0 "old: complete (sizes only) in" "$get_data" old # of the other files, which the first call has left
  expect_complete_in .cache/lockstep/old
  rm ".cache/lockstep/old/${names[0]}"
  expect_says 0 "old: complete (sizes only) in" "$get_data" old # three files were there
  mkdir plain && cp -r truth plain/old && mirrors plain
  expect_exit 66 "$get_data" old --root other # uncompressed, of which no checksum is known
}

Get_data_refuses_a_file_that_unpacks_to_more_than_it_should() {
  make_world && cp -r good bomb && mirrors bomb
  head -c 5000000 /dev/zero | gzip -c >"bomb/tiny/${names[0]}.gz"
  expect_says 66 "${names[0]}.gz holds more than" "$get_data" tiny
  expect_no_file ".cache/lockstep/tiny/${names[0]}"
}

Get_data_tells_usage_errors_from_missing_data() {
  make_world && mirrors good
  expect_exit 2 "$get_data"
  expect_says 2 "give one of: tiny" "$get_data" nosuchset
  expect_says 2 "unknown option --frobnicate" "$get_data" tiny --frobnicate
  expect_says 2 "--root needs a folder" "$get_data" tiny --root
  expect_says 2 "one set at a time: tiny or other" "$get_data" tiny other
  LOCKSTEP_DATA_SETS=nowhere expect_says 66 "nowhere is not there" "$get_data" tiny
  expect_exit 0 "$get_data" tiny --root="$PWD/own"
  expect_complete_in own/tiny
  expect_says 0 "LOCKSTEP_DATA_SETS=FILE takes the sets from another table" "$get_data" --help
}

Get_data_names_a_folder_it_cannot_write() {
  make_world && mirrors good && touch file
  expect_says 74 "$PWD/file/tiny" "$get_data" tiny --root "$PWD/file"
}

# limited KILOBYTES SET: no file may grow beyond that, as on a full disk.
limited() { trap '' XFSZ && ulimit -f "$1" && "$get_data" "$2"; }

Get_data_tells_a_full_disk_from_a_mirror_without_the_file() {
  make_world && mirrors good && mkdir good/zeros
  head -c 300000 /dev/zero >zeros && gzip -c zeros >good/zeros/zeros.gz
  echo "file zeros zeros 300000 md5:$(md5sum <zeros | cut -d ' ' -f 1)" >>sets.txt
  expect_says 74 "cannot write to $HOME/.cache/lockstep/tiny: make room" limited 8 tiny # while it is fetched
  expect_says 74 "cannot write to $HOME/.cache/lockstep/zeros: make room" limited 100 zeros # and unpacked
  expect_no_file .cache/lockstep/zeros/.partial/zeros.unpacked
  expect_exit 0 "$get_data" zeros
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

Get_data_takes_the_files_of_a_set_out_of_its_archive() {
  make_world && make_archive && mirrors nowhere good
  expect_says 0 "boxed: complete and verified in $HOME/.cache/lockstep/boxed" "$get_data" boxed
  for name in one.bin test.bin names.txt; do expect_same_file ".cache/lockstep/boxed/$name" "box/inner/$name"; done
  expect_no_file .cache/lockstep/boxed/extra
  expect_no_file .cache/lockstep/escaped
  expect_no_file .cache/lockstep/boxed/.partial
  mirrors nowhere
  expect_says 0 "boxed: complete (sizes only) in $HOME/.cache/lockstep/boxed" "$get_data" boxed
}

Get_data_does_not_believe_an_archive_with_other_bytes() {
  make_world && make_archive && cp -r good bad && mirrors bad
  damage bad/boxed/boxed.tar.gz 1000
  expect_says 66 "boxed.tar.gz has the wrong MD5 checksum" "$get_data" boxed
  expect_no_file .cache/lockstep/boxed/one.bin
  head -c 2000 good/boxed/boxed.tar.gz >bad/boxed/boxed.tar.gz
  expect_exit 66 "$get_data" boxed
  mirrors bad good
  expect_exit 0 "$get_data" boxed
}

# Its archive is as it should be: the size in the table is all that is known of the file.
Get_data_does_not_believe_a_file_of_another_size_in_an_archive() {
  make_world && make_archive && mirrors good
  sed -i 's/one.bin 5000/one.bin 4999/' sets.txt
  expect_says 66 "one.bin has 5000 bytes instead of 4999" "$get_data" boxed
  expect_no_file .cache/lockstep/boxed/one.bin
}

Get_data_resumes_a_broken_download_of_an_archive() {
  make_world && make_archive && cp -r good tail && mirrors tail
  mkdir -p .cache/lockstep/boxed/.partial
  head -c 3000 good/boxed/boxed.tar.gz >.cache/lockstep/boxed/.partial/boxed.tar.gz
  head -c 3000 /dev/zero | dd of=tail/boxed/boxed.tar.gz conv=notrunc status=none
  expect_exit 0 "$get_data" boxed
  expect_same_file .cache/lockstep/boxed/one.bin box/inner/one.bin
}

Get_data_finds_an_archive_that_somebody_unpacked() {
  make_world && make_archive && mirrors nowhere
  mkdir -p data/boxed && cp -r box/inner data/boxed
  LOCKSTEP_DATA=$PWD/data expect_says 0 "complete (sizes only) in $PWD/data/boxed/inner" "$get_data" boxed
}

Get_data_knows_the_sets_of_the_catalogue() {
  unset LOCKSTEP_DATA_SETS
  expect_exit 2 "$get_data" nosuchset
  local name
  while read -r name; do expect_contains "$output" "$name"; done < <(awk '$1 == "mirror" { print $2 }' "$repo/data/sets/catalogue.txt" | sort -u)
}

run_tests "$@"
