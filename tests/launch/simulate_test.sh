#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/simulate with a handful of ranks, whose sums are checked in the simulation itself; and what it builds, with a stand-in for cmake.
# shellcheck disable=SC2016  # the stand-in expands its own variables
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
build=$(dirname "${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}")
export BUILD=$build
need_simgrid() { [ -x "$build/lockstep_simulate" ] || skip "SimGrid is not installed (launch/install-dependencies simgrid)"; }

simulate() { "$repo/launch/simulate" --gflops 90 "$@"; }

Four_ranks_give_a_table() {
  need_simgrid
  expect_exit 0 simulate --ranks 2,4 --ranks-per-node 2 --buckets auto,1,4 --all-reduce trainer,far-first,leaders
  local rows
  rows=$(grep -cE '^ +[24] +[12]  (trainer|far-first|leaders) ' <<<"$output")
  expect_equal "$rows" 18
  expect_contains "$output" "the model's step is off the simulated one by at most"
}

The_same_command_says_the_same() {
  need_simgrid
  expect_exit 0 simulate --ranks 4 --ranks-per-node 2
  local first=$output
  expect_exit 0 simulate --ranks 4 --ranks-per-node 2
  expect_equal "$output" "$first"
}

# A link of a tenth of the speed: more is exposed, and by as much as the model says.
A_slower_network_shows() {
  need_simgrid
  local fast slow
  fast=$(simulate --ranks 16 --ranks-per-node 4 --buckets 1 --all-reduce trainer | awk '$3 == "trainer" { print $6 }')
  slow=$(simulate --ranks 16 --ranks-per-node 4 --buckets 1 --all-reduce trainer --gbit 10 | awk '$3 == "trainer" { print $6 }')
  awk -v fast="$fast" -v slow="$slow" 'BEGIN { exit !(slow > 3 * fast) }' || fail "exposed: $fast us at 100 Gbit/s, $slow us at 10"
}

# A last node with a rank less than the others; the slowest of ranks that differ decides.
Any_number_of_ranks_and_a_spread_are_simulated() {
  need_simgrid
  expect_exit 0 simulate --ranks 5,7 --ranks-per-node 3 --buckets 1 --all-reduce trainer
  local even=$output
  expect_contains "$even" "of one all-reduce is exposed"
  expect_exit 0 simulate --ranks 5,7 --ranks-per-node 3 --buckets 1 --all-reduce trainer --spread 10
  awk 'FNR == NR { if ($3 == "trainer") even[$1] = $5; next } $3 == "trainer" && $5 <= even[$1] { exit 1 }' <(echo "$even") <(echo "$output") ||
    fail "a spread makes no step longer: $even, $output"
}

What_does_not_fit_is_refused() {
  need_simgrid
  expect_says 2 "a global batch of 65,536, and no set of 60,000 has so many" simulate --ranks 2048
  expect_exit 2 simulate --ranks 4 --buckets many
  expect_says 2 "far-first" simulate --ranks 4 --all-reduce ring
  expect_exit 2 simulate --ranks 4 --model nets
  expect_says 2 "'0' is not a number above 0" simulate --ranks 4 --gbit 0
  expect_exit 66 simulate --ranks 4 --allreduce not-there
  echo nonsense >table
  expect_exit 65 simulate --ranks 4 --allreduce table
}

Simulation_needs_a_build_and_hands_on_its_options() {
  copy_script simulate
  BUILD=nowhere expect_says 69 "there is no build in nowhere: run launch/build first, or name another with BUILD" launch/simulate
  BUILD=nowhere expect_says 0 "How a training step scales" launch/simulate --help
  stand_in b/lockstep_simulate 'echo "simulated $*"' && stand_in b/lockstep_simulated_step :
  BUILD=b expect_exit 0 launch/simulate --ranks 8
  expect_equal "$output" "simulated --ranks 8"
  BUILD=b expect_says 0 "simulated --help" launch/simulate -h
}

Simulate_builds_what_is_missing_where_cmake_finds_simgrid() {
  export BUILD=$PWD/b
  copy_script simulate && mkdir b
  echo 'LOCKSTEP_SMPI_INCLUDE:PATH=LOCKSTEP_SMPI_INCLUDE-NOTFOUND' >b/CMakeCache.txt
  stand_in cmake 'echo "cmake $*" >>calls; [[ $1 != "$FAILS" ]]'
  FAILS=no expect_says 69 "simulate: SimGrid is not installed: launch/install-dependencies simgrid" launch/simulate
  echo 'LOCKSTEP_SMPI_INCLUDE:PATH=/usr/include' >b/CMakeCache.txt
  FAILS=$BUILD expect_says 70 "simulate: configuring $BUILD failed" launch/simulate
  FAILS=--build expect_says 70 "simulate: building the simulation failed" launch/simulate
  stand_in b/lockstep_simulate 'echo "simulated $*"' && rm calls # lockstep_simulated_step is missing still
  FAILS=no expect_exit 0 launch/simulate --ranks 8
  expect_equal "$output" "simulated --ranks 8"
  expect_equal "$(cat calls)" "cmake $BUILD"$'\n'"cmake --build $BUILD --target lockstep_simulate lockstep_simulated_step"
}

run_tests "$@"
