#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# A campaign that is killed takes its runs, its scratch directories and itself with it, whichever process is struck.
# CHAOS is the program; LOCKSTEP_PROGRAM what it trains with.
# shellcheck source-path=SCRIPTDIR source=../launch/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/../launch/harness.sh"
: "${CHAOS:?}" "${LOCKSTEP_PROGRAM:?}"
skip_without mpirun setpriv

# of_campaign [NAME]: processes that have our mark in their environment, all or those of a program.
of_campaign() {
  local process
  for process in /proc/[0-9]*; do
    grep -qzxF "CAMPAIGN=$PWD" "$process/environ" 2>/dev/null || continue
    [ -z "${1:-}" ] || [ "$(cat "$process/comm" 2>/dev/null)" = "$1" ] || continue
    echo "${process#/proc/}"
  done
}

has_ranks() { [ "$(of_campaign lockstep | wc -l)" -ge 2 ]; }
nobody_is_left() { [ -z "$(of_campaign)" ]; }
scratch() { find . /dev/shm -maxdepth 1 -name "lockstep-chaos-$1-*"; }

# start_campaign [COMMAND...]: until ranks train; $started is what we started, $guard and $campaign the program's two processes.
start_campaign() {
  env --default-signal CAMPAIGN="$PWD" TMPDIR="$PWD" "$@" "$CHAOS" watchdog --kills 0 --stops 20 --jobs 1 >said 2>&1 &
  started=$!
  wait_for 60 has_ranks
  for campaign in $(of_campaign chaos); do
    guard=$(awk '/^PPid:/ { print $2 }' "/proc/$campaign/status")
    [ "$(cat "/proc/$guard/comm")" != chaos ] || break
  done
  [ -n "$(scratch "$campaign")" ] || fail "no scratch directories of $campaign"
}

# expect_end CODE SIGNAL PID: struck there, all of it is gone, and what we started ends with the code.
expect_end() {
  local code=0
  kill -"$2" "$3"
  wait "$started" 2>/dev/null || code=$?
  [ "$code" -eq "$1" ] || fail "exit code $code instead of $1: $(cat said)"
  wait_for 20 nobody_is_left
  expect_equal "$(scratch "$campaign")" ""
  expect_lacks "$(cat said)" VIOLATION
}

Campaign_that_is_told_to_end_takes_its_runs_with_it() {
  start_campaign
  expect_end 143 TERM "$guard"
}

Campaign_outlives_neither_its_guard_nor_its_own_death() {
  start_campaign
  expect_end 137 KILL "$guard"
  start_campaign
  expect_end 137 KILL "$campaign"
}

# As tests/chaos/run starts it.
Campaign_ends_with_the_script_that_started_it() {
  # shellcheck disable=SC2016  # the inner shell's
  start_campaign bash -c 'setpriv --pdeathsig TERM "$@"; exit' bash
  expect_end 137 KILL "$started"
}

run_tests "$@"
