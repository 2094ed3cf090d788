# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Programs that tests/gpu/run starts, from a build folder or from a bundle (launch/bundle), and their time limits.
# To be sourced, after launch/lib.sh and tests/results.sh; sets $lockstep, $mpirun, $with_libraries, $logs and $work.
# shellcheck disable=SC2034,SC2154  # variables of other files

# find_programs [BUILD]: a bundle has its own; otherwise those of BUILD, of build/release, which is built first, or, where that is not
# there, of an archive. A test program of a bundle is started with $with_libraries in front, unless through bin/.
find_programs() {
  local archive=$repo/build/bundle/lockstep.tar.gz
  bundle='' with_libraries=()
  if [ -f "$repo/libexec/environment.sh" ]; then
    bundle=$repo
  elif [ -z "${1:-}" ] && [ ! -x "$repo/build/release/lockstep" ] && [ -f "$archive" ]; then
    bundle=$work/lockstep
    tar -xzf "$archive" -C "$work" 2>/dev/null || die 65 "$archive cannot be unpacked in ${TMPDIR:-/tmp}: launch/bundle --archive, or another TMPDIR"
  fi
  if [ -n "$bundle" ]; then
    build=$bundle/libexec lockstep=$bundle/bin/lockstep mpirun=$bundle/bin/mpirun
    # shellcheck disable=SC2016  # the inner shell expands its own
    with_libraries=(sh -c 'bundle=$1 && . "$1/libexec/environment.sh" && shift && exec "$@"' sh "$bundle")
  else
    build=${1:-$repo/build/release} mpirun=mpirun
    [ -n "${1:-}" ] || "$repo/launch/build" release || die $? "it does not build here: launch/install-dependencies, or a bundle of another machine (launch/bundle)"
    lockstep=$build/lockstep
  fi
  [ -x "$lockstep" ] || die 66 "no program $lockstep: launch/build"
}

# tests_to_run: "NAME RANKS PROGRAM" of each test that needs a GPU.
tests_to_run() {
  if [ -n "$bundle" ]; then sed "s| \([^ ]*\)\$| $build/\1|" "$bundle/tests/gpu/tests.txt"; else gpu_tests "$build"; fi
}

# prepare_folders: logs of an earlier call for the same parts and kind of device go; scratch space goes when the shell ends.
prepare_folders() {
  logs=$repo/build/logs/gpu
  [ "$device" = cuda ] || logs+=-$device
  logs+=/$asked
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

# within SECONDS COMMAND...: stops it after so long, or when the budget is spent; returns 124 then, also where it had to be killed.
within() {
  local seconds=$(($1 * patience)) left=$((deadline - SECONDS)) start=$SECONDS code=0
  shift
  [ "$left" -gt 0 ] || return 124
  if [ "$seconds" -gt "$left" ]; then seconds=$left; fi
  timeout -k 5 "$seconds" "$@" || code=$?
  if [ "$code" -eq 137 ] && [ $((SECONDS - start)) -ge "$seconds" ]; then code=124; fi
  return "$code"
}

# reason LOG: why a command failed: what the program said, or the last line that is not mpirun's, or the first that is.
reason() {
  awk '/^-+$/ { boxed = !boxed; next } !/[[:alnum:]]/ { next } boxed { if (box == "") box = $0; next }
    /^lockstep: / { said = $0 } { last = $0 } END { print said != "" ? said : last != "" ? last : box }' "$1"
}

# explain CODE LOG: that in one line.
explain() {
  if [ "$1" -eq 124 ]; then echo "took too long; log: $2"; else echo "exit code $1: $(reason "$2"); log: $2"; fi
}

# tell OUTCOME CHECK: also a row of the report, with the seconds since the row before.
told=0
tell() {
  printf '%-7s %s\n' "$@"
  printf '| %s | %s | %s | %d |\n' "$part" "${2//|/,}" "$1" $((SECONDS - told)) >>"$logs/checks.txt"
  told=$SECONDS
}

ok() { passed && tell ok "$1"; }
skip() { skipped "$1" && tell skipped "$1"; }

# went_wrong NAME CODE LOG: a failure; where $may_hang is set, one that hung, or lost the other rank (71), counts as skipped.
went_wrong() {
  if [ -n "${may_hang:-}" ] && [[ $2 =~ ^(71|124)$ ]]; then skip "$1: it may hang, and did: $(explain "$2" "$3")"
  else failed "$1: $(explain "$2" "$3")"; fi
}

# attempt NAME SECONDS COMMAND...: one test that is a command; its output goes to a log. Exit code 77 skips it, and with
# optional=yes so does 69: something it needs is not installed.
attempt() {
  local name=$1 seconds=$2 log=$logs/${1// /-}.log code=0
  shift 2
  within "$seconds" "$@" >"$log" 2>&1 || code=$?
  if [ "$code" -eq 0 ]; then ok "$name"
  elif [ "$code" -eq 77 ]; then skip "$name: $(sed -n 's/^skipped: //p' "$log" | head -n 1)"
  elif [ "$code" -eq 69 ] && [ "${optional:-no}" = yes ]; then skip "$name: $(reason "$log")"
  else went_wrong "$name" "$code" "$log"; fi
  return "$code"
}
