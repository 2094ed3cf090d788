#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# tests/random_faults.py and tests/fault_trials.py: faults of every kind are drawn from a small tree, the same ones again with the same
# seed; all of them compile, and are tried with the tests that come by them.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
unset LOCKSTEP_PLANTED # the faults here are others
export LEAST=0

# A function in which every kind of change is possible, by its number.
function_of() {
  cat <<END
int find_$1(const int* values, int count, int wanted_$1) {
  int steps = 0;
  for (int i = 0; i < count; ++i) {
    if (values[i] > $1 && !is_known(i, wanted_$1)) {
      steps += weigh(i, $1);
      continue;
    }
    if (i % 2 == 0)
      note(steps, wanted_$1);
    else
      steps -= 1;
    note(steps, i);
    if (steps == $1) throw DataError("the text < is no comparison: $1");
  }
  return steps + $1;  // the comment 1 < 2 is none
}
END
}

# tree/: a product of two files, its build, and the generator.
make_tree() {
  local i
  mkdir -p tree/common tree/launch tree/tests tree/build tree/trainer
  touch tree/trainer/CMakeLists.txt # in no room
  cp "$repo"/tests/{random_faults.py,fault_kinds.py,fault_trials.py,equivalent_faults.txt} tree/tests/
  {
    for name in DataError UsageError ConfigError IoError MissingDataError DeviceError InternalError; do
      echo "struct $name { explicit $name(const char*) {} };"
    done
    echo 'constexpr int kMost = 7;'
    echo 'inline bool is_known(int a, int b) { return a < b; }'
    echo 'inline int weigh(int a, int b) { return a - b; }'
    echo 'inline void note(int& a, int b) { a += b & 1; }'
    for i in $(seq 2 25); do function_of "$i"; done
  } >tree/common/find.cpp
  { echo '#!/usr/bin/env bash' && echo 'add() {' && for i in $(seq 3 19); do echo "  if [ \"\$1\" -lt $i ]; then exit $i; fi"; done && echo '}'; } >tree/launch/run
  printf '[{"directory": "%s", "file": "%s", "command": "c++ -std=c++20 -Wall -Werror -o x"}]\n' "$PWD/tree" "$PWD/tree/common/find.cpp" >tree/build/compile_commands.json
  echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD/tree" >tree/build/CMakeCache.txt
  git -C tree init -q && git -C tree add common launch trainer && git -C tree -c user.name=a -c user.email=a@b commit -qm tree
}

# draw N SEED TABLE [ROOM...]
draw() { tree/tests/random_faults.py draw "$1" "$2" tree/build "$3" refused "${@:4}" 2>>said; }

The_same_seed_draws_the_same_faults() {
  make_tree
  draw 8 1,2 first && draw 8 1,2 again && draw 8 3 other
  expect_equal "$(cat first)" "$(cat again)"
  expect_equal "$(grep -c '^fault seed 1: ' first) $(grep -c '^fault seed 2: ' first)" "8 8"
  [ "$(grep '^fault' first | cut -d : -f 2-)" != "$(grep '^fault' other | cut -d : -f 2-)" ] || fail "seed 3 draws the same faults"
}

# plant_all TABLE: its rows, planted in planted/planted.
plant_all() (
  # shellcheck disable=SC2034  # plant.sh reads them
  kind=fault table=$PWD/$1 folder=$PWD/planted
  # shellcheck source=../plant.sh
  source "$repo/tests/plant.sh"
  mkdir -p planted/planted/common
  repo=$PWD/tree plant check && repo=$PWD/tree plant all
)

Every_kind_is_drawn_and_can_be_planted() {
  make_tree
  draw 90 1 table
  expect_equal "$(sed -n 's/^fault [^:]*: [^:]*:[0-9]*: \([^:]*\): .*/\1/p' table | sort -u)" "$(tree/tests/random_faults.py kinds | sort)"
  expect_lacks "$(cat table)" "the text > is"
  expect_lacks "$(cat table)" "comment 1 > 2"
  plant_all table || fail "a row cannot be planted"
  expect_exit 0 c++ -std=c++20 -fsyntax-only planted/planted/common/find.cpp
}

Rooms_that_are_named_and_no_others_have_faults() {
  make_tree
  draw 3 1 table launch
  expect_equal "$(sed -n 's/^in //p' table | sort -u)" launch/run
  expect_exit 1 tree/tests/random_faults.py draw 500 1 tree/build table refused launch
  expect_contains "$output" "there are not 500 faults in these rooms"
}

Each_room_gets_as_many_faults_as_chance_did_not_choose_of_it() {
  make_tree
  LEAST=4 draw 5 1,2 table
  draw 5 1,2 of_the_seed_alone
  expect_equal "$(grep '^fault seed' table | sort)" "$(grep '^fault seed' of_the_seed_alone | sort)"
  for room in common launch; do
    for seed in 1 2; do
      [ "$(awk -v room=$room -v seed=$seed: '$1 == "room" { now = $2 } $1 == "fault" && now == room && $3 == seed' table | wc -l)" -ge 4 ] ||
        fail "seed $seed has fewer than 4 of $room"
    done
  done
  sed -n 's/^fault //p' table >noticed && : >survived
  tree/tests/random_faults.py tally table noticed survived >said
  expect_equal "$(grep -c '^  all  *5 / 5 ' said)" 2
  expect_equal "$(awk '$1 == "common" || $1 == "launch" { all += $2 } END { print all }' said)" "$(grep -c '^fault' table)"
}

