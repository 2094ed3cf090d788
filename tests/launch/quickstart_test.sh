#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/quickstart with this build's program, a made-up set, and stand-ins for what installs, builds and fetches.
# shellcheck disable=SC2016,SC2030,SC2031,SC2317  # no word is carried out, repo is set by harness.sh, functions are called by name
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}

# make_repository: in "a place", whose name a command that is not quoted would trip over.
make_repository() {
  mkdir -p 'a place/launch/jobs' 'a place/build/release' 'a place/data/mnist'
  cp "$repo"/launch/{quickstart,lib.sh} 'a place/launch/'
  ln -s "$program" 'a place/build/release/lockstep'
  printf 'model: linear\ndata: {set: synthetic, train_samples: 600, test_samples: 100}\nparallel: {grain: 16}\nrun: {dir: runs/mnist}\n' >'a place/launch/jobs/mnist.yaml'
  { printf '\0\0\10\3\0\0\0\1\0\0\0\34\0\0\0\34' && head -c 784 /dev/zero; } >'a place/data/mnist/t10k-images-idx3-ubyte'
  stand_in 'a place/launch/install-dependencies' 'echo "==> packages: $*"'
  stand_in 'a place/launch/build' 'echo "==> building: $*"'
  stand_in 'a place/launch/get-data' "echo \"==> \$1: complete and verified in $PWD/a place/data/mnist\""
}

# The commands after the report, pasted: in a new shell, in another folder, with nothing set.
next_commands() { sed -n '/^==> to go on/,$ { s/^    //p }' <<<"$1"; }

Quickstart_ends_with_commands_that_can_be_pasted_into_another_shell() {
  skip_without mpirun
  make_repository
  OMPI_MCA_rmaps_base_oversubscribe=1 expect_says 0 $'==> packages: build\n==> building: release lockstep_product' 'a place/launch/quickstart' train.epochs=1
  next_commands "$output" | grep -v '^launch/quickstart' >pasted
  expect_equal "$(wc -l <pasted)" 4
  # One core may be too few for two ranks here; the placement that quickstart found is in the commands.
  (cd / && expect_exit 0 env -i PATH="$PATH" HOME="$HOME" bash -ec "$(cat "$OLDPWD/pasted")")
  expect_contains "$(cat pasted)" 'mpirun -np 2 '
}

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
  local with="LOCKSTEP_CUDA_SUMMARY:INTERNAL=with CUDA 13.0, without NCCL" found=(CUDNN_{LIBRARY,INCLUDE_DIR}:PATH="$PWD")
  make_build "$with" NCCL_LIBRARY:FILEPATH=NCCL_LIBRARY-NOTFOUND NCCL_INCLUDE_DIR:PATH="$PWD/gone" "${found[@]}"
  expect_says 0 "building release, with CUDA 13.0, without NCCL" launch/build release lockstep_product
  expect_equal "$(head -n 1 calls)" "cmake --preset release -U NCCL_LIBRARY -U NCCL_INCLUDE_DIR"
  expect_contains "$(tail -n 1 calls)" "cmake --build build/release --parallel "
  expect_contains "$(tail -n 1 calls)" " --target lockstep_product"
  rm calls
  make_build "$with" NCCL_LIBRARY:FILEPATH=OFF NCCL_INCLUDE_DIR:PATH="$PWD" "${found[@]}"
  expect_exit 0 launch/build release lockstep_product
  expect_lacks "$(cat calls)" --preset
  rm calls
  JOBS=3 expect_exit 0 launch/build
  expect_equal "$(cat calls)" "cmake --build build/release --parallel 3"
}

Build_configures_afresh_for_another_toolkit_or_folder() {
  local jobs
  make_build "LOCKSTEP_CUDA_SUMMARY:INTERNAL=CPU-only: no nvcc"
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
  expect_says 2 "no preset 'nosuch' in CMakePresets.json; presets: release" launch/build nosuch
  for jobs in 0 10000; do JOBS=$jobs expect_says 2 "JOBS '$jobs' is not a whole number from 1 to 9999" launch/build; done
}

