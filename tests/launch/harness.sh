# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# A few lines of test harness for the scripts. A test is a function whose name, read aloud, is a fact:
# Get_data_resumes_a_broken_download. Each runs in a shell and an empty folder of its own, whose bin/ is the first on PATH; it
# fails when a check fails.
# To be sourced; run_tests at the end of the file runs every function that starts with a capital letter.
set -uo pipefail

# shellcheck disable=SC2034  # used by the tests
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# A check may fail in a subshell, in a pipeline or in $(...), whose exit code nothing looks at: it is written down, with the place
# that calls the check.
fail() {
  local frame=1
  while [ "${BASH_SOURCE[frame]}" = "${BASH_SOURCE[0]}" ]; do frame=$((frame + 1)); done
  printf '  FAILED at %s:%s: %s\n' "${BASH_SOURCE[frame]##*/}" "${BASH_LINENO[frame - 1]}" "$*" >>"$failed_checks"
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

# expect_says CODE TEXT COMMAND...: and the text is in $output.
expect_says() {
  expect_exit "$1" "${@:3}"
  expect_contains "$output" "$2"
}

# expect_failed_check COMMAND...: it makes checks of which one must fail.
expect_failed_check() {
  ! (failed_checks=/dev/null && "$@") >/dev/null 2>&1 || fail "nothing is wrong with: $*"
}

# skip WHY: a test, or a file of tests, that cannot run here.
skip() { echo "skipped: $*" && exit 77; }

skip_without() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
  done
}

# mpi_settings: Open MPI as root, on fewer cores than ranks, in a container; ctest sets the same.
mpi_settings() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
}

# write_job STEPS: a job of the network net that never ends by itself, with a checkpoint at every so many steps.
write_job() {
  cat >job.yaml <<END
model: net
data: {set: synthetic, train_samples: 1100, test_samples: 100, global_batch: 110}
train: {epochs: 100000, seed: 7, optimizer: {kind: sgd, lr: 0.02, momentum: 0.5}}
parallel: {device: cpu, grain: 11, timeout_seconds: 60}
run: {dir: run, checkpoint_every_steps: $1, log_every_steps: 1}
END
}

# stand_in NAME BODY: an executable script in bin/, or wherever NAME has a folder.
stand_in() {
  local file=$1
  [[ $1 == */* ]] || file=bin/$1
  mkdir -p "${file%/*}"
  printf '#!/bin/bash\n%s\n' "$2" >"$file"
  chmod +x "$file"
}

# copy_script NAME: a copy of launch/NAME in this folder's launch/, with stand-ins for what it calls to come.
copy_script() {
  mkdir -p launch
  cp "$repo/launch/$1" "$repo/launch/lib.sh" launch/
}

# with_functions SCRIPT COMMAND...: in a shell that has the script's functions, and those of lib.sh.
with_functions() {
  local script=$1
  shift
  # shellcheck source=/dev/null
  (set +u && source "$repo/launch/lib.sh" && source "$repo/tests/gpu/list.sh" && source <(sed '/^source /d; /^main "\$@"/d; /^help_if_asked/,$d' "$repo/launch/$script") && "$@")
}

# with_tools TOOL... -- COMMAND...: where no other tools are installed.
with_tools() {
  local tools=$PWD/tools
  mkdir -p "$tools"
  while [ "$1" != -- ]; do ln -sf "$(type -P "$1")" "$tools/" && shift; done
  shift
  PATH=$tools "$@"
}

# find_python NAME MODULE...: sets $python to one that has them: LOCKSTEP_PYTHON, build/NAME-python, or that of the machine.
find_python() {
  local list
  list=$(IFS=, && echo "${*:2}")
  for python in ${LOCKSTEP_PYTHON:+"$LOCKSTEP_PYTHON"} "$repo/build/$1-python/bin/python" python3; do
    if "$python" -c "import $list" 2>/dev/null; then return; fi
  done
  skip "no Python with $list: see the head of tests/launch/$1_test.sh"
}

# in_cache NAME BUILD: the value in a build folder's CMake cache.
in_cache() { sed -n "s/^$1:INTERNAL=//p" "$2/CMakeCache.txt"; }

# plugins_of BUILD: the files that this build's plugins have, sorted, on one line.
plugins_of() { in_cache LOCKSTEP_PLUGINS "$1" | tr ';' '\n' | sed '/./s/$/.so/' | sort | xargs; }

# expect_nccl_found BUILD FOLDER: the plugin there, if that build has it, and by the loader the library that it needs.
expect_nccl_found() {
  case $(plugins_of "$1") in
    *lockstep_nccl.so*) expect_contains "$(ldd "$2/lockstep_nccl.so")" "libnccl.so.2 => /" ;;
  esac
}

# pretend_build FOLDER BUILD PLUGINS SUMMARY: the program of a build folder in one that was configured with other plugins, none of
# which is built.
pretend_build() {
  mkdir "$1" && ln -s "$2/lockstep" "$1/lockstep"
  sed "s|^\(LOCKSTEP_PLUGINS:INTERNAL=\).*|\1$3|; s|^\(LOCKSTEP_CUDA_SUMMARY:INTERNAL=\).*|\1$4|" "$2/CMakeCache.txt" >"$1/CMakeCache.txt"
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
  failed_checks=$folder.failed
  : >"$failed_checks"
  (cd "$folder" && HOME=$folder PATH=$folder/bin:$PATH "$1") || status=$?
  if [ -s "$failed_checks" ]; then status=1 && cat "$failed_checks"; fi
  rm -rf "$folder" "$failed_checks"
  return "$status"
}

# run_tests [REGEX]: those whose name it matches, or $LOCKSTEP_SCRIPT_TESTS. Exit code 77 where all of them were skipped.
run_tests() {
  local test status failed=0 held=0 skipped=0 wanted=${1:-${LOCKSTEP_SCRIPT_TESTS:-.}}
  for test in $(declare -F | awk '$3 ~ /^[A-Z]/ { print $3 }'); do
    [[ $test =~ $wanted ]] || continue
    status=0
    run_one "$test" || status=$?
    case $status in
      0) held=$((held + 1)) && echo "ok      $test" ;;
      77) skipped=$((skipped + 1)) && echo "skipped $test" ;;
      *) failed=$((failed + 1)) && echo "FAILED  $test" ;;
    esac
  done
  echo "$held of $((held + failed + skipped)) held, $skipped were skipped"
  [ "$failed" -eq 0 ] && [ $((held + skipped)) -gt 0 ] || return 1
  [ "$held" -gt 0 ] || return 77
}
