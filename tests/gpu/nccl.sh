# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# NCCL between ranks that share the one GPU: its kernels, captures and aborts, which one rank does not start. First ranks that are
# processes, which take turns on it, then threads, which may hang: a call of one can wait for the other's kernel. $LOCKSTEP_NCCL names
# the library. On the emulator the same jobs run over MPI and between threads.
# To be sourced, after training.sh.
# shellcheck disable=SC2034,SC2154  # variables of other files

# require_nccl: the library is there, before anything is built.
require_nccl() {
  if [ "$device" = emulated ]; then return; fi
  LOCKSTEP_NCCL=${LOCKSTEP_NCCL:-$repo/build/nccl/libnccl.so.2}
  [ -f "$LOCKSTEP_NCCL" ] || die 66 "NCCL 2.30 or newer is not at $LOCKSTEP_NCCL: put libnccl.so.2 there, or set LOCKSTEP_NCCL=FILE"
}

# with_nccl COMMAND...: in this shell, with that library in place of the machine's.
with_nccl() {
  if [ "$device" = emulated ]; then "$@"; return; fi
  mkdir -p "$work/nccl" && ln -sf "$(realpath -- "$LOCKSTEP_NCCL")" "$work/nccl/libnccl.so.2"
  local -x LD_LIBRARY_PATH=$work/nccl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0
  "$@"
}

# plan_nccl: small, for processes wait for their turn on the GPU at each message. Eight grains a batch, several buckets.
plan_nccl() {
  job=("$repo/launch/jobs/mnist.yaml" data.set=synthetic parallel.bucket_bytes=32KiB train.epochs=1 train.optimizer.lr=0.01
    train.optimizer.momentum=0.5 run.checkpoint_every_steps=0 parallel.timeout_seconds=30)
  if [ "$device" = emulated ]; then
    job+=(data.train_samples=40 data.test_samples=9 data.global_batch=16 parallel.grain=4)
    norm="$repo/tests/arithmetic/layers.yaml" death=2
  else
    job+=(data.train_samples=3300 data.test_samples=500 data.global_batch=128 parallel.grain=16)
    norm=resnet8 death=5
  fi
}

# train_on_cpu: what is compared with, once.
train_on_cpu() {
  [ -f "$work/shared/metrics.jsonl" ] || train shared 1 parallel.device=cpu || { failed "training on the CPU; log: $logs/train-shared.log" && return 1; }
  [ -f "$work/shared-norm/metrics.jsonl" ] || train shared-norm 1 parallel.device=cpu model="$norm" || { failed "training on the CPU; log: $logs/train-shared-norm.log" && return 1; }
}

# over_nccl NAME LAUNCHED KEY=VALUE...: the weights of the run $like, over NCCL, on one GPU.
over_nccl() {
  local name="${over^^}, $1" launched=$2
  shift 2
  same_bits "$name" "$launched" no parallel.device="$one" parallel.backend="$over" "$@"
  if [ "$over" != nccl ] || [ -z "$(weights "$name" 2>/dev/null)" ]; then return; fi
  if ! grep -q 'gradients: NCCL .* share .*, for tests' "$logs/train-$name.log"; then failed "$name: the ranks do not share a GPU over NCCL; log: $logs/train-$name.log"; fi
  if [[ " $* " == *" parallel.strategy=pipeline "* ]] && ! grep -q '^activations and their gradients: NCCL .* from GPU to GPU' "$logs/train-$name.log"; then
    failed "$name: stages do not talk over NCCL; log: $logs/train-$name.log"
  fi
}

# shared NAME RANKS KEY=VALUE...: ranks that are processes.
shared() { over_nccl "$1, $2 processes" "$2" "${@:3}"; }

check_processes() {
  local over=nccl
  [ "$device" = cuda ] || over=mpi
  with_nccl check_shared_gpu
}

check_shared_gpu() {
  local ranks like=shared train_seconds=40
  plan_nccl
  train_on_cpu || return
  for ranks in 2 3 4; do
    shared buckets "$ranks"
    shared "buckets, no graph" "$ranks" parallel.graph=off
  done
  like=shared-norm shared batch_norm 2 model="$norm"
  like=shared-norm shared "batch_norm, no graph" 3 model="$norm" parallel.graph=off
  check_shared_stages
  if [ "$device" = cuda ]; then
    CUDA_DEVICE_MAX_CONNECTIONS=1 shared "buckets, one queue" 2
    CUDA_DEVICE_MAX_CONNECTIONS=1 shared "stages 0-1-0-1, one queue" 2 parallel.strategy=pipeline parallel.stages=4 'parallel.placement=[0,1,0,1]'
    NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 shared "buckets, sockets" 2
  fi
  killed_rank
  for ranks in 2 3 4; do
    attempt "bench allreduce $over, $ranks processes" 40 "$mpirun" -np "$ranks" --bind-to none "$lockstep" bench allreduce --backend "$over" "${few_sums[@]}" || true
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

# killed_rank: the others name it and leave, however NCCL's kernels wait.
killed_rank() {
  local code=0 log=$logs/train-killed.log
  LOCKSTEP_ALLOW_INJECT=1 train killed 3 parallel.device="$one" parallel.backend="$over" inject.rank=1 inject.step="$death" inject.what=die || code=$?
  if [ "$code" -ne 0 ] && [ "$code" -ne 124 ] && grep -q 'verdict: rank 1 on ' "$log"; then ok "${over^^}, a killed rank is named"
  else failed "${over^^}, a killed rank: exit code $code, or no verdict on rank 1; log: $log"; fi
}

check_threads() {
  local over=nccl
  [ "$device" = cuda ] || over=thread
  CUDA_DEVICE_MAX_CONNECTIONS=32 CUDA_MODULE_LOADING=EAGER with_nccl check_threads_on_gpu
}

check_threads_on_gpu() {
  local like=shared train_seconds=12 may_hang=yes
  plan_nccl
  train_on_cpu || return
  job+=(parallel.timeout_seconds=8 parallel.ranks=2)
  over_nccl "buckets, 2 threads" 1
  over_nccl "buckets, no graph, 2 threads" 1 parallel.graph=off
  like=shared-norm over_nccl "batch_norm, 2 threads" 1 model="$norm"
  [ "$device" = emulated ] || run_nccl_tests
}

# run_nccl_tests: the test programs of NCCL, whose ranks are threads.
run_nccl_tests() {
  local name ranks program
  while read -r name ranks program; do
    attempt "$name" 40 "${with_libraries[@]}" "$program" </dev/null && report_skipped_cases "$name"
  done < <(tests_to_run | grep nccl)
}
