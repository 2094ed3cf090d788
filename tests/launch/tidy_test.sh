#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# tests/tidy in a small repository of its own, with stand-ins for clang-tidy and cmake.
# shellcheck disable=SC2016  # the stand-ins expand their own variables
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

commit() { git add -A && git -c user.name=A -c user.email=a@b commit -qm "$1"; }

# A repository of four sources and a header. cmake writes the compile commands of each of them, or of two pieces: one that
# includes three of them, and the fourth. What a file includes is on its lines '#include "FILE"'. clang-tidy finds something in
# files that say "bad", or in what they include, and counts how often it is called.
make_repository() {
  skip_without git
  mkdir -p bin world/tests world/launch world/room && cp "$repo/tests/tidy" world/tests/ && cp "$repo/launch/lib.sh" world/launch/
  stand_in clang-tidy '[ "$1" != --version ] || { echo "LLVM version 14.0.6"; exit; }
    file=${*: -1}; echo "$file" >>"$CALLS"; sleep "${SLOWNESS:-0}"
    grep -l bad "$file" $(sed -n "s/^#include \"\(.*\)\"/\1/p" "$file") | sed "s/$/:1: something [check]/" | grep . || exit 0
    echo "3 warnings generated." >&2; exit 1'
  stand_in clang++ '[[ "$*" == *"-DTEXT=\"a\""* && " $* " == *" -MM "* ]] || exit 1
    file=${*: -1}; echo "x.o: $file $(sed -n "s/^#include \"\(.*\)\"/\1/p" "$file" | xargs)"'
  stand_in cmake 'while [ "$1" != -B ]; do shift; done
    mkdir -p "$2" && touch "$2/build.ninja" && echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"$2/CMakeCache.txt"
    files="room/a.cpp room/b.cpp room/c.cpp"
    [ "$3" = -DLOCKSTEP_IN_ONE_PIECE=OFF ] || { for f in $files; do echo "#include \"$PWD/$f\""; done >"$2/unity.cxx"; files=$2/unity.cxx; }
    for f in $files room/d.cu; do
      printf "  \"directory\": \"%s\",\n  \"command\": \"clang++ %s -o x.o -c %s\",\n  \"file\": \"%s\"\n" "$PWD/$2" "-DTEXT=\\\\\\\"a\\\\\\\"" "$PWD/$f" "$PWD/$f"
    done >"$2/compile_commands.json"'
  export CALLS=$PWD/calls
  cd world || exit
  echo '{}' >CMakePresets.json && echo build >.gitignore && echo "Checks: all" >.clang-tidy
  touch room/{a.cpp,b.cpp,b.hpp,c.cpp,d.cu}
  git init -q -b main . && commit first
}

# looked_at: what clang-tidy was called for since this was asked last.
looked_at() {
  [ ! -f "$CALLS" ] || { LC_ALL=C sort "$CALLS" | xargs && rm "$CALLS"; }
}

# expect_looked_at CODE UNITS ARGUMENT...: tests/tidy with those looks at these.
expect_looked_at() {
  expect_exit "$1" tests/tidy "${@:3}"
  expect_equal "$(looked_at)" "$2"
}

last_line() { tail -n 1 <<<"$output"; }

Tidy_looks_at_every_piece_once() {
  make_repository
  expect_exit 0 tests/tidy --list
  expect_equal "$output" "build/tidy/pieces/unity.cxx"$'\n'"room/d.cu"
  expect_exit 0 tests/tidy
  expect_equal "$(last_line)" "clang-tidy: 2 pieces, 0 with findings; 0 clean as before; 0 not looked at (tests/tidy looks at all)"
  expect_equal "$(looked_at)" "build/tidy/pieces/unity.cxx room/d.cu"
}

Tidy_shows_what_is_found_and_fails() {
  make_repository
  echo bad >room/c.cpp
  expect_says 1 "room/c.cpp:1: something [check]" tests/tidy
  expect_lacks "$output" "warnings generated"
  expect_contains "$output" "2 pieces, 1 with findings"
  expect_says 1 "room/c.cpp:1: something [check]" tests/tidy
  expect_contains "$output" "1 pieces, 1 with findings; 1 clean as before"
  expect_says 0 "1 sources, 0 with findings" tests/tidy room/a.cpp
}

