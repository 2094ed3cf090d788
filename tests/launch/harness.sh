# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# A few lines of test harness for the scripts. A test is a function whose name, read aloud, is a fact:
# Get_data_resumes_a_broken_download. Each runs in a shell and an empty folder of its own; it fails when a check fails.
# To be sourced; run_tests at the end of the file runs every function that starts with a capital letter.
set -uo pipefail

# shellcheck disable=SC2034  # used by the tests
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

fail() {
  printf '  FAILED at %s:%s: %s\n' "${BASH_SOURCE[2]##*/}" "${BASH_LINENO[1]}" "$*"
  exit 1
}

expect_equal() { [ "$1" = "$2" ] || fail "expected '$2', got '$1'"; }
expect_same_file() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
expect_file() { [ -f "$1" ] || fail "$1 is not there"; }
expect_no_file() { [ ! -e "$1" ] || fail "$1 is there"; }
expect_contains() { [[ $1 == *"$2"* ]] || fail "no '$2' in: $1"; }
expect_lacks() { [[ $1 != *"$2"* ]] || fail "'$2' in: $1"; }

# expect_exit CODE COMMAND...: both outputs end up in $output.
expect_exit() {
  local wanted=$1 code=0
  shift
  output=$("$@" 2>&1) || code=$?
  [ "$code" -eq "$wanted" ] || fail "exit code $code instead of $wanted from: $* -- it said: $output"
}

# skip_without TOOL...: a test that cannot run here is skipped, and says why.
skip_without() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
  done
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
  local tries=$(($1 * 20))
  shift
  until "$@"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "waited in vain for: $*"
    sleep 0.05
  done
}

run_one() {
  local folder status=0
  folder=$(mktemp -d)
  (cd "$folder" && HOME=$folder "$1") || status=$?
  rm -rf "$folder"
  return "$status"
}

run_tests() {
  local test failed=0 count=0
  for test in $(declare -F | awk '$3 ~ /^[A-Z]/ { print $3 }'); do
    [[ $test =~ ${1:-.} ]] || continue
    count=$((count + 1))
    if run_one "$test"; then echo "ok      $test"; else failed=$((failed + 1)) && echo "FAILED  $test"; fi
  done
  echo "$((count - failed)) of $count held"
  [ "$failed" -eq 0 ] && [ "$count" -gt 0 ]
}