Quickstart_takes_a_number_of_ranks_and_settings_word_for_word() {
  local ranks
  make_repository
  for ranks in 'a[$(touch executed)0]' '2 --help' 0 x -1 1025; do
    RANKS=$ranks expect_says 2 "RANKS '$ranks' is not a whole number" 'a place/launch/quickstart' train.epochs=1
  done
  expect_says 0 "From a fresh clone to a trained network" 'a place/launch/quickstart' --help
  unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
  stand_in id 'echo 0'
  printf '#!/bin/sh\nenv | grep -E "include|AS_ROOT|copy" | LC_ALL=C sort >environment\nexit 1\n' >mpirun && chmod +x mpirun
  OMPI_MCA_oob_tcp_if_include='lo touch executed' PATH=$PWD:$PATH expect_exit 1 'a place/launch/quickstart' train.epochs=1
  expect_equal "$(grep -v copy 'a place/environment')" $'OMPI_ALLOW_RUN_AS_ROOT=1\nOMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\nOMPI_MCA_oob_tcp_if_include=lo touch executed'
  expect_no_file executed
  expect_no_file "a place/executed"
}

Quickstart_takes_as_many_slots_as_cores_and_a_network_that_leads_nowhere() {
  local ranks
  make_repository
  stand_in mpirun 'echo "${OMPI_MCA_oob_tcp_if_include:-none} ${OMPI_MCA_btl_vader_single_copy_mechanism:-none}" >environment; exit 1'
  stand_in nproc 'echo 3' && stand_in lscpu 'seq 0 2'
  stand_in tail '[ "$*" = "-n +2 /proc/net/route" ] || exec /usr/bin/tail "$@"' # no route
  unset OMPI_MCA_oob_tcp_if_{include,exclude} OMPI_MCA_btl_vader_single_copy_mechanism RANKS
  for ranks in '' 1 3 '4 --oversubscribe --bind-to none' '1024 --oversubscribe --bind-to none'; do
    RANKS=${ranks%% *} expect_says 1 "==> training: mpirun -np ${ranks:-2} build/release/lockstep train launch/jobs/mnist.yaml train.epochs=5 run.dir=runs/quickstart-1 model=net" \
      'a place/launch/quickstart' model=net
  done
  expect_equal "$(cat 'a place/environment')" "lo none"
}

Quickstart_takes_other_images_where_mnist_cannot_be_had() {
  make_repository
  stand_in 'a place/launch/get-data' "echo \"errors: \$1\" >&2; [ \"\$1\" != mnist ] || exit 66; echo \"==> \$1: complete and verified in $PWD/a place/data/mnist\""
  stand_in mpirun 'for word; do if [[ $word == run.dir=* ]]; then mkdir -p "${word#*=}" && touch "${word#*=}/lock"; fi; done; exit 71'
  expect_says 71 "taking Fashion-MNIST instead" 'a place/launch/quickstart' model=net
  expect_contains "$output" "build/release/lockstep train launch/jobs/fashion-mnist.yaml train.epochs=5 run.dir=runs/quickstart-1 model=net"
  expect_contains "$output" "quickstart: training ended with exit code 71; what it left is in runs/quickstart-1"
  expect_lacks "$output" "errors: "
  expect_equal "$(cat 'a place/build/logs/'get-data-*.err | xargs)" "errors: fashion-mnist errors: mnist"
  expect_lacks "$output" "rmdir: "
  RANKS=3 expect_says 71 "training: mpirun -np 3 " 'a place/launch/quickstart'
  expect_contains "$output" " run.dir=runs/quickstart-2"
  expect_lacks "$output" "mkdir: "
  expect_says 71 "what it left is in mine" 'a place/launch/quickstart' run.dir=first run.dir=mine
  stand_in mpirun 'exit 2'
  expect_says 2 "training ended with exit code 2" 'a place/launch/quickstart' run.dir=other
  expect_lacks "$output" "what it left"
  expect_says 2 "run.dir=runs/quickstart-3" 'a place/launch/quickstart'
  expect_lacks "$output" "what it left"
  expect_no_file 'a place/runs/quickstart-3'
  rm -r 'a place/runs' && touch 'a place/runs'
  expect_says 74 "quickstart: cannot write to $PWD/a place/runs: make it writable" timeout 20 'a place/launch/quickstart'
  expect_lacks "$output" training
  stand_in 'a place/launch/get-data' 'echo "broken: $1" >&2; [ "$1" != mnist ] || exit "$MNIST"; exit 74'
  MNIST=74 expect_says 74 "broken: mnist" 'a place/launch/quickstart'
  MNIST=66 expect_says 74 "broken: fashion-mnist" 'a place/launch/quickstart'
  expect_lacks "$output" training
  expect_lacks "$(MNIST=74 'a place/launch/quickstart' 2>/dev/null)" broken
  stand_in 'a place/launch/build' 'exit 5'
  expect_exit 5 'a place/launch/quickstart'
}