Tidy_looks_again_at_what_changed_alone() {
  make_repository
  printf '#include "%s"\n' "$PWD/room/b.hpp" >room/b.cpp
  expect_looked_at 0 "room/a.cpp room/b.cpp room/d.cu" room/a.cpp room/b.cpp room/d.cu
  expect_exit 0 tests/tidy room/a.cpp room/b.cpp room/d.cu
  expect_equal "$(last_line)$(looked_at)" "clang-tidy: 0 sources, 0 with findings; 3 clean as before; 0 not looked at (tests/tidy looks at all)"
  touch room/*
  echo "bad" >room/b.hpp
  expect_looked_at 1 "room/b.cpp" room/a.cpp room/b.cpp room/d.cu
  echo >room/b.hpp
  echo >>.clang-tidy
  expect_looked_at 0 "room/a.cpp room/b.cpp room/d.cu" room/a.cpp room/b.cpp room/d.cu
  rm room/b.hpp
  expect_looked_at 0 "room/b.cpp" room/a.cpp room/b.cpp
}

# clang-tidy says so, goes on with its own checks and returns 0.
Tidy_fails_where_its_checks_cannot_be_read() {
  make_repository
  cd .. && stand_in clang-tidy '[ "$1" != --version ] || { echo "LLVM version 14.0.6"; exit; }
    echo "$PWD/.clang-tidy:5:1: error: unknown key"; echo "Error parsing $PWD/.clang-tidy: invalid argument" >&2'
  cd world || exit
  expect_says 1 "unknown key" tests/tidy room/a.cpp
  expect_exit 1 tests/tidy room/a.cpp
}

# A compiler that does not say what a source reads: then nothing is remembered.
Tidy_remembers_nothing_that_it_cannot_check() {
  make_repository
  printf '#!/bin/bash\nexit 1\n' >../bin/clang++
  expect_exit 0 tests/tidy room/a.cpp
  expect_looked_at 0 "room/a.cpp room/a.cpp" room/a.cpp
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
  expect_exit 77 tests/tidy --changed
  expect_equal "$output" "clang-tidy: no source changed (tests/tidy looks at all)"
}

Tidy_in_a_clone_of_one_commit_takes_all_in_an_order() {
  make_repository
  expect_exit 0 tests/tidy --changed --list
  expect_equal "$(sort <<<"$output")" "room/a.cpp"$'\n'"room/b.cpp"$'\n'"room/c.cpp"$'\n'"room/d.cu"
  first=$output
  expect_exit 0 tests/tidy --changed --list
  expect_equal "$output" "$first"
}

# A source that takes longer than there is time is given up, and the next call begins with it again.
Tidy_stops_when_its_time_is_up() {
  make_repository
  SLOWNESS=60 JOBS=1 expect_exit 77 tests/tidy --seconds 2 room/a.cpp room/b.cpp
  expect_equal "$(last_line)" "clang-tidy: none of 2 sources was done within 2 s (tests/tidy looks at all)"
  looked_at >/dev/null
  expect_looked_at 0 "room/a.cpp room/b.cpp" --seconds 60 room/a.cpp room/b.cpp
}

# make_tests_run: tests/run in that repository, with stand-ins for what installs and builds: builds fail.
make_tests_run() {
  cp "$repo"/tests/{run,results.sh} tests/
  printf '#!/bin/bash\necho "groups: $*"\n' >launch/install-dependencies
  printf '#!/bin/bash\nexit 1\n' >launch/build
  chmod +x launch/install-dependencies launch/build
  (cd .. && stand_in shellcheck exit && stand_in clang-format 'echo "version 14."')
}

Run_looks_at_what_changed_unless_it_is_told_otherwise() {
  make_repository
  make_tests_run
  echo bad >room/a.cpp && commit second
  expect_says 1 "groups: build test tidy" tests/run
  expect_contains "$output" "failed:  changed: clang-tidy"
  expect_lacks "$(tests/run style)" "tidy"
  echo >room/a.cpp && commit third
  expect_says 0 "clang-tidy: 1 sources, 0 with findings; 0 clean as before; 0 not looked at" tests/run changed
  expect_equal "$(last_line)" "1 passed, 0 failed, 0 skipped"
}

# 20 seconds become 5, and a source that says "slow" takes longer.
Run_counts_what_clang_tidy_had_no_time_for_as_skipped() {
  make_repository
  make_tests_run
  sed -i 's/--seconds 20/--seconds 5/' tests/run
  printf '#!/bin/bash\n[ "$1" != --version ] || exec echo "LLVM version 14.0.6"\n! grep -q slow "${@: -1}" || sleep 60\n' >../bin/clang-tidy
  echo slow >room/a.cpp && commit second
  expect_says 1 "skipped: changed: clang-tidy: none of 1 sources was done within 5 s" tests/run changed
  expect_equal "$(last_line)" "0 passed, 0 failed, 1 skipped"
  echo slow >room/d.cu && echo >room/a.cpp && commit third
  JOBS=2 expect_says 0 "skipped: changed: clang-tidy: 1 sources, 0 with findings; 0 clean as before; 1 not looked at" tests/run changed
  expect_equal "$(last_line)" "1 passed, 0 failed, 1 skipped"
  echo text >README.md && commit fourth
  expect_says 1 "skipped: changed: clang-tidy: no source changed" tests/run changed
}

Tidy_says_what_is_missing_or_wrong() {
  make_repository
  expect_exit 2 tests/tidy --seconds soon
  expect_exit 2 tests/tidy --nosuch
  expect_exit 66 tests/tidy room/nosuch.cpp
  printf '#!/bin/bash\necho "LLVM version 19.1.0"\n' >../bin/clang-tidy
  expect_says 69 "launch/install-dependencies tidy" tests/tidy
}

run_tests "$@"
