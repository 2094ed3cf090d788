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

run_tests() {
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

# examine TOOL NAME PROGRAM: its exit code, 86 where the tool found something, goes to $work.
examine() {
  local log=$logs/$1-$2.log
  within 110 "${with_libraries[@]}" "$sanitizer" --tool "$1" --error-exitcode 86 --target-processes all "$3" >"$log" 2>&1 </dev/null
  echo $? >"$work/$1-$2.code"
}

judge() {
  local log=$logs/$1-$2.log code
  code=$(cat "$work/$1-$2.code")
  if [ "$code" -eq 0 ]; then ok "$1 $2"
  elif [ "$code" -eq 124 ]; then skip "$1 $2: not done within its time; log: $log"
  else failed "$1 $2: exit code $code: $(grep -m 1 '=========.*\(Error\|Invalid\|Race\|hazard\)' "$log"); log: $log"; fi
}

# Programs that use no other library's kernels, several at once: most of the time is the tool's own, on the host.
run_sanitizer() {
  local tool name ranks program list
  if ! find_sanitizer; then skip "compute-sanitizer: not installed (looked on PATH and in CUDA_HOME)" && return; fi
  list=$(tests_to_run | awk '$2 == 0 && $1 !~ /vendor|nccl/')
  for tool in memcheck racecheck; do
    while read -r name ranks program; do
      while [ "$(jobs -rp | wc -l)" -ge 6 ]; do wait -n; done
      examine "$tool" "$name" "$program" &
    done <<<"$list"
  done
  wait
  for tool in memcheck racecheck; do
    while read -r name ranks program; do judge "$tool" "$name"; done <<<"$list"
  done
}