Quickstart_says_whether_the_weights_are_the_published_ones() {
  make_repository
  report_of() {
    mkdir -p run && touch t10k-images-idx3-ubyte
    printf '{"event":"epoch","test_accuracy":0.5}\n{"event":"end","test_accuracy":0.9,"test_samples":10,"weights_sha256":"ab"%s}\n' "$1" >run/metrics.jsonl
    # shellcheck disable=SC1091,SC2034  # the copy in this folder
    (source <(sed '/^main "\$@"/d; s|^source .*|source "a place/launch/lib.sh"|' 'a place/launch/quickstart') && folder=. && report mnist run "${2:-}" 2>&1)
  }
  expect_contains "$(report_of ',"published_hash":true')" 'published hash  yes'
  expect_contains "$(report_of ',"published_hash":false')" 'published hash  NO'
  expect_lacks "$(report_of '')" 'published hash'
  expect_contains "$(report_of '' synthetic)" '==> done: synthetic, test accuracy'
  expect_lacks "$(report_of '' synthetic)" 'lockstep predict'
  unset OMPI_ALLOW_RUN_AS_ROOT{,_CONFIRM} OMPI_MCA_{oob_tcp_if_include,btl_vader_single_copy_mechanism}
  stand_in nproc 'echo 3' && stand_in lscpu 'seq 0 2'
  expect_equal "$(LOCKSTEP_DATA='my data' report_of '')" "==> done: mnist, test accuracy 90.00 % of 10 images
    run directory   run
    weights sha256  ab
==> to go on, paste these:
    cd $(printf %q "$PWD/a place") && export LOCKSTEP_DATA=my\\ data
    build/release/lockstep predict run $PWD/t10k-images-idx3-ubyte\\[0\\]
    build/release/lockstep eval run
    mpirun -np 2 build/release/lockstep train launch/jobs/mnist.yaml
    launch/quickstart train.epochs=1"
}

# lib WORDS: a call of a function of launch/lib.sh.
lib() { bash -c 'set -euo pipefail; source "$1/launch/lib.sh"; shift; "$@"' script "$repo" "$@"; }

Whole_numbers_are_in_their_range() {
  local word
  for word in 2 7 10; do lib is_whole "$word" 2 10 || fail "$word is one"; done
  lib is_whole 0 0 5 || fail "0 is one"
  lib is_whole 999999999 0 999999999 || fail "nine digits are one"
  for word in 1 11 '' x 07 -3 1e1 '3 ' 3x 1000000000; do ! lib is_whole "$word" 2 10 || fail "'$word' is none"; done
  ! lib is_whole 1000000000 0 1000000000 || fail "ten digits are too many"
  expect_exit 2 lib require_whole -np 3x 1 9
  expect_equal "$output" "script: -np '3x' is not a whole number from 1 to 9"
  expect_exit 2 lib require_whole -np 0 1
  expect_equal "$output" "script: -np '0' is not a whole number from 1 to 999999999"
  expect_exit 0 lib require_whole -np 9 1 9
}

Messages_are_lines_of_plain_text() {
  expect_exit 74 lib die 74 $'one\ntwo\e'
  expect_equal "$output" "script: one?two?"
  expect_equal "$(lib say a b)$(lib note c)" "==> a b    c"
  printf '#!x\n# a\n# b\n# text\n#   more\n\n# not\n' >opening
  expect_equal "$(lib help_if_asked opening -h)" $'text\n  more'
  expect_equal "$(lib help_if_asked opening --help)" $'text\n  more'
  expect_equal "$(lib help_if_asked opening other)" ""
  printf 'first\r[2/3] Building CUDA object k/CMakeFiles/y.dir/z.cu.o\n\n' >log
  expect_equal "$(lib latest_line log)" "[2/3] k/z.cu"
}

