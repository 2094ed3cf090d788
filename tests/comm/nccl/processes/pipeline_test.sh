#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Pipelines whose stages talk over NCCL, from GPU to GPU: the program with a stand-in for GPUs (fake_gpus.cpp) and one for NCCL
# (process_nccl.cpp), which runs what a process starts one behind the other. Needs $LOCKSTEP_ON_FAKE_GPUS and $LOCKSTEP_PROGRAM.
# shellcheck source-path=SCRIPTDIR source=../../../launch/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../../launch/harness.sh"

way='activations and their gradients: NCCL 2.28.9, from GPU to GPU'

# Small, for the emulator takes its time.
write_pipeline() {
  cat >job.yaml <<'END'
model: mlp
data: {set: synthetic, train_samples: 24, test_samples: 10, global_batch: 16}
train: {epochs: 1, seed: 7, optimizer: {kind: sgd, lr: 0.05, momentum: 0.5}}
parallel: {device: cpu, grain: 4, timeout_seconds: 60}
run: {checkpoint_every_steps: 0, log_every_steps: 1}
END
}

last_line() { tail -n 1 <<<"$output"; }

# on_gpus RANKS KEY=VALUE...
on_gpus() {
  local ranks=$1
  shift
  mkdir -p wires && rm -rf run wires/*
  FAKE_NCCL=$PWD/wires mpirun --bind-to none -np "$ranks" "$LOCKSTEP_ON_FAKE_GPUS" train job.yaml run.dir=run parallel.device=cuda "$@"
}

# expect_bits RANKS KEY=VALUE...: the weights of one rank, whose last line is $alone, and no file left unread.
expect_bits() {
  expect_exit 0 on_gpus "$@" parallel.strategy=pipeline
  expect_contains "$output" "$way"
  expect_equal "$(last_line)" "$alone"
  expect_equal "$(ls wires)" ""
}

# alone_with KEY=VALUE...
alone_with() {
  write_pipeline
  expect_exit 0 "$LOCKSTEP_PROGRAM" train job.yaml run.dir=alone "$@"
  alone=$(last_line)
}

Mlp_ends_in_the_bits_of_one_rank() {
  alone_with
  expect_bits 2 parallel.stages=2
  expect_contains "$output" "of activations and gradients sent"
  expect_bits 3 parallel.stages=3 parallel.schedule=gpipe
  expect_bits 6 parallel.stages=3
  expect_bits 4 parallel.stages=4
}

Stages_that_go_to_and_fro_between_two_gpus_end_in_the_bits_of_one_rank() {
  alone_with
  expect_bits 2 parallel.stages=4 'parallel.placement=[0,1,0,1]'
  expect_bits 2 parallel.stages=4 'parallel.placement=[0,1,1,0]' parallel.schedule=gpipe
  expect_bits 3 'parallel.stages=[[flatten1],[fc1],[relu1],[fc2],[relu2],[fc3]]'
}

Net_ends_in_the_bits_of_one_rank() {
  alone_with model=net
  expect_bits 2 model=net parallel.stages=4 'parallel.placement=[0,1,0,1]'
  expect_bits 3 model=net parallel.stages=3
}

Slices_of_one_gpu_and_backend_mpi_talk_through_the_host() {
  alone_with
  export FAKE_GPUS_ON_ONE_BUS=1
  expect_exit 0 on_gpus 2 parallel.strategy=pipeline parallel.stages=2
  expect_contains "$output" "ranks 0 and 1 have slices (MIG) of the GPU"
  expect_contains "$output" "activations and their gradients: through pinned host memory"
  expect_equal "$(last_line)" "$alone"
  unset FAKE_GPUS_ON_ONE_BUS
  expect_exit 0 on_gpus 2 parallel.strategy=pipeline parallel.stages=2 parallel.backend=mpi
  expect_contains "$output" "activations and their gradients: through pinned host memory"
  expect_equal "$(last_line)" "$alone"
}

Ranks_that_share_a_gpu_talk_over_an_nccl_that_allows_it() {
  alone_with
  local share=(parallel.device=cuda:0 parallel.backend=nccl)
  export FAKE_NCCL_VERSION=23007
  expect_exit 69 on_gpus 2 "${share[@]}"
  export NCCL_MULTI_RANK_GPU_ENABLE=1
  way='activations and their gradients: NCCL 2.30.7, from GPU to GPU'
  expect_bits 4 parallel.stages=2 "${share[@]}"
  expect_contains "$output" "gradients: NCCL 2.30.7: ranks 0, 1, 2 and 3 share GPU-0 on "
  expect_contains "$output" ", for tests"
}

# A stage that stands still, without the watchdog: a wait for a message between GPUs ends.
A_dead_stage_is_named() {
  write_pipeline
  export LOCKSTEP_ALLOW_INJECT=1
  expect_exit 71 timeout -k 5 60 bash -c "$(declare -f on_gpus); on_gpus \"\$@\"" _ 3 parallel.strategy=pipeline parallel.stages=3 \
    parallel.timeout_seconds=3 parallel.watchdog=false inject.rank=2 inject.step=2 inject.what=stop
  expect_contains "$output" "no sign of life from stage 2 ("
  expect_contains "$output" "on rank 2:"
}

run_tests "$@"
