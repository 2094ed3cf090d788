#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/get-data: where it looks and in which order, against mirrors that are folders: no network, a few kilobytes.
# shellcheck disable=SC2016  # no word is carried out
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=data_world.sh
source "$(dirname "${BASH_SOURCE[0]}")/data_world.sh"

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
  XDG_CACHE_HOME=relative expect_had # as the program looks for it
  expect_no_file relative
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
  cp sets.txt other.txt && echo 'mirror tiny ftp://x/y' >>other.txt
  LOCKSTEP_DATA_SETS=$PWD/other.txt expect_says 2 "the mirror 'ftp://x/y' begins with neither" "$get_data" tiny
  expect_no_file executed
  expect_no_file data
}

Get_data_leaves_a_set_in_lockstep_data_where_it_is() {
  make_world && mirrors nowhere
  LOCKSTEP_DATA=$PWD/good expect_exit 0 "$get_data" tiny
  LOCKSTEP_DATA=$PWD/truth expect_exit 0 "$get_data" tiny
  expect_no_file .cache
}

# A password may hold an @, a folder may, too; curl gets the whole URL.
Get_data_shows_no_password_of_a_mirror() {
  local url
  make_world
  stand_in curl 'echo "${*: -1}" >asked; exit 7'
  for url in 'http://me:p@ss@127.0.0.1:1/a@b' 'http://me@127.0.0.1:1/a@b'; do
    LOCKSTEP_MIRRORS=$url expect_says 66 "tiny: fetching from http://***@127.0.0.1:1/a@b/tiny" "$get_data" tiny
    expect_contains "$output" "    http://***@127.0.0.1:1/a@b/tiny: "
    expect_lacks "$output" "//me"
    expect_equal "$(cat asked)" "$url/tiny/${names[0]}.gz"
  done
  LOCKSTEP_MIRRORS=http://127.0.0.1:1/a@b expect_says 66 "fetching from http://127.0.0.1:1/a@b/tiny" "$get_data" tiny
  LOCKSTEP_MIRRORS='ftp://me:p@ss@host/x' expect_says 2 "the mirror 'ftp://***@host/x' begins with neither" "$get_data" tiny
  LOCKSTEP_MIRRORS='me:p@ss@host/x' expect_says 2 "the mirror '***@host/x' begins with neither" "$get_data" tiny
}

Get_data_asks_a_mirror_that_cannot_be_reached_for_one_file_alone() {
  make_world
  LOCKSTEP_MIRRORS=http://127.0.0.1:1 expect_exit 66 "$get_data" tiny
  expect_equal "$(grep -c '^    http://127.0.0.1:1/tiny: ' <<<"$output")" 1
}

# expect_asked CODE REASON...: curl ends with this code, and so many files are asked for, for these reasons.
expect_asked() {
  CODE=$1 expect_exit 66 "$get_data" tiny
  expect_equal "$1: $(sed -n "s|^    file://$PWD/good/tiny: ||p" <<<"$output")" "$1: $(printf '%s\n' "${@:2}")"
}

Get_data_knows_by_curls_exit_code_that_a_mirror_cannot_be_reached() {
  local code
  make_world && mirrors good
  stand_in curl 'echo "$*" >asked; printf "curl: (%s) its reason\nmore\n" "$CODE" >&2; exit "$CODE"'
  for code in 5 6 7 16 18 28 35 52 55 56 92 95 96; do expect_asked "$code" "its reason"; done
  for code in 22 37; do expect_asked "$code" "${names[@]/%/.gz: its reason}"; done
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
  PATH=$PWD/tools expect_says 69 "curl is not installed: install the package curl" "$get_data" tiny
  expect_had
  PATH=$PWD/tools expect_exit 0 "$get_data" tiny # which needs none
}

Get_data_takes_the_folder_of_a_package_where_it_is_installed() {
  make_world && mirrors nowhere
  cp sets.txt without.txt && echo "package tiny some-package $PWD/good/tiny" >>sets.txt
  LOCKSTEP_MIRRORS_ONLY=1 expect_exit 66 "$get_data" tiny
  expect_had "fetching from file://$PWD/good/tiny"
  cp without.txt sets.txt && echo "package tiny some-package $PWD/nosuch" >>sets.txt
  expect_says 66 "Debian's package some-package: not installed" "$get_data" tiny --root other
  LOCKSTEP_MIRRORS_ONLY=1 expect_exit 66 "$get_data" tiny --root other
  expect_lacks "$output" "Debian's package"
}

