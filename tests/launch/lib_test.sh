#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/lib.sh, function by function; and launch/build in a copy of its folder, with a stand-in for cmake.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2317  # inner shells expand their own variables; functions are called by name
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

# A build folder with CUDA, whose CMake cache has these lines, too; cmake is a stand-in.
make_build() {
  mkdir -p launch bin build/release
  cp "$repo"/launch/{build,lib.sh} launch/
  echo '{ "configurePreset": "release" }' >CMakePresets.json
  printf '%s\n' "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "LOCKSTEP_NVCC:FILEPATH=$PWD/bin/nvcc" "$@" >build/release/CMakeCache.txt
  stand_in bin/nvcc :
  stand_in bin/cmake 'echo "cmake $*" >>calls'
  touch build/release/build.ninja
  export CUDACXX=$PWD/bin/nvcc
}

Build_looks_again_for_nccl_that_was_not_there_and_says_what_it_found() {
  local with="LOCKSTEP_CUDA_SUMMARY:INTERNAL=with CUDA 13.0, without NCCL" found=(CUDNN_{LIBRARY,INCLUDE_DIR}:PATH="$PWD") jobs
  make_build "$with" NCCL_LIBRARY:FILEPATH=NCCL_LIBRARY-NOTFOUND NCCL_INCLUDE_DIR:PATH="$PWD/gone" "${found[@]}"
  expect_says 0 "building release, with CUDA 13.0, without NCCL" launch/build release lockstep_product
  expect_contains "$output" "    built in "
  expect_equal "$(head -n 1 calls)" "cmake --preset release -U NCCL_LIBRARY -U NCCL_INCLUDE_DIR"
  expect_contains "$(tail -n 1 calls)" "cmake --build build/release --parallel "
  expect_contains "$(tail -n 1 calls)" " --target lockstep_product"
  rm calls
  make_build "$with" NCCL_LIBRARY:FILEPATH=OFF NCCL_INCLUDE_DIR:PATH="$PWD" "${found[@]}"
  expect_exit 0 launch/build release lockstep_product
  expect_lacks "$(cat calls)" --preset
  for jobs in 1 3 9999; do
    rm calls
    (cd launch && JOBS=$jobs expect_exit 0 ./build)
    expect_equal "$(cat calls)" "cmake --build build/release --parallel $jobs"
  done
  rm calls && touch -d 'next year' CMakePresets.json
  expect_exit 0 launch/build
  expect_equal "$(head -n 1 calls)" "cmake --preset release"
}

Build_configures_afresh_for_another_toolkit_or_folder() {
  local jobs
  make_build
  expect_exit 0 launch/build
  expect_equal "$(head -n 1 calls)" "cmake --fresh --preset release"
  rm calls && make_build "LOCKSTEP_CUDA_SUMMARY:INTERNAL=CPU-only: no nvcc"
  sed -i 's|bin/nvcc|bin/other|' build/release/CMakeCache.txt
  expect_exit 0 launch/build
  expect_equal "$(head -n 1 calls)" "cmake --fresh --preset release"
  echo "LOCKSTEP_WITH_CUDA:BOOL=OFF" >>build/release/CMakeCache.txt && rm calls
  expect_exit 0 launch/build
  expect_lacks "$(cat calls)" --preset
  sed -i 's|^CMAKE_HOME.*|CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere|' build/release/CMakeCache.txt && rm calls
  expect_exit 0 launch/build
  expect_equal "$(head -n 1 calls)" "cmake --fresh --preset release"
  stand_in bin/cmake 'exit 3'
  expect_says 1 "configure-release: failed with exit code 3" launch/build
  stand_in bin/cmake '[ "$1" != --build ] || exit 3'
  expect_says 1 "build-release: failed with exit code 3" launch/build
  expect_says 2 "no preset 'nosuch' in CMakePresets.json; presets: release" launch/build nosuch
  for jobs in 0 10000; do JOBS=$jobs expect_says 2 "JOBS '$jobs' is not a whole number from 1 to 9999" launch/build; done
  expect_says 0 "presets: release (default)" launch/build --help
}

