#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# tests/style: this tree is in order, and a tree that breaks a rule is refused with the name of the rule.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

lines() { seq 40 | sed 's|.*|// Line &.|'; }

# A small tree that keeps every rule, in tree/.
make_tree() {
  mkdir -p tree/common tree/comm/watch tree/models tree/tests/common
  lines >tree/common/error.hpp
  { echo '#include "common/error.hpp"' && lines; } >tree/models/network.hpp
  { echo 'struct Verdict {};' && lines; } >tree/comm/watch/failure_detector.hpp
  echo 'int main() {}' >tree/tests/common/small_test.cpp
  expect_exit 0 "$repo/tests/style" tree
}

# expect_refused TEXT: the tree is, with this text.
expect_refused() {
  expect_says 1 "$1" "$repo/tests/style" tree
}

This_tree_is_in_order() { expect_exit 0 "$repo/tests/style"; }

Many_small_files_are_refused() {
  make_tree
  echo 'int f();' >tree/common/tiny.hpp
  expect_refused "small: 1 of 4 files have fewer than 30 lines"
  expect_contains "$output" common/tiny.hpp
}

A_full_room_is_refused() {
  local i
  make_tree
  for i in $(seq 40); do cp tree/common/error.hpp "tree/common/error_$i.hpp"; done
  expect_refused "room: common/ holds 41 files, at most 40"
}

Includes_rooms_and_names_that_break_a_rule_are_refused() {
  make_tree
  echo '#include "models/network.hpp"' >>tree/common/error.hpp
  expect_refused "floor: common/error.hpp includes models/network.hpp, which is above it"
  mkdir tree/attic && cp tree/models/network.hpp tree/attic/
  expect_refused "floor: attic/network.hpp: attic/ is on no floor"
  echo 'class Lookout;  // a Judge in a comment is not a name' >>tree/common/error.hpp
  expect_refused "name: common/error.hpp:42: 'Lookout' was given up"
  expect_lacks "$output" Judge
  echo 'struct Place { int x; };' >>tree/tests/common/small_test.cpp
  expect_refused "name: tests/common/small_test.cpp:2: a type 'Place' does not say what it does"
}

A_core_that_needs_the_rest_is_refused() {
  make_tree
  mkdir -p tree/comm/staged tree/data/sets
  cp tree/common/error.hpp tree/data/sets/sets.hpp
  { echo '#include "data/sets/sets.hpp"' && lines; } >tree/comm/staged/staged.hpp
  expect_refused "module: comm/staged/staged.hpp includes data/sets/sets.hpp, but gpu stands without formats"
  echo '#include "data/sets/sets.hpp"' >>tree/comm/agreement.hpp && lines >>tree/comm/agreement.hpp
  expect_refused "module: comm/agreement.hpp includes data/sets/sets.hpp, but core stands without formats"
}

A_header_of_seven_types_is_refused() {
  local i
  make_tree
  for i in 1 2 3 4 5 6; do printf 'template <typename T>\nstruct Type%d : T {\n  struct Inner {};\n};\nclass Other%d;\n' "$i" "$i"; done >>tree/models/network.hpp
  { cat tree/models/network.hpp && echo 'enum class Seventh { kOne };'; } >tree/models/network.cpp  # a source has as many as it needs
  sed -i 's/Type/Own/' tree/models/network.cpp
  expect_exit 0 "$repo/tests/style" tree
  echo 'enum class Seventh' >>tree/models/network.hpp
  sed -i /Seventh/d tree/models/network.cpp
  expect_refused "bag: models/network.hpp defines 7 types, at most 6 may be"
}

An_exception_that_nothing_needs_is_refused() {
  make_tree
  mkdir -p tree/kernels && lines >tree/kernels/shapes.hpp
  expect_refused "bag: kernels/shapes.hpp defines 0 types: it needs no place in BAGS any more"
}

A_second_type_of_a_headers_name_is_refused() {
  make_tree
  echo 'struct Verdict { int x; };' >>tree/models/network.hpp
  expect_refused "namesake: models/network.hpp defines 'Verdict', which comm/watch/failure_detector.hpp does, too"
  make_tree
  mkdir -p tree/include/lockstep
  { lines && echo 'class Verdict {};'; } >tree/include/lockstep/verdict.hpp  # a namespace of its own
  { lines && echo 'struct Row {};'; } | tee tree/common/table.cpp >tree/models/table.cpp
  expect_exit 0 "$repo/tests/style" tree
}

References_to_what_is_not_there_are_refused() {
  make_tree
  echo '// As common/lost.hpp and models/gone say; common/error.hpp, models/network and tests/*/small_test.cpp are there.' >>tree/comm/watch/failure_detector.hpp
  expect_refused "reference: comm/watch/failure_detector.hpp:42: there is no 'common/lost.hpp'"
  expect_contains "$output" "there is no 'models/gone'"
  expect_equal "$(wc -l <<<"$output")" 2
  echo '// See error.hpp, and lost.hpp.' >>tree/common/error.hpp
  expect_refused "reference: common/error.hpp:41: 'error.hpp' is this file itself"
  expect_contains "$output" "common/error.hpp:41: there is no 'lost.hpp'"
}

Comments_that_do_not_name_the_thing_are_refused() {
  local word
  make_tree
  for word in Of What Whose Who Whether Which Where Likewise Then 'The same' 'As above'; do
    { echo "/// $word the ranks do." && lines; } >tree/models/network.hpp
    expect_refused "comment: models/network.hpp:1: it begins with '$word': begin with a verb or with the thing itself"
  done
  lines >tree/models/network.hpp
  { echo 'int x = 0;  ///< Of a rank' && echo "char c = '\"';  // What is sent" && echo 'auto s = "// Of text, not a comment";' && echo 'int y = 0;  ///< likewise, of its host'; } >>tree/tests/common/small_test.cpp
  expect_refused "comment: tests/common/small_test.cpp:2: it begins with 'Of'"
  expect_contains "$output" "tests/common/small_test.cpp:3: it begins with 'What'"
  expect_contains "$output" "tests/common/small_test.cpp:5: it begins with 'likewise'"
  expect_equal "$(wc -l <<<"$output")" 3
  make_tree
  mkdir -p tree/launch
  printf '#!/bin/sh\n# Whether it is there.\n' >tree/launch/run
  printf '"""%s Python"""\nx = 1  # %s Python\n' Whose Of >tree/launch/lines.py
  echo '# What CMake builds' >tree/CMakeLists.txt
  expect_refused "comment: CMakeLists.txt:1: it begins with 'What'"
  expect_contains "$output" "launch/run:2: it begins with 'Whether'"
  expect_contains "$output" "launch/lines.py:1: it begins with 'Whose'"
  expect_contains "$output" "launch/lines.py:2: it begins with 'Of'"
}

Long_first_sentences_are_refused() {
  local words
  words=$(seq -s ' ' 20)
  make_tree
  { echo "/// $words." && echo "/// @param x  $words $words" && echo "/// - $words 21" && echo "/// x    $words 21" && lines; } >tree/models/network.hpp
  expect_exit 0 "$repo/tests/style" tree
  { echo "/// ${words% 20}" && echo '/// runs on. And on.' && lines; } >tree/models/network.hpp
  expect_refused "comment: models/network.hpp:1: its first sentence has 21 words, at most 20 may be"
}

Style_says_what_is_missing_or_wrong() {
  expect_exit 2 "$repo/tests/style" one two
  expect_says 0 "The rules" "$repo/tests/style" --help
  mkdir empty
  expect_says 2 "there is no source under empty" "$repo/tests/style" empty
}

run_tests "$@"