Get_data_installs_a_package_where_no_mirror_has_the_set() {
  make_world && mirrors nowhere
  mkdir -p there/launch && cp "$repo"/launch/{get-data,lib.sh,fetch.sh} there/launch/
  echo "package tiny some-package $PWD/there/data" >>sets.txt
  expect_exit 66 there/launch/get-data tiny # installed, it has no launch/install-dependencies
  expect_lacks "$output" "Debian's package"
  stand_in there/launch/install-dependencies 'echo "packages: $*"'
  expect_says 66 "packages: tiny" there/launch/get-data tiny
  expect_contains "$output" "Debian's package some-package: not installed"
  stand_in there/launch/install-dependencies 'mkdir there/data'
  expect_says 66 "file://$PWD/there/data: " there/launch/get-data tiny
  expect_lacks "$output" "not installed"
  expect_exit 66 there/launch/get-data tiny # it is there
  expect_lacks "$output" "not installed"
  rmdir there/data && stand_in there/launch/install-dependencies 'cp -r good/tiny there/data; false'
  expect_says 66 "Debian's package some-package: not installed" there/launch/get-data tiny
  rm -r there/data && stand_in there/launch/install-dependencies 'cp -r good/tiny there/data'
  sed -i "1i package tiny installed-package $PWD/good" sets.txt # one that is there is passed over
  get_data=there/launch/get-data expect_had "fetching from file://$PWD/there/data"
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
  expect_no_file ".cache/lockstep/tiny/.partial/${names[0]}.gz"
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
  make_world && mirrors nowhere/ elsewhere/tiny/
  echo "mirror tiny file://$PWD/public" >>sets.txt
  LOCKSTEP_DATA=$PWD/mine expect_exit 66 "$get_data" tiny
  local place
  for place in mine/tiny .cache/lockstep/tiny nowhere/tiny elsewhere/tiny public; do expect_contains "$output" "$PWD/$place"; done
  expect_contains "$output" "    $PWD/mine/tiny: no ${names[0]}"
  expect_lacks "$output" elsewhere/tiny/tiny
  expect_contains "$output" "Fix: put ${names[*]} (or *.gz of them) into $PWD/.cache/lockstep/tiny, or name a mirror that has them in LOCKSTEP_MIRRORS."
  expect_equal "$(LOCKSTEP_DATA=$PWD/mine "$get_data" tiny 2>/dev/null | grep -c "^    $PWD")" 0 # these are errors
  expect_exit 66 "$get_data" tiny --root "$PWD/"$'\e[31mred'
  expect_lacks "$output" $'\e'
}

Get_data_asks_only_the_given_mirrors_when_told_so() {
  make_world && mirrors nowhere
  echo "mirror tiny file://$PWD/good/tiny" >>sets.txt
  LOCKSTEP_MIRRORS_ONLY=1 expect_exit 66 "$get_data" tiny
  expect_exit 0 "$get_data" tiny
}

Get_data_tells_usage_errors_from_missing_data() {
  make_world && mirrors good
  expect_exit 2 "$get_data"
  expect_says 2 "give one of: tiny" "$get_data" nosuchset
  expect_says 2 "unknown option --frobnicate" "$get_data" tiny --frobnicate
  expect_says 2 "--root needs a folder" "$get_data" tiny --root
  expect_says 2 "--root needs a folder" "$get_data" tiny --root ''
  expect_says 2 "--root needs a folder" "$get_data" --root= tiny
  expect_says 2 "one set at a time: tiny or other" "$get_data" tiny other
  LOCKSTEP_DATA_SETS=nowhere expect_says 66 "nowhere is not there" "$get_data" tiny
  cp sets.txt sets=1 && LOCKSTEP_DATA_SETS=sets=1 expect_says 2 "give one of: tiny" timeout 20 "$get_data" nosuchset </dev/null
  printf '%s\n' 'file edge none 0 md5:0' 'file edge most 999999999 md5:0' >>sets.txt
  expect_says 66 "edge could not be had" "$get_data" edge
  expect_exit 0 "$get_data" tiny --root="$PWD/own"
  expect_complete_in own/tiny
  expect_says 0 "LOCKSTEP_DATA_SETS=FILE takes the sets from another table" "$get_data" --help
}

Get_data_knows_the_sets_of_the_catalogue() {
  unset LOCKSTEP_DATA_SETS
  expect_exit 2 "$get_data" nosuchset
  local name
  while read -r name; do expect_contains "$output" "$name"; done < <(awk '$1 == "mirror" { print $2 }' "$repo/data/sets/catalogue.txt" | sort -u)
}

run_tests "$@"
