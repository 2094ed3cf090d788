#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/get-data: the bytes that it believes, keeps and writes, against mirrors that are folders.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=data_world.sh
source "$(dirname "${BASH_SOURCE[0]}")/data_world.sh"

Get_data_writes_through_no_link() {
  local cache=.cache/lockstep/tiny
  make_world && mirrors good
  mkdir -p "$cache" victim && echo mine >victim/file
  ln -s "$PWD/victim/file" "$cache/.lock"
  expect_says 74 ".lock is not a file of ours" "$get_data" tiny
  ln -f "$PWD/victim/file" "$cache/.lock"
  expect_says 74 ".lock is not a file of ours" "$get_data" tiny
  rm "$cache/.lock" && ln -s "$PWD/victim" "$cache/.partial"
  expect_says 74 ".partial is a symbolic link" "$get_data" tiny
  rm "$cache/.partial" && mkdir "$cache/.partial"
  ln -s "$PWD/victim/file" "$cache/.partial/${names[0]}.gz"
  ln -s "$PWD/victim/file" "$cache/.partial/${names[0]}.unpacked"
  ln "$PWD/victim/file" "$cache/.partial/${names[1]}.gz"
  expect_exit 0 "$get_data" tiny
  expect_complete_in "$cache"
  make_archive && mkdir -p .cache/lockstep/boxed/.partial
  ln -s "$PWD/victim/file" .cache/lockstep/boxed/.partial/one.bin.unpacked
  expect_exit 0 "$get_data" boxed
  expect_equal "$(cat victim/file)" mine
}

Get_data_leaves_what_is_not_its_own() {
  make_world && mirrors good
  mkdir -p .cache/lockstep/tiny/.partial/folder && echo mine >.cache/lockstep/tiny/.partial/notes
  expect_exit 0 "$get_data" tiny
  expect_equal "$(cat .cache/lockstep/tiny/.partial/notes)" mine
}

Get_data_does_not_believe_lockstep_data_with_other_bytes() {
  make_world && mirrors good && cp -r good other
  head -c 3000 "good/tiny/${names[1]}.gz" >"other/tiny/${names[1]}.gz"
  LOCKSTEP_DATA=$PWD/other expect_exit 0 "$get_data" tiny
  expect_lacks "$output" "gzip: "
  expect_complete_in .cache/lockstep/tiny
}

Get_data_turns_to_the_next_mirror_when_one_has_damaged_files() {
  make_world && cp -r good bad && mirrors bad good
  damage "bad/tiny/${names[0]}.gz" 5000
  head -c 3000 "good/tiny/${names[1]}.gz" >"bad/tiny/${names[1]}.gz"
  rm "bad/tiny/${names[2]}.gz"
  gzip -c sets.txt >"bad/tiny/${names[3]}.gz"
  expect_says 0 "${names[1]}.gz is no whole gzip file" "$get_data" tiny
  expect_contains "$output" "${names[0]}.gz is no whole gzip file" # its bytes are as many, and a check at the end fails
  expect_contains "$output" "${names[3]} has $(stat -c %s sets.txt) bytes instead of $(stat -c %s "truth/${names[3]}")"
  expect_lacks "$output" "gzip: "
  expect_complete_in .cache/lockstep/tiny
}

# The second mirror has no compressed files either, and is cut off while it sends a plain one.
Get_data_says_what_is_wrong_with_the_plain_files_of_a_mirror() {
  make_world && mkdir plain && cp -r truth plain/tiny && mirrors plain
  damage "plain/tiny/${names[0]}" 77
  expect_says 66 "    file://$PWD/plain/tiny: ${names[0]} has the wrong MD5 checksum" "$get_data" tiny
  expect_lacks "$output" "${names[0]}.gz"
  gzip -c sets.txt >"plain/tiny/${names[0]}.gz" # which is refused first
  expect_says 66 "    file://$PWD/plain/tiny: ${names[0]} has $(stat -c %s sets.txt) bytes instead of" "$get_data" tiny --root other
  # shellcheck disable=SC2016  # the stand-in's own
  stand_in curl 'code=18; [[ ${*: -1} != *.gz ]] || code=22; echo "curl: ($code) reason $code" >&2; exit "$code"'
  expect_says 66 "    file://$PWD/plain/tiny: reason 18" "$get_data" tiny --root cut-off
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
  expect_no_file ".cache/lockstep/tiny/.partial/${names[0]}.unpacked"
}