Build_takes_the_nvcc_of_cuda_home_and_needs_cmake() {
  make_build "LOCKSTEP_CUDA_SUMMARY:INTERNAL=with CUDA 13.0, NCCL" {NCCL,CUDNN}_{LIBRARY,INCLUDE_DIR}:PATH=OFF
  mkdir toolkit && mv bin toolkit/bin && stand_in bin/cmake 'echo "$1 $CUDACXX" >>calls'
  sed -i 's|/bin/nvcc|/toolkit/bin/nvcc|' build/release/CMakeCache.txt
  CUDACXX='' CUDA_HOME=$PWD//toolkit expect_exit 0 with_tools cmake bash env dirname awk nproc sed tr grep mkdir sleep tail rm cat -- launch/build
  expect_equal "$(cat calls)" "--build $PWD/toolkit/bin/nvcc"
  rm tools/cmake && expect_says 69 "cmake is not installed: run launch/install-dependencies first" with_tools -- launch/build
}

# lib WORDS: a call of a function of launch/lib.sh.
lib() { bash -c 'set -euo pipefail; source "$1/launch/lib.sh"; shift; "$@"' script "$repo" "$@"; }

Whole_numbers_are_in_their_range() {
  local word
  for word in 2 7 10; do lib is_whole "$word" 2 10 || fail "$word is one"; done
  lib is_whole 0 0 5 || fail "0 is one"
  lib is_whole 999999999 0 || fail "nine digits are one"
  for word in 1 11 '' x 07 -3 1e1 '3 ' 3x 1000000000; do ! lib is_whole "$word" 2 10 || fail "'$word' is none"; done
  ! lib is_whole 1000000000 0 || fail "ten digits are too many"
  expect_exit 2 lib require_whole -np 3x 1 9
  expect_equal "$output" "script: -np '3x' is not a whole number from 1 to 9"
  expect_exit 2 lib require_whole -np 0 1
  expect_equal "$output" "script: -np '0' is not a whole number from 1 to 999999999"
  expect_exit 0 lib require_whole -np 9 1 9
  expect_equal "$(lib eval 'echo "$repo"')" "$repo"
}

# With it cd may go elsewhere, and prints where it went.
The_repository_is_that_of_the_script_whatever_cdpath_is() {
  mkdir launch && cp "$repo/launch/lib.sh" launch/
  expect_equal "$(CDPATH=. bash -c 'source launch/lib.sh && echo "$repo"')" "$PWD"
}

Messages_are_lines_of_plain_text() {
  local way
  expect_exit 74 lib die 74 $'one\ntwo\e'
  expect_equal "$output" "script: one?two?"
  expect_equal "$(lib die 74 one 2>/dev/null || true)" ""
  expect_equal "$(lib say a b)$(lib note c)" "==> a b    c"
  printf '#!x\n# a\n# b\n# text\n#   more\n\n# not\n' >opening
  for way in -h --help; do
    expect_exit 0 lib eval "help_if_asked opening $way; echo on"
    expect_equal "$output" $'text\n  more'
  done
  expect_equal "$(lib help_if_asked opening other)" ""
  mkdir a=b && mv opening a=b/ # which awk would take for a variable and its value
  expect_equal "$(lib help_if_asked a=b/opening --help </dev/null)" $'text\n  more'
  printf 'first\r[2/3] Building CUDA object k/CMakeFiles/y.dir/z.cu.o\n\n' >log
  expect_equal "$(lib latest_line log)" "[2/3] k/z.cu"
  printf '%5000s\n' '' | tr ' ' a >log
  expect_equal "$(lib latest_line log | wc -c)" 4096
}

A_cache_has_what_was_found() {
  printf 'A:PATH=/x\nAA:PATH=/y\nB:FILEPATH=B-NOTFOUND\n' >CMakeCache.txt
  expect_equal "$(lib cached A .)|$(lib cached AA .)|$(lib cached B .)|$(lib cached C .)" "/x|/y||"
  printf '%s\n' 'LOCKSTEP_PLUGINS:INTERNAL=lockstep_a;lockstep_b' 'LOCKSTEP_CUDA_SUMMARY:INTERNAL=with CUDA' >CMakeCache.txt
  touch lockstep_a.so
  expect_exit 66 lib tell_contents .
  expect_equal "$output" "script: ./lockstep_b.so is not built: cmake --build . --target lockstep_product"
  mkdir "it's a build" && mv CMakeCache.txt lockstep_a.so "it's a build" && touch "it's a build/lockstep_b.so"
  expect_exit 0 lib tell_contents "$PWD/it's a build"
  expect_equal "$output" "    a program with CUDA: lockstep_a.so lockstep_b.so"
}

