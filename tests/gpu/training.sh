# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Training through the GPU path: the CPU's weights to the bit, and the same whatever the ranks, backends and graphs; the CPU's loss
# curve where libraries or fp32 sums round elsewhere.
# To be sourced, after programs.sh.
# shellcheck disable=SC2154  # $device, $data and others are set by programs.sh and tests/gpu/run

# Rounding grows in training as an error in any chaotic system, until a unit or a maximum flips: two runs on the CPU that
# differ in nothing but the order of a sum part by up to 0.1 in the loss of single steps within an epoch of the main job. So
# what is compared is the beginning of the curve, step by step, and the mean over the epoch, at a moderate learning rate.
plan_training() {
  job=("$repo/launch/jobs/mnist.yaml" "${data[@]}" train.epochs=1 train.optimizer.lr=0.01 train.optimizer.momentum=0.5
    run.checkpoint_every_steps=0)
  if [ "$device" = emulated ]; then
    job+=(data.train_samples=40 data.test_samples=16 data.global_batch=16 parallel.grain=8)
    repetitions=2 compared_steps=3
  else
    job+=(data.global_batch=128)
    repetitions=20 compared_steps=100
  fi
}

# train NAME RANKS [KEY=VALUE...]: its metrics are in $work/NAME, its output is $logs/train-NAME.log; returns its exit code.
# $train_seconds is its time, 90 where it is not set.
train() {
  local name=$1 ranks=$2 launcher=()
  shift 2
  rm -rf "${work:?}/$name"
  [ "$ranks" -eq 1 ] || launcher=("$mpirun" -np "$ranks" --bind-to none)
  within "${train_seconds:-90}" "${launcher[@]}" "$lockstep" train "${job[@]}" parallel.device="$device" run.dir="$work/$name" "$@" >"$logs/train-$name.log" 2>&1
}

metrics() { cat "$work/$1/metrics.jsonl"; }
weights() { metrics "$1" | grep -o '"weights_sha256":"[0-9a-f]*' | tail -n 1; }
step_losses() { metrics "$1" | grep '"event":"step"' | grep -o '"loss":[^,}]*' | cut -d : -f 2; }
epoch_loss() { metrics "$1" | grep '"event":"epoch"' | grep -o '"train_loss":[^,}]*' | cut -d : -f 2; }

# largest_difference A B STEPS: of the first so many losses; "nan" if there are fewer.
largest_difference() {
  paste <(step_losses "$1" | head -n "$3") <(step_losses "$2" | head -n "$3") | awk -v steps="$3" '
    { d = $1 - $2; if (d < 0) d = -d; if (!(d <= most)) most = d; if (NF == 2) ++rows }
    END { print (rows == steps ? most + 0 : "nan") }'
}

at_most() { awk -v value="$1" -v limit="$2" 'BEGIN { exit !(value != "nan" && value + 0 <= limit) }'; }

# same_curve NAME: the run NAME has the losses of the run "cpu", within 1e-3.
same_curve() {
  local first mean
  first=$(largest_difference "$1" cpu "$compared_steps")
  mean=$(awk -v a="$(epoch_loss "$1")" -v b="$(epoch_loss cpu)" 'BEGIN { d = a - b; print (a == "" || b == "" ? "nan" : d < 0 ? -d : d) }')
  echo "        $1 and cpu: first $compared_steps steps within $first, mean over the epoch within $mean"
  at_most "$first" 1e-3 && at_most "$mean" 1e-3
}

# curve NAME OPTIONAL [KEY=VALUE...]: trains, and compares with the CPU. OPTIONAL yes: exit code 69 skips it.
curve() {
  local name=$1 optional=$2 code=0
  shift 2
  train "$name" 1 run.log_every_steps=1 "$@" || code=$?
  if [ "$code" -eq 69 ] && [ "$optional" = yes ]; then skip "loss curve, $name: $(reason "$logs/train-$name.log")"
  elif [ "$code" -ne 0 ]; then failed "loss curve, $name: $(explain "$code" "$logs/train-$name.log")"
  elif same_curve "$name"; then ok "loss curve, $name: the CPU's within 1e-3"
  else failed "loss curve, $name: not the CPU's within 1e-3"; fi
}

# same_bits NAME RANKS OPTIONAL [KEY=VALUE...]: trains, and ends in the weights of the run $like, or "alone".
same_bits() {
  local name=$1 ranks=$2 optional=$3 code=0
  shift 3
  train "$name" "$ranks" "$@" || code=$?
  if [ "$code" -eq 69 ] && [ "$optional" = yes ]; then skip "same bits, $name: $(reason "$logs/train-$name.log")"
  elif [ "$code" -ne 0 ]; then went_wrong "same bits, $name" "$code" "$logs/train-$name.log"
  elif [ "$(weights "$name")" = "$(weights "${like:-alone}")" ]; then ok "same bits, $name"
  else failed "same bits, $name: other weights than ${like:-alone}; logs: $logs/train-$name.log, $logs/train-${like:-alone}.log"; fi
}

# bits_of_cpu NAME: that run, which is there, ended in the CPU's weights. If not, the CPU says where they part.
bits_of_cpu() {
  if [ "$(weights "$1")" = "$(weights cpu)" ]; then ok "same bits, $1 and CPU" && return; fi
  within 60 "$lockstep" prove "$work/$1" --device cpu >"$logs/prove-$1.log" 2>&1
  failed "same bits, $1 and CPU: other weights: $(grep -m 1 refuted "$logs/prove-$1.log"); logs: $logs/train-$1.log, $logs/train-cpu.log, $logs/prove-$1.log"
}

