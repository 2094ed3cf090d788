#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# tests/tidy in a small repository of its own, with stand-ins for clang-tidy and cmake.
# shellcheck disable=SC2016  # the stand-ins expand their own variables
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

stand_in() {
  printf '#!/bin/bash\n%s\n' "$2" >"bin/$1"
  chmod +x "bin/$1"
}

commit() { git add -A && git -c user.name=A -c user.email=a@b commit -qm "$1"; }

# A repository of four sources and a header; cmake writes the compile commands of them and of one that it made. clang-tidy finds
# something in files that say "bad".
make_repository() {
  skip_without git
  mkdir -p bin world/tests world/launch world/room && cp "$repo/tests/tidy" world/tests/ && cp "$repo/launch/lib.sh" world/launch/
  stand_in clang-tidy '[ "$1" != --version ] || { echo "LLVM version 14.0.6"; exit; }
    sleep "${SLOWNESS:-0}"; file=${*: -1}; ! grep -q bad "$file" || { echo "$file:1: something [check]"; echo "3 warnings generated." >&2; exit 1; }'
  stand_in cmake 'mkdir -p build/tidy && touch build/tidy/build.ninja && echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/tidy/CMakeCache.txt
    for f in room/a.cpp room/b.cpp room/c.cpp room/d.cu build/tidy/made.cpp; do printf "  \"file\": \"%s\",\n" "$PWD/$f"; done >build/tidy/compile_commands.json'
  export PATH=$PWD/bin:$PATH
  cd world || exit
  echo '{}' >CMakePresets.json && echo build >.gitignore
  touch room/{a.cpp,b.cpp,b.hpp,c.cpp,d.cu}
  git init -q -b main . && commit first
}

Tidy_looks_at_every_source_once() {
  make_repository
  expect_exit 0 tests/tidy --list
  expect_equal "$output" "room/a.cpp"$'\n'"room/b.cpp"$'\n'"room/c.cpp"$'\n'"room/d.cu"
  expect_exit 0 tests/tidy
  expect_equal "$(tail -n 1 <<<"$output")" "clang-tidy: 4 sources, 0 with findings; 0 not looked at (tests/tidy looks at all)"
}

Tidy_shows_what_is_found_and_fails() {
  make_repository
  echo bad >room/c.cpp
  expect_exit 1 tests/tidy
  expect_contains "$output" "room/c.cpp:1: something [check]"
  expect_lacks "$output" "warnings generated"
  expect_contains "$output" "4 sources, 1 with findings"
  expect_exit 0 tests/tidy room/a.cpp
  expect_contains "$output" "1 sources, 0 with findings"
}

Tidy_knows_what_changed() {
  make_repository
  echo >room/a.cpp && commit second
  expect_exit 0 tests/tidy --changed --list
  expect_equal "$output" "room/a.cpp"
  git checkout -qb topic && echo >room/b.hpp && commit third && echo >room/d.cu
  expect_exit 0 tests/tidy --changed --list
  expect_equal "$output" "room/b.cpp"$'\n'"room/d.cu"
  git checkout -q -- room && git checkout -q main && echo text >README.md && commit fourth
  expect_exit 0 tests/tidy --changed
  expect_contains "$output" "0 sources, 0 with findings; 0 not looked at"
}

Tidy_in_a_clone_of_one_commit_takes_all_in_an_order() {
  make_repository
  expect_exit 0 tests/tidy --changed --list
  expect_equal "$(sort <<<"$output")" "room/a.cpp"$'\n'"room/b.cpp"$'\n'"room/c.cpp"$'\n'"room/d.cu"
  first=$output
  expect_exit 0 tests/tidy --changed --list
  expect_equal "$output" "$first"
}

Tidy_stops_when_its_time_is_up() {
  make_repository
  SLOWNESS=1.1 JOBS=1 expect_exit 0 tests/tidy --seconds 1
  expect_contains "$output" "; "
  expect_lacks "$output" " 0 not looked at"
}

Tidy_says_what_is_missing_or_wrong() {
  make_repository
  expect_exit 2 tests/tidy --seconds soon
  expect_exit 2 tests/tidy --nosuch
  expect_exit 66 tests/tidy room/nosuch.cpp
  printf '#!/bin/bash\necho "LLVM version 19.1.0"\n' >../bin/clang-tidy
  expect_exit 69 tests/tidy
  expect_contains "$output" "launch/install-dependencies tidy"
}

run_tests "$@"
