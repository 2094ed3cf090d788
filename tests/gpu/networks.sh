# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# The GPU's weights beside the CPU's: the jobs of tests/arithmetic, and whole networks with batch_norm, residual and mobile blocks.
# To be sourced, after training.sh.
# shellcheck disable=SC2034,SC2154  # variables of other files

pictures=()

check_arithmetic() {
  local length=(--steps 50 --devices cuda)
  [ "$device" = cuda ] || length=(--steps 3 --devices emulated --orders 1 --only "net,modern,micro,mixed")
  LOCKSTEP_PROGRAM=$lockstep JOBS=${JOBS:-6} attempt arithmetic "${part_seconds[arithmetic]}" "$repo/tests/arithmetic/run" "${length[@]}"
  sed -n '$s/^/        /p' "$logs/arithmetic.log"
}

# plan_networks: enough steps for graphs of eight, between those that the host looks at, and a last batch that is not full. The
# emulator takes seconds a sample of a ResNet: there it has small networks with batch_norm.
plan_networks() {
  job=("$repo/launch/jobs/cifar10.yaml" data.set=synthetic train.epochs=1 train.optimizer.lr=0.01 run.checkpoint_every_steps=0)
  if [ "$device" = emulated ]; then
    job+=(data.train_samples=40 data.test_samples=9 data.global_batch=16 parallel.grain=4)
    networks=("$repo"/tests/arithmetic/{layers,groups}.yaml) replays=1
  else
    job+=(data.train_samples=1900 data.test_samples=64 data.global_batch=64 parallel.grain=16)
    networks=(resnet20 resnet18 resnet50 mobilenet_v2) replays=8
  fi
}

# on_cpu NETWORK NAME KEY=VALUE...: what is compared with, $like.
on_cpu() {
  like="$2 on the CPU"
  train "$like" 1 model="$1" parallel.device=cpu parallel.threads=4 "${@:3}" || { failed "$like: $(explain $? "$logs/train-$like.log")" && return 1; }
}

check_networks() {
  local like network name train_seconds=40
  plan_networks
  for network in "${networks[@]}"; do
    name=${network##*/}
    on_cpu "$network" "$name" || continue
    same_bits "$name" 1 no model="$network"
    same_bits "$name, no graph" 1 no model="$network" parallel.graph=off
    same_bits "$name, streamed" 1 no model="$network" data.on_device=stream
    same_bits "$name, 2 ranks, replays" 2 no model="$network" parallel.device="$one" parallel.replay_every_steps="$replays"
  done
  if [ "$device" = emulated ]; then return; fi
  on_cpu resnet8 "resnet8, from PTX" && train_seconds=90 CUDA_FORCE_PTX_JIT=1 CUDA_CACHE_DISABLE=1 same_bits "resnet8, from PTX" 1 no model=resnet8
  check_pictures
}

# check_pictures: at 224 x 224, where layers have other kernels.
check_pictures() {
  local like name job=("$repo/launch/jobs/cifar10.yaml" train.epochs=1 train.max_steps=3 train.optimizer.lr=0.01
    run.checkpoint_every_steps=0 data.global_batch=8 data.test_samples=4 parallel.grain=2)
  make_pictures || return
  job+=("${pictures[@]}")
  for name in resnet50 mobilenet_v2; do
    on_cpu "$name" "$name at 224" && same_bits "$name at 224" 1 no model="$name"
  done
}

# make_pictures: noise of 3 x 224 x 224 as shards, once.
make_pictures() {
  command -v "${PYTHON:-python3}" >/dev/null || { skip "pictures of 224 x 224: no ${PYTHON:-python3}" && return 1; }
  pictures=(data.set=shards "data.root=$work/pictures")
  [ -f "$work/pictures/shards.index" ] || attempt "pictures of noise" 30 "${PYTHON:-python3}" "$repo/tests/bench/torch_step.py" --shards "$work/pictures"
}