# A row: what the machine has, and compilers or cores. Tools grumble.
Compilers_are_as_many_as_cores_and_memory_allow() {
  stand_in nproc 'echo 3'
  local told
  for told in "2 2" "0 1" "3 3" "9 3" " 3"; do
    stand_in awk "echo ${told% *}; echo grumble >&2"
    expect_exit 0 lib build_jobs
    expect_equal "$output" "${told#* }"
  done
  rm bin/awk
  stand_in nproc 'echo "${OMP_NUM_THREADS:-${OMP_THREAD_LIMIT:-8}}"'
  stand_in lscpu '[ "$*" != -p=CORE ] || printf "%s\n" "# Core" 0 1 2 0 1 2; echo grumble >&2'
  OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1 expect_exit 0 lib count_cores
  expect_equal "$output" 4
  stand_in lscpu 'echo grumble >&2; exit 1'
  expect_exit 0 lib count_cores
  expect_equal "$output" 8
}

Root_is_asked_for_through_sudo_where_it_can_be_and_mpi_is_told_of_it() {
  stand_in id 'echo 1000'
  stand_in sudo '[ "$1" = -n ] || echo "sudo $*"'
  expect_equal "$(lib as_root ls -l)" "sudo ls -l"
  stand_in sudo 'echo "a password is required" >&2; exit 1'
  expect_exit 69 lib as_root ls -l
  expect_equal "$output" ""
  stand_in id 'echo 0'
  expect_equal "$(lib as_root echo mine)" mine
  root_may() { lib eval 'allow_mpi_as_root; echo "${OMPI_ALLOW_RUN_AS_ROOT:-no} ${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM:-no}"'; }
  unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
  expect_equal "$(root_may)" "1 1"
  stand_in id 'echo 1000'
  expect_equal "$(root_may)" "no no"
}

# in_terminal SCRIPT: whose outputs are a terminal; what it shows. Other shells would not pass functions on.
in_terminal() { SHELL=$BASH script -qec "$1" /dev/null </dev/null; }

Sudo_may_ask_for_a_password_where_there_is_a_terminal() {
  skip_without script
  stand_in id 'echo 1000'
  stand_in sudo '[ "$1" != -n ] && echo "sudo $*"'
  in_terminal "bash -c 'source $repo/launch/lib.sh; as_root ls -l' </dev/null >said" >/dev/null
  expect_equal "$(cat said)" "sudo ls -l"
}

Open_mpi_gets_lo_where_no_route_leads_anywhere() {
  local answer
  mkdir -p interfaces/{lo7,eth7}
  echo down >interfaces/lo7/operstate
  echo up >interfaces/eth7/operstate
  echo "Iface Destination" >none
  { cat none && echo "lo7 000011AC"; } >down
  { cat none && echo "eth7 00000000"; } >first
  { cat down && echo "eth7 00000000"; } >up
  { cat down && echo "wg7 00000000"; } >stateless
  for answer in "0 first" "0 up" "0 stateless" "0 missing" "1 none" "1 down"; do
    expect_exit "${answer% *}" lib eval "if has_route ${answer#* } interfaces; then exit 0; else exit 1; fi"
    expect_equal "$output" ""
  done
  takes() { lib eval "has_route() { return $1; }; allow_mpi_without_network; echo \${OMPI_MCA_oob_tcp_if_include:-any}"; }
  unset OMPI_MCA_oob_tcp_if_include OMPI_MCA_oob_tcp_if_exclude
  expect_equal "$(takes 0) $(takes 1) $(OMPI_MCA_oob_tcp_if_include=eth7 takes 1) $(OMPI_MCA_oob_tcp_if_exclude=lo takes 1)" "any lo eth7 any"
}

# make_script LINES: which sources lib.sh, and has its logs here.
make_script() { printf '%s\n' 'set -euo pipefail' "source '$repo/launch/lib.sh'" "repo='$PWD'" "$@" >script; }

