# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# The test programs that need a GPU: by themselves, and under compute-sanitizer. To be sourced, after programs.sh.
# shellcheck disable=SC2154  # $build, $logs and others are set by programs.sh

# report_skipped_cases NAME: those that GoogleTest skipped within a program that passed.
report_skipped_cases() {
  local case
  while read -r case; do skip "$1: $case (log: $logs/$1.log)"; done < <(sed -n 's/^\[  SKIPPED \] \([^ ]*\) (.*/\1/p' "$logs/$1.log" | sort -u)
}

check_tests() {
  local name ranks program launcher
  export LOCKSTEP_SOURCE_DIR=$repo LOCKSTEP_PROGRAM=$build/lockstep
  [ -n "$(tests_to_run)" ] || failed "tests labelled gpu: there are none; is this a build with CUDA?"
  while read -r name ranks program; do
    launcher=()
    [ "$ranks" -eq 0 ] || launcher=("$mpirun" -np "$ranks" --bind-to none)
    attempt "$name" 100 "${launcher[@]}" "${with_libraries[@]}" "$program" </dev/null && report_skipped_cases "$name"
  done < <(tests_to_run)
}

find_sanitizer() {
  local candidate
  for candidate in "$(command -v compute-sanitizer)" "${CUDA_HOME:-/usr/local/cuda}"/{bin,compute-sanitizer}/compute-sanitizer; do
    if [ -x "$candidate" ]; then sanitizer=$candidate && return; fi
  done
  return 1
}

# sanitize SECONDS TOOL LOG PROGRAM: the tool's exit code, 86 where it found something. Tests make some calls wrong on purpose:
# what the runtime answers to those is no finding.
sanitize() {
  local options=(--tool "$2" --error-exitcode 86 --target-processes all)
  [ "$2" != memcheck ] || options+=(--report-api-errors no)
  within "$1" "${with_libraries[@]}" "$sanitizer" "${options[@]}" "$4" >"$3" 2>&1 </dev/null
}

# attached LOG: a tool that was there from beginning to end sums up; one that was not may still end with the program's own 0.
attached() { grep -q '=========.*SUMMARY' "$1"; }

# its_words LOG: what the tool said first, or else what was said last.
its_words() { grep -m 1 '=========.*\(Error\|Invalid\|Race\|hazard\)' "$1" || grep -v '^ *$' "$1" | tail -n 1; }

# can_attach TOOL PROGRAM: tried once, on the first of the program's tests. Containers often forbid it.
can_attach() {
  local log=$logs/$1.log code=0
  GTEST_TOTAL_SHARDS=1000000 GTEST_SHARD_INDEX=0 sanitize 40 "$1" "$log" "$2" || code=$?
  if attached "$log"; then return; fi
  if [ "$code" -eq 124 ]; then skip "$1: one test is not done within 40 s; log: $log"
  else skip "$1: compute-sanitizer cannot attach here: $(its_words "$log"); log: $log"; fi
  return 1
}

# examine TOOL NAME PROGRAM: its exit code goes to $work.
examine() {
  sanitize 90 "$1" "$logs/$1-$2.log" "$3"
  echo $? >"$work/$1-$2.code"
}

judge() {
  local log=$logs/$1-$2.log code
  code=$(cat "$work/$1-$2.code")
  if [ "$code" -eq 124 ]; then skip "$1 $2: not done within its time; log: $log"
  elif [ "$code" -ne 0 ]; then failed "$1 $2: exit code $code: $(its_words "$log"); log: $log"
  elif attached "$log"; then ok "$1 $2"
  else failed "$1 $2: the tool does not sum up: $(its_words "$log"); log: $log"; fi
}

# Programs that use no other library's kernels, several at once: most of the time is the tool's own, on the host.
check_sanitizer() {
  local tool name ranks program list tools=()
  if ! find_sanitizer; then skip "compute-sanitizer: not installed (looked on PATH and in CUDA_HOME)" && return; fi
  list=$(tests_to_run | awk '$2 == 0 && $1 !~ /vendor|nccl/')
  if [ -z "$list" ]; then skip "compute-sanitizer: there are no tests of kernels" && return; fi
  read -r name ranks program <<<"$list"
  for tool in memcheck racecheck synccheck initcheck; do
    if can_attach "$tool" "$program"; then tools+=("$tool"); fi
  done
  for tool in "${tools[@]}"; do
    while read -r name ranks program; do
      while [ "$(jobs -rp | wc -l)" -ge 8 ]; do wait -n; done
      examine "$tool" "$name" "$program" &
    done <<<"$list"
  done
  wait
  for tool in "${tools[@]}"; do
    while read -r name ranks program; do judge "$tool" "$name"; done <<<"$list"
  done
}