# published NAME DEVICE JOB [KEY=VALUE...]: trains one of launch/jobs whose weights are published on this device, and ends in them.
published() {
  local name=published-$1-$2 device=$2 text=$repo/launch/jobs/$3.yaml code=0
  shift 3
  within 60 "$lockstep" train "$text" parallel.device="$device" run.dir="$work/$name" run.checkpoint_every_steps=0 "$@" >"$logs/$name.log" 2>&1 || code=$?
  if [ "$code" -ne 0 ]; then failed "$name: $(explain "$code" "$logs/$name.log")"
  elif grep -q '^the published hash: yes' "$logs/$name.log"; then ok "$name: the published hash: yes"
  else failed "$name: the published hash: no; $(grep -m 1 '^the published hash' "$logs/$name.log" || echo 'nothing is said of it'); log: $logs/$name.log"; fi
}

# A linear model everywhere, a convolutional network where it takes no minute.
check_published() {
  published linear cpu data-parallel-tutorial
  published linear emulated data-parallel-tutorial
  published_net cpu
  if [ "$device" = emulated ]; then return; fi
  published linear "$device" data-parallel-tutorial
  published_net "$device"
}
published_net() { published net "$1" mnist data.set=synthetic data.train_samples=2000 data.test_samples=500 train.epochs=2; }

repeated() {
  local turn
  for ((turn = 1; turn <= repetitions; ++turn)); do
    train repeated 1 || { failed "same bits, repetition $turn: $(explain $? "$logs/train-repeated.log")" && return; }
    [ "$(weights repeated)" = "$(weights alone)" ] || { failed "same bits, repetition $turn: other weights" && return; }
  done
  ok "same bits, $repetitions repetitions"
}

# refused NAME RANKS KEY=VALUE...: asking for what is not there ends with exit code 69 and one line that says so.
refused() {
  local name=$1 ranks=$2 code=0
  shift 2
  train "$name" "$ranks" "$@" || code=$?
  if [ "$code" -eq 69 ] && [ "$(grep -c '^lockstep: ' "$logs/train-$name.log")" -eq 1 ]; then ok "refused: $*"
  else failed "refused: $* on $ranks ranks: exit code $code instead of 69 with one line; log: $logs/train-$name.log"; fi
}

gpu_count() { sed -n 's/^\([0-9]*\) GPUs\{0,1\};.*/\1/p' "$logs/devices.log" | grep . || echo 1; }

check_training() {
  plan_training
  check_published
  if ! train cpu 1 parallel.device=cpu run.log_every_steps=1; then failed "training on the CPU; log: $logs/train-cpu.log" && return; fi
  curve gpu no
  bits_of_cpu gpu
  curve gpu-fp32-sums no parallel.determinism=off
  train alone 1 || { failed "training on one rank; log: $logs/train-alone.log" && return; }
  same_bits "no graph" 1 no parallel.graph=off
  same_bits "micro-batches" 1 no data.micro_batch=8
  same_bits "micro-batches, no graph" 1 no data.micro_batch=8 parallel.graph=off
  same_bits "2 ranks on one" 2 no parallel.device="$one"
  same_bits "2 ranks on one, no graph" 2 no parallel.device="$one" parallel.graph=off
  same_bits "2 stages on one" 2 no parallel.device="$one" parallel.strategy=pipeline parallel.stages=2
  repeated
  [ "$device" = emulated ] || check_training_on_gpu
}

check_training_on_gpu() {
  curve vendor yes parallel.kernels=vendor
  same_bits "NCCL, 1 rank" 1 yes parallel.backend=nccl
  same_bits "NCCL, 1 rank, no graph" 1 yes parallel.backend=nccl parallel.graph=off
  same_bits "NCCL, 1 rank, micro-batches" 1 yes parallel.backend=nccl data.micro_batch=64
  check_several_gpus
  refused "device 99" 1 parallel.device=cuda:99
  refused "two ranks on one GPU with NCCL" 2 parallel.device=cuda:0 parallel.backend=nccl
}

check_several_gpus() {
  if [ "$(gpu_count)" -lt 2 ]; then skip "2 GPUs, and pipelines over NCCL: there is one GPU" && return; fi
  same_bits "2 GPUs" 2 no
  staged_over_nccl "2 stages on 2 GPUs" 2 parallel.stages=2
  staged_over_nccl "2 stages on 2 GPUs, gpipe" 2 parallel.stages=2 parallel.schedule=gpipe
  staged_over_nccl "4 stages to and fro between 2 GPUs" 2 parallel.stages=4 'parallel.placement=[0,1,0,1]'
  [ "$(gpu_count)" -lt 4 ] || staged_over_nccl "2 stages twice, 4 GPUs" 4 parallel.stages=2
}

# staged_over_nccl NAME RANKS KEY=VALUE...: the bits of one rank, from stages that talk over NCCL, where that is there.
staged_over_nccl() {
  local name=$1 ranks=$2
  shift 2
  same_bits "$name" "$ranks" yes parallel.strategy=pipeline parallel.backend=nccl "$@"
  if [ -z "$(weights "$name" 2>/dev/null)" ]; then return; fi
  if grep -q '^activations and their gradients: NCCL .* from GPU to GPU' "$logs/train-$name.log"; then ok "$name: stages talk over NCCL"
  else failed "$name: stages do not talk over NCCL; log: $logs/train-$name.log"; fi
}
