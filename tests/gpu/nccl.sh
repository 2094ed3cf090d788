# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# NCCL between ranks that share the one GPU, as processes, which take turns on it, and as threads: its kernels, captures and aborts, which
# one rank does not start. $LOCKSTEP_NCCL names the library.
# To be sourced, after training.sh.
# shellcheck disable=SC2034,SC2154  # variables of other files

# require_nccl: a library is named and there, before anything is built.
require_nccl() {
  [ -n "${LOCKSTEP_NCCL:-}" ] || die 2 "the part nccl needs LOCKSTEP_NCCL=/path/libnccl.so.2, NCCL 2.30 or newer"
  [ -f "$LOCKSTEP_NCCL" ] || die 66 "LOCKSTEP_NCCL: there is no $LOCKSTEP_NCCL"
}

# with_nccl COMMAND...: in this shell, with that library in place of the machine's.
with_nccl() {
  mkdir -p "$work/nccl" && ln -sf "$(realpath -- "$LOCKSTEP_NCCL")" "$work/nccl/libnccl.so.2"
  local -x LD_LIBRARY_PATH=$work/nccl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0
  "$@"
}

# Small, for processes wait for their turn on the GPU at each message. Eight grains a batch, several buckets.
plan_nccl() {
  job=("$repo/launch/jobs/mnist.yaml" data.set=synthetic data.train_samples=3300 data.test_samples=500 data.global_batch=128 parallel.grain=16
    parallel.bucket_bytes=32KiB train.epochs=1 train.optimizer.lr=0.01 train.optimizer.momentum=0.5 run.checkpoint_every_steps=0
    parallel.timeout_seconds=30)
}

# over_nccl NAME LAUNCHED KEY=VALUE...: the weights of the run $like, over NCCL, on one GPU.
over_nccl() {
  local name="NCCL, $1" launched=$2
  shift 2
  same_bits "$name" "$launched" no parallel.device=cuda:0 parallel.backend=nccl "$@"
  if ! grep -q 'gradients: NCCL .* share .*, for tests' "$logs/train-$name.log"; then failed "$name: the ranks do not share a GPU over NCCL; log: $logs/train-$name.log"; fi
  if [[ " $* " == *" parallel.strategy=pipeline "* ]] && ! grep -q '^activations and their gradients: NCCL .* from GPU to GPU' "$logs/train-$name.log"; then
    failed "$name: stages do not talk over NCCL; log: $logs/train-$name.log"
  fi
}

# shared NAME RANKS KEY=VALUE...: as processes and as threads.
shared() {
  local name=$1 ranks=$2
  shift 2
  over_nccl "$name, $ranks processes" "$ranks" "$@"
  over_nccl "$name, $ranks threads" 1 parallel.ranks="$ranks" "$@"
}

check_nccl() { with_nccl check_shared_nccl; }

check_shared_nccl() {
  local ranks like=cpu
  plan_nccl
  run_nccl_tests
  if ! train cpu 1 parallel.device=cpu || ! train cpu-norm 1 parallel.device=cpu model=resnet8; then failed "training on the CPU; logs: $logs/train-cpu*.log" && return; fi
  for ranks in 2 3 4; do
    shared buckets "$ranks"
    shared "buckets, no graph" "$ranks" parallel.graph=off
  done
  like=cpu-norm shared batch_norm 2 model=resnet8
  like=cpu-norm shared "batch_norm, no graph" 3 model=resnet8 parallel.graph=off
  check_shared_stages
  CUDA_DEVICE_MAX_CONNECTIONS=1 shared "buckets, one queue" 2
  CUDA_DEVICE_MAX_CONNECTIONS=1 shared "stages 0-1-0-1, one queue" 2 parallel.strategy=pipeline parallel.stages=4 'parallel.placement=[0,1,0,1]'
  NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 shared "buckets, sockets" 2
  killed_rank
  for ranks in 2 3 4; do
    attempt "bench allreduce nccl, $ranks processes" 40 "$mpirun" -np "$ranks" --bind-to none "$lockstep" bench allreduce --backend nccl --device cuda:0 --max-bytes 1MiB || true
    attempt "bench allreduce nccl, $ranks threads" 40 "$lockstep" bench allreduce --backend nccl --device cuda:0 --ranks "$ranks" --max-bytes 1MiB || true
  done
}

check_shared_stages() {
  local staged=(parallel.strategy=pipeline)
  shared "2 stages" 2 "${staged[@]}" parallel.stages=2
  shared "3 stages, gpipe" 3 "${staged[@]}" parallel.stages=3 parallel.schedule=gpipe
  shared "2 stages twice" 4 "${staged[@]}" parallel.stages=2
  shared "stages 0-1-0-1" 2 "${staged[@]}" parallel.stages=4 'parallel.placement=[0,1,0,1]'
  shared "stages 0-1-0-1, gpipe" 2 "${staged[@]}" parallel.stages=4 'parallel.placement=[0,1,0,1]' parallel.schedule=gpipe
}

# run_nccl_tests: the test programs of NCCL, whose ranks are threads.
run_nccl_tests() {
  local name ranks program
  while read -r name ranks program; do
    attempt "$name" 100 "${with_libraries[@]}" "$program" </dev/null && report_skipped_cases "$name"
  done < <(tests_to_run | grep nccl)
}

# killed_rank: the others name it and leave, however NCCL's kernels wait.
killed_rank() {
  local code=0 log=$logs/train-killed.log
  LOCKSTEP_ALLOW_INJECT=1 train killed 3 parallel.device=cuda:0 parallel.backend=nccl inject.rank=1 inject.step=5 inject.what=die || code=$?
  if [ "$code" -ne 0 ] && [ "$code" -ne 124 ] && grep -q 'verdict: rank 1 on ' "$log"; then ok "NCCL, a killed rank is named"
  else failed "NCCL, a killed rank: exit code $code, or no verdict on rank 1; log: $log"; fi
}