Get_data_names_a_folder_it_cannot_write() {
  make_world && mirrors good && touch file
  expect_says 74 "$PWD/file/tiny" "$get_data" tiny --root "$PWD/file"
  make_archive && mkdir -p "data/tiny/${names[0]}" data/boxed/one.bin # in the place of a file
  for set in tiny boxed; do expect_says 74 "cannot write to $PWD/data/$set: " "$get_data" "$set" --root "$PWD/data"; done
  expect_lacks "$output" "mv: "
  rmdir data/boxed/one.bin && rm data/boxed/names.txt && mkdir data/boxed/names.txt
  expect_says 74 "cannot write to $PWD/data/boxed: " "$get_data" boxed --root "$PWD/data"
  expect_lacks "$output" "mv: "
  expect_no_file data/boxed/one.bin
}

# limited KILOBYTES SET: no file may grow beyond that, as on a full disk.
limited() { trap '' XFSZ && ulimit -f "$1" && "$get_data" "$2"; }

Get_data_tells_a_full_disk_from_a_mirror_without_the_file() {
  make_world && mirrors good && mkdir good/zeros
  head -c 300000 /dev/zero >zeros && gzip -c zeros >good/zeros/zeros.gz
  echo "file zeros zeros 300000 md5:$(md5sum <zeros | cut -d ' ' -f 1)" >>sets.txt
  mkdir good/packed folder && cp zeros folder && tar -czf good/packed/packed.tar.gz folder/zeros
  printf '%s\n' "archive packed packed.tar.gz $(stat -c %s good/packed/packed.tar.gz) -" 'folder packed folder' 'file packed zeros 300000 -' >>sets.txt
  expect_says 74 "cannot write to $HOME/.cache/lockstep/tiny: make room" limited 8 tiny # while it is fetched
  expect_says 74 "cannot write to $HOME/.cache/lockstep/zeros: make room" limited 100 zeros # and unpacked
  expect_lacks "$output" "head: "
  expect_says 74 "cannot write to $HOME/.cache/lockstep/packed: make room" limited 100 packed
  expect_lacks "$output" "cat: "
  for set in zeros packed; do
    expect_no_file ".cache/lockstep/$set/.partial/zeros.unpacked"
    expect_exit 0 "$get_data" "$set"
  done
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
  rm .cache/lockstep/boxed/test.bin && mirrors good # all files are fetched then
  expect_says 0 "boxed: complete and verified in $HOME/.cache/lockstep/boxed" "$get_data" boxed
}

Get_data_does_not_believe_an_archive_with_other_bytes() {
  make_world && make_archive && cp -r good bad && mirrors bad
  damage bad/boxed/boxed.tar.gz 1000
  expect_says 66 "boxed.tar.gz has the wrong MD5 checksum" "$get_data" boxed
  expect_no_file .cache/lockstep/boxed/one.bin
  head -c 2000 good/boxed/boxed.tar.gz >bad/boxed/boxed.tar.gz
  mirrors bad good
  expect_says 0 "boxed.tar.gz has 2000 bytes instead of $(stat -c %s good/boxed/boxed.tar.gz)" "$get_data" boxed
}

# Its archive is as it should be: the size in the table is all that is known of the file.
Get_data_does_not_believe_a_file_of_another_size_in_an_archive() {
  make_world && make_archive && mirrors good
  sed -i 's/one.bin 5000/one.bin 4999/' sets.txt
  expect_says 66 "one.bin has 5000 bytes instead of 4999" "$get_data" boxed
  expect_no_file .cache/lockstep/boxed/one.bin
  sed -i 's/one.bin/other.bin/' sets.txt
  expect_says 66 "other.bin has 0 bytes instead of 4999" "$get_data" boxed
  expect_lacks "$output" "tar: "
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

Get_data_takes_no_compressed_files_of_a_set_that_comes_as_an_archive() {
  make_world && make_archive && mirrors nowhere
  mkdir -p data/boxed && cp box/inner/{one,test}.bin data/boxed && gzip data/boxed/one.bin
  LOCKSTEP_DATA=$PWD/data expect_says 66 "    $PWD/data/boxed: no checksum is known for one.bin.gz: unpack it" "$get_data" boxed
  expect_contains "$output" "Fix: put one.bin test.bin into $HOME/.cache/lockstep/boxed, or name a mirror that has boxed.tar.gz in LOCKSTEP_MIRRORS."
  gunzip data/boxed/one.bin.gz
  LOCKSTEP_DATA=$PWD/data expect_says 0 "boxed: complete (sizes only) in $PWD/data/boxed" "$get_data" boxed
}

run_tests "$@"