A_cache_has_what_was_found() {
  printf 'A:PATH=/x\nAA:PATH=/y\nB:FILEPATH=B-NOTFOUND\n' >CMakeCache.txt
  expect_equal "$(lib cached A .)|$(lib cached AA .)|$(lib cached B .)|$(lib cached C .)" "/x|/y||"
}

Compilers_are_as_many_as_cores_and_memory_allow() {
  stand_in nproc 'echo 3'
  local told
  for told in "2 2" "0 1" "3 3" "9 3" " 3"; do
    stand_in awk "echo ${told% *}"
    expect_equal "$(lib build_jobs)" "${told#* }"
  done
}

Root_is_asked_for_through_sudo_where_it_can_be_and_mpi_is_told_of_it() {
  stand_in id 'echo 1000'
  stand_in sudo '[ "$1" = -n ] || echo "sudo $*"'
  expect_equal "$(lib as_root ls -l)" "sudo ls -l"
  stand_in sudo 'exit 1'
  expect_exit 69 lib as_root ls -l
  stand_in id 'echo 0'
  expect_equal "$(lib as_root echo mine)" mine
  # shellcheck disable=SC2016  # the inner shell's
  root_may() { lib eval 'allow_mpi_as_root; echo "${OMPI_ALLOW_RUN_AS_ROOT:-no} ${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM:-no}"'; }
  unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
  expect_equal "$(root_may)" "1 1"
  stand_in id 'echo 1000'
  expect_equal "$(root_may)" "no no"
}

A_command_that_fails_shows_the_end_of_its_log() {
  printf '%s\n' "source '$repo/launch/lib.sh'" "repo='$PWD'" 'bad() { seq 60; return 7; }' 'logged bad bad' >script
  expect_says 7 "bad: failed with exit code 7; the end of $PWD/build/logs/bad.log:"$'\n    21\n' bash script
  expect_lacks "$output" $'\n    20\n'
  expect_equal "$(wc -l <build/logs/bad.log)" 60
}

# A command that takes a while, watched through lib.sh as builds and installations are.
watch_slow_command() {
  cat >watched.sh <<END
set -euo pipefail
source "$repo/launch/lib.sh"
repo=$(printf %q "$PWD")
slow() { sleep 1.2; for i in 1 2 3; do echo "[\$i/3] Building CXX object kernels/cpu/CMakeFiles/x.dir/relu.cpp.o"; sleep 1.2; done; }
logged slow slow
END
}

A_long_command_says_how_far_it_is_line_by_line_where_there_is_no_terminal() {
  watch_slow_command
  expect_contains "$(LOCKSTEP_PROGRESS_SECONDS=1 bash watched.sh | cat)" '/3] kernels/cpu/relu.cpp'
}

A_long_command_keeps_to_one_line_of_a_terminal() {
  skip_without script stty
  watch_slow_command
  script -qec 'stty cols 30; bash watched.sh; echo end' /dev/null </dev/null >seen
  expect_contains "$(tr '\r' '\n' <seen)" '/3] kernels/cpu/relu.cp'
  expect_equal "$(tr '\r' '\n' <seen | awk 'length($0) > 29' | wc -l)" 0
  expect_equal "$(wc -l <seen)" 1
  expect_lacks "$(cat seen)" $'\033'
}

The_watcher_looks_every_twenty_seconds_or_as_told() {
  local told
  sleep() { echo "$1" >>slept; command sleep 0.05; }
  export -f sleep
  printf '%s\n' "source '$repo/launch/lib.sh'" "repo='$PWD'" 'slow() { until [ -s slept ]; do command sleep 0.02; done; }' 'logged slow slow' >script
  for told in '20 ' '20 x' '20 12345' '1234 1234' '0.5 0.5'; do
    rm -f slept
    LOCKSTEP_PROGRESS_SECONDS=${told#* } expect_exit 0 bash script
    expect_equal "$(head -n 1 slept)" "${told% *}"
  done
}

The_watcher_ends_with_its_script() {
  watch_slow_command
  LOCKSTEP_PROGRESS_SECONDS=1 bash "$PWD/watched.sh" >/dev/null &
  local script=$!
  sleep 0.3
  kill -KILL "$script"
  is_gone() { ! pgrep -f "$PWD/[w]atched.sh" >/dev/null; }
  wait_for 30 is_gone
}

run_tests "$@"
