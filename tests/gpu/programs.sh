# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# What tests/gpu/run starts, from a build folder or from a bundle (launch/bundle), and how long it lets it run.
# To be sourced, after launch/lib.sh and tests/results.sh; sets $lockstep, $mpirun, $with_libraries, $logs and $work.
# shellcheck disable=SC2034,SC2154  # variables of other files

# find_programs [BUILD]: a bundle has its own; otherwise those of BUILD, or of build/release, which is built first. A test
# program of a bundle is started with $with_libraries in front, unless through bin/.
find_programs() {
  bundled=false with_libraries=()
  if [ -f "$repo/libexec/environment.sh" ]; then
    bundled=true build=$repo/libexec lockstep=$repo/bin/lockstep mpirun=$repo/bin/mpirun
    # shellcheck disable=SC2016  # the inner shell expands its own
    with_libraries=(sh -c 'bundle=$1 && . "$1/libexec/environment.sh" && shift && exec "$@"' sh "$repo")
  else
    build=${1:-$repo/build/release} mpirun=mpirun
    [ -n "${1:-}" ] || "$repo/launch/build" release || die $? "it does not build here: launch/install-dependencies, or a bundle of another machine (launch/bundle)"
    lockstep=$build/lockstep
  fi
  [ -x "$lockstep" ] || die 66 "no program $lockstep: launch/build"
}

# tests_to_run: "NAME RANKS PROGRAM" of each test that needs a GPU.
tests_to_run() {
  if $bundled; then sed "s| \([^ ]*\)\$| $build/\1|" "$repo/tests/gpu/tests.txt"; else gpu_tests "$build"; fi
}

# prepare_folders: logs of an earlier call on the same kind of device go; scratch space goes when the shell ends.
prepare_folders() {
  logs=$repo/build/logs/gpu
  [ "$device" = cuda ] || logs+=-$device
  { rm -rf "$logs" && mkdir -p "$logs"; } 2>/dev/null || die 74 "cannot write to $repo/build: make it writable"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  allow_mpi_as_root
  allow_mpi_without_network
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
}

# budget SECONDS: what follows may take so long in all, until the next budget; and never longer than the whole run.
budget() {
  deadline=$((SECONDS + $1))
  if [ "$deadline" -gt "$run_deadline" ]; then deadline=$run_deadline; fi
}
time_left() { [ "$SECONDS" -lt "$deadline" ]; }

# within SECONDS COMMAND...: stops it after so long, or when the budget is spent; returns 124 then.
within() {
  local seconds=$1 left=$((deadline - SECONDS))
  shift
  [ "$left" -gt 0 ] || return 124
  timeout -k 5 $((seconds < left ? seconds : left)) "$@"
}

# explain CODE LOG: one line: why a command failed.
explain() {
  if [ "$1" -eq 124 ]; then echo "took too long; log: $2"; else echo "exit code $1: $(grep -v '^ *$' "$2" | tail -n 1); log: $2"; fi
}

ok() { passed && echo "ok      $1"; }
skip() { skipped "$1" && echo "skipped $1"; }

# attempt NAME SECONDS COMMAND...: one test that is a command; its output goes to a log. Exit code 77 skips it, and with
# optional=yes so does 69: something it needs is not installed.
attempt() {
  local name=$1 seconds=$2 log=$logs/${1// /-}.log code=0
  shift 2
  within "$seconds" "$@" >"$log" 2>&1 || code=$?
  case $code in
    0) ok "$name" ;;
    77) skip "$name: $(sed -n 's/^skipped: //p' "$log" | head -n 1)" ;;
    69) if [ "${optional:-no}" = yes ]; then skip "$name: $(tail -n 1 "$log")"; else failed "$name: $(explain 69 "$log")"; fi ;;
    *) failed "$name: $(explain "$code" "$log")" ;;
  esac
  return "$code"
}
