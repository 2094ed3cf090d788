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

# With run.dir=auto the program chooses the directory, and writes which one.
Quickstart_reports_the_run_in_the_directory_that_the_program_chose() {
  make_repository
  stand_in mpirun 'mkdir -p runs/mnist && echo "{\"event\":\"end\",\"test_accuracy\":0.9,\"test_samples\":10,\"weights_sha256\":\"ab\"}" >runs/mnist/metrics.jsonl
    echo runs/mnist >"$LOCKSTEP_RUN_FILE"; exit "${CODE:-0}"'
  unset LOCKSTEP_RUN_FILE
  mkdir scratch
  TMPDIR=$PWD/scratch expect_says 0 "==> done: mnist, test accuracy 90.00 % of 10 images" 'a place/launch/quickstart' run.dir=auto
  expect_contains "$output" $'    run directory   runs/mnist\n    weights sha256  ab\n'
  expect_equal "$(ls -A scratch)" ""
  CODE=71 expect_says 71 "what it left is in runs/mnist" 'a place/launch/quickstart' run.dir=auto
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

run_tests "$@"