A_command_that_fails_shows_the_end_of_its_log() {
  make_script 'bad() { seq 59; echo 60 >&2; return 7; }' 'logged bad bad'
  expect_says 7 "bad: failed with exit code 7; the end of $PWD/build/logs/bad.log:"$'\n    21\n' bash script
  expect_lacks "$output" $'\n    20\n'
  expect_equal "$(wc -l <build/logs/bad.log)" 60
  expect_equal "$(bash script 2>/dev/null || true)" ""
  rm build/logs/bad.log && mkdir build/logs/bad.log
  expect_says 74 "cannot write to $PWD/build: make it writable" bash script
}

A_terminal_has_as_many_columns_as_it_says_if_it_is_not_tiny() {
  local told
  stand_in stty '[ "$*" = "-F /dev/tty size" ] && [ -n "$SIZE" ] || { echo grumble >&2; exit 1; }; echo "$SIZE"'
  for told in "79 " "79 0 0" "79 50 20" "20 50 21" "131 50 132"; do
    SIZE=${told#* } expect_exit 0 lib eval 'echo "$(line_width)"'
    expect_equal "$output" "${told%% *}"
  done
}

# watch_slow_command: its script says a line, then another. Each time it waits until the watcher has looked twice; how long the
# watcher sleeps, and on which outputs, is in slept.
watch_slow_command() {
  sleep() {
    local me=$BASHPID
    trap 'command sleep 0.1; : >watcher-is-gone; exit' TERM
    echo "$1 $(readlink "/proc/$me/fd/1" "/proc/$me/fd/2" | xargs)" >>slept
    command sleep 0.03
  }
  export -f sleep
  make_script 'looks() { wc -l <slept 2>/dev/null || echo 0; }' \
    'seen_twice() { local wanted=$(($(looks) + 3)); until [ "$(looks)" -ge "$wanted" ]; do command sleep 0.01; done; }' \
    'slow() { for i in 1 2; do seen_twice; echo "[$i/3] Building CXX object kernels/cpu/CMakeFiles/x.dir/relu.cpp.o"; seen_twice; done; }' \
    ': >slept' 'logged slow slow' '[ -e watcher-is-gone ]' 'echo end'
}

A_long_command_says_how_far_it_is_line_by_line_where_there_is_no_terminal() {
  watch_slow_command
  LOCKSTEP_PROGRESS_SECONDS=7 expect_exit 0 bash script
  expect_equal "$output" $'    [1/3] kernels/cpu/relu.cpp\n    [2/3] kernels/cpu/relu.cpp\nend'
  expect_equal "$(sort -u slept)" "7 /dev/null /dev/null"
}

A_long_command_keeps_to_one_line_of_a_terminal() {
  local wanted
  skip_without script
  watch_slow_command
  stand_in stty 'echo 24 30'
  in_terminal 'bash script 2>said' >seen
  printf -v wanted '\r    %-25s\r' '[1/3] kernels/cpu/relu.cp' '[2/3] kernels/cpu/relu.cp'
  expect_equal "$(cat seen)" "$wanted$(printf '\r%29s\rend\r' '')"
  expect_equal "$(cat said)" ""
  expect_equal "$(sort -u slept)" "1 /dev/null /dev/null"
}

The_watcher_looks_every_twenty_seconds_or_as_told() {
  local told
  sleep() { echo "$1" >>slept; command sleep 0.05; }
  export -f sleep
  make_script 'slow() { until [ -s slept ]; do command sleep 0.02; done; }' 'logged slow slow'
  for told in '20 ' '20 x' '20 0' '1 1' '9999 9999' '20 10000'; do
    rm -f slept
    LOCKSTEP_PROGRESS_SECONDS=${told#* } expect_exit 0 bash script
    expect_equal "$(head -n 1 slept)" "${told% *}"
  done
}

The_watcher_ends_with_its_script() {
  make_script 'slow() { : >begun; exec tail -f /dev/null; }' 'logged slow slow'
  sleep() { command sleep 0.02; }
  export -f sleep
  bash "$PWD/script" >/dev/null 2>said &
  local script=$!
  wait_for 30 test -e begun
  kill -KILL "$script"
  is_gone() { ! pgrep -f "$PWD/[s]cript" >/dev/null; }
  wait_for 30 is_gone
  expect_equal "$(cat said)" ""
}

run_tests "$@"