The_tally_names_survivors_and_counts_equivalent_ones_apart() {
  make_tree
  draw 10 1 table common
  grep '^fault' table | cut -d ' ' -f 2- >names
  head -n 7 names >noticed && tail -n 3 names >survived
  tree/tests/random_faults.py tally table noticed survived >said
  expect_contains "$(cat said)" "common                  7 / 10     70 %   equivalent: 0"
  expect_equal "$(grep -c '^survived: common: seed 1: common/find.cpp:' said)" 3
  { echo "equivalent nobody looks" && echo "in common/find.cpp" && sed -n '/^survived: /,$p' said | sed 1d | sed '/^survived/,$d'; } >>tree/tests/equivalent_faults.txt
  tree/tests/random_faults.py tally table noticed survived >said
  expect_contains "$(cat said)" "common                  7 / 9      78 %   equivalent: 1"
  expect_equal "$(grep -c '^survived' said)" 2
}

A_fault_that_the_build_refuses_is_drawn_again() {
  local name
  make_tree
  draw 5 1,2 table common
  name=$(sed -n 's/^fault seed 1: //p' table | sed -n 2p)
  grep '^fault' table >before
  echo "/some/where/$(cut -d : -f 1,2 <<<"$name"):7: error: not so" >log
  tree/tests/random_faults.py refuse log table refused
  draw 5 1,2 table common
  expect_lacks "$(cat table)" "$name"
  grep '^fault' table >after
  expect_equal "$(diff before after | grep -c '^[<>]')" 2 # the others keep their numbers
  expect_equal "$(wc -l <after)" 10
}

# As the constant of a header, which a test that includes it gives to a narrower type.
A_fault_is_known_by_a_name_where_no_error_has_its_place() {
  local word
  make_tree
  draw 9 1 table common
  word=$(sed -nE 's/^# -.*[ (](kMost|is_known|weigh|note|steps|count)[ (<;,].*/\1/p' table | head -n 1)
  echo "/some/where/tests/a_test.cpp:7:1: error: narrowing of ‘(int)some::Thing<4, 2>::$word’ from ‘int’" >log
  tree/tests/random_faults.py refuse log table refused
  expect_equal "$(cat refused)" "$(awk -v word="$word" '/^fault/ { name = $0 } name && /^# -/ && $0 ~ "[^A-Za-z_]" word "([^A-Za-z_]|$)" { print name; name = "" }' table | sed 's/^fault [^:]*: //')"
  [ -s refused ] || fail "no fault is refused for '$word'"
  echo "/some/where/tests/a_test.cpp:7:1: error: ‘another’ is not there" >log
  expect_exit 1 tree/tests/random_faults.py refuse log table refused
}

# make_tests: of the planted program: one compares what it prints, one looks away, one fails without a fault, one is skipped.
make_tests() {
  local i
  {
    for i in $(seq 2 25); do echo "int find_$i(const int*, int, int);"; done
    cat <<'END'
#include <cstdio>
template <typename F> void show(F f) {
  const int some[] = {30, 1, 12, 0, 7, 25, 3};
  for (int i = 0; i < 9; ++i) try { std::printf("%d ", f(some, 7, i - 4)); } catch (...) { std::puts("thrown"); }
}
int main() {
END
    for i in $(seq 2 20); do echo "  show(find_$i);"; done
    echo '}'
  } >main.cpp
  c++ -std=c++20 -o tree/build/right main.cpp tree/common/find.cpp && c++ -std=c++20 -o tree/build/planted main.cpp planted/planted/common/find.cpp
  tree/build/right >tree/build/expected
  for i in "exact './planted | cmp - expected'" "blind './planted; true'" "broken false" "left_out 'exit 77'"; do
    printf 'add_test(%s sh -c "%s")\n' "${i%% *}" "$(sed "s/^[a-z_]* //; s/^'//; s/'$//" <<<"$i")"
    printf 'set_tests_properties(%s PROPERTIES SKIP_RETURN_CODE 77)\n' "${i%% *}"
  done >tree/build/CTestTestfile.cmake
}

Faults_are_tried_with_the_tests_that_come_by_them() {
  make_tree
  draw 40 1 table common
  plant_all table
  make_tests
  expect_equal "$(tree/build/planted)" "$(cat tree/build/expected)"
  tree/tests/fault_trials.py tree/build table planted 60 >said
  expect_contains "$(cat said)" "failed without a fault, and notices nothing: broken"
  expect_contains "$(cat said)" "skipped without a fault, and notices nothing: left_out"
  expect_equal "$(sort planted/noticed planted/survived)" "$(sed -n 's/^fault //p' table | sort)"
  expect_lacks "$(cat said)" " blind"
  [ "$(grep -c ' exact$\|no end' said)" -ge 20 ] || fail "of 40 faults, most in what is printed, fewer than 20 are noticed"
  [ "$(grep -c '(0 tests)' said)" -ge 3 ] || fail "no fault is in the functions that nobody calls"
  [ "$(grep -c '(2 tests)' said)" -ge 1 ] || fail "no fault is tried with both tests"
  tree/tests/fault_trials.py tree/build table planted 60 >again
  expect_lacks "$(cat again)" " exact"
}

run_tests "$@"
