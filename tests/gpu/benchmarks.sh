# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Benchmarks on a GPU, races against PyTorch, a profile, and the tables that they make. To be sourced, after programs.sh.
# shellcheck disable=SC2016,SC2154  # Markdown's backticks; $lockstep, $logs, $data and others are set by programs.sh and run

models=(net lenet) turn=(--rounds 5 --steps 500) modes=(eager graph compile compile-graph tuned-graph)
declare -A batch=([net]=64 [lenet]=256 [resnet18]=64 [resnet50]=64)

# step_command MODEL [PROGRAM]: what measures our step, or that of an earlier version.
step_command() {
  printf '%q ' "${2:-$lockstep}" bench step "$repo/launch/jobs/mnist.yaml" "model=$1" "data.global_batch=${batch[$1]}" \
    parallel.device="$device" "${data[@]}" "${turn[@]}"
}

# in_turns NAME SECONDS EARLIER OURS: a command of an earlier version, if there is one, before and after ours.
in_turns() {
  [ -z "$earlier" ] || attempt "earlier $1" "$2" bash -c "$3" || true
  attempt "$1" "$2" bash -c "$4" || true
  [ -z "$earlier" ] || attempt "earlier $1 again" "$2" bash -c "$3" || true
}

# bench_steps SECONDS: of each model, at most so long.
bench_steps() {
  local model
  for model in "${models[@]}"; do in_turns "bench step $model" "$1" "$(step_command "$model" "$earlier")" "$(step_command "$model")"; done
}

# kernels_command LOCKSTEP: what measures all ops with the kernels_bench beside it, medians of turns as JSON; 1 if there is none.
kernels_command() {
  local program=${1%/*}/kernels_bench turns=15
  if [ "$device" = emulated ]; then program+=_emulated turns=2; fi
  [ -x "$program" ] && printf '%q ' "$program" --benchmark_filter="^$device/" --benchmark_format=json --benchmark_repetitions="$turns" --benchmark_report_aggregates_only=true
}

bench_kernels() {
  local ours theirs='' earlier=$earlier
  ours=$(kernels_command "$lockstep") || { skip "kernels_bench is not beside $lockstep: install libbenchmark-dev where it is built" && return; }
  [ -z "$earlier" ] || theirs=$(kernels_command "$earlier") || { skip "kernels_bench is not beside $earlier" && earlier=''; }
  in_turns "bench kernels" 60 "$theirs" "$ours"
}

check_benchmarks() {
  bench_kernels
  if [ "$device" = emulated ]; then
    local data=(data.set=synthetic data.train_samples=64 data.test_samples=16 parallel.grain=1) turn=(--rounds 1 --steps 1)
    local -A batch=([net]=2 [lenet]=2)
  fi
  bench_steps 30
  [ "$device" = emulated ] || optional=yes attempt "bench allreduce nccl" 30 "$lockstep" bench allreduce --backend nccl --max-bytes 16MiB || true
  attempt "bench allreduce mpi" 30 "$mpirun" -np 2 --bind-to none "$lockstep" bench allreduce --backend mpi "${few_sums[@]}" || true
}

# find_torch: a Python with PyTorch that sees the GPU.
find_torch() {
  for python in "${PYTHON:-python3}" /opt/torch/.venv/bin/python3 /usr/bin/python3; do
    if within 30 "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then return 0; fi
  done
  python='' && return 1
}

# check_race: each of two models in half the part's time; both take turns in one run: a round of every mode of PyTorch, then a run of ours.
check_race() {
  local model folder=() seconds=$((${part_seconds[$part]} / 2 - 5))
  if ! find_torch; then skip "race against PyTorch: no python3 with a PyTorch that sees the GPU (PYTHON=... names one)" && return; fi
  [ -z "$mnist" ] || folder=(--data "$mnist")
  for model in "${models[@]}"; do
    attempt "race $model" "$seconds" "$python" "$repo/tests/gpu/versus_torch.py" --model "$model" --batch "${batch[$model]}" "${folder[@]}" \
      --modes "${modes[@]}" --rounds 3 --steps "${theirs:-300}" --budget $((seconds - 40)) --between "$(step_command "$model") >>'$logs/turns-$model.log'" || true
  done
}

# with_resnets COMMAND...: the same with larger models and pictures.
with_resnets() {
  local models=(resnet18 resnet50) turn=(--rounds 1 --steps 8) modes=(fp32 tf32 bf16) theirs=8 mnist='' data=("${pictures[@]}" parallel.grain=32)
  "$@"
}

check_resnets() {
  make_pictures || return
  if ! find_torch; then with_resnets bench_steps 60; fi
  with_resnets check_race
  if [ -n "$python" ]; then attempt "int8 products" 30 "$python" "$repo/tests/gpu/versus_torch.py" --int8; fi
}

# check_profile: where the GPU's counters may be read, which containers often forbid.
check_profile() {
  local ncu log=$logs/ncu.log
  ncu=$(command -v ncu || compgen -G "${CUDA_HOME:-/usr/local/cuda}/bin/ncu") || { skip "Nsight Compute: no ncu (looked on PATH and in CUDA_HOME)" && return; }
  make_pictures || return
  within 90 "$ncu" --clock-control none --target-processes all --launch-count 240 --kernel-name-base function --print-units base \
    --section SpeedOfLight --section Occupancy --section WarpStateStats --csv --log-file "$logs/ncu.csv" "$lockstep" train "$repo/launch/jobs/cifar10.yaml" \
    "${pictures[@]}" model=resnet18 data.global_batch=64 parallel.device="$one" parallel.graph=off train.epochs=1 train.max_steps=1 run.dir="$work/profile" >"$log" 2>&1
  if grep -qs '"Achieved Occupancy"' "$logs/ncu.csv"; then ok "Nsight Compute, resnet18"
  else skip "Nsight Compute measures no kernel here: $(cat "$logs/ncu.csv" "$log" 2>/dev/null | grep -m 1 '==ERROR==' || reason "$log"); log: $log"; fi
}

median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# ours MODEL WAY COLUMN: of `bench step`, the median over its runs; columns from the right: 3 us a step, 2 host us.
ours() { cat "$logs/turns-$1.log" "$logs/bench-step-$1.log" 2>/dev/null | awk -v way="$2" -v column="$3" 'index($0, way) == 1 { print $(NF - column) }' | median; }

# theirs MODEL MODE: microseconds a step, if that mode ran; of several modes, which a pattern names, the fastest.
theirs() { sed -n "s/.*\"mode\": \"$2\", \"us_per_step\": \([0-9.]*\).*/\1/p" "$logs/race-$1.log" 2>/dev/null | sort -g | head -n 1; }

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a > 0 && b > 0) printf "%.2f", a / b }'; }

# row LABEL A B COMMAND: of both models; a number that is not there is a dash.
row() { printf '| %s | %s | %s | %s |\n' "$1" "${2:--}" "${3:--}" "$4"; }

our_row() { row "$1" "$(ours "${models[0]}" "$2" "$3")" "$(ours "${models[1]}" "$2" "$3")" '`bench step`'; }
their_row() { row "$1" "$(theirs "${models[0]}" "$2")" "$(theirs "${models[1]}" "$2")" '`tests/gpu/versus_torch.py`'; }
ratio_of() { ratio "$(theirs "$1" "$2")" "$(ours "$1" 'native, graph' 3)"; }
ratio_row() { row "$1" "$(ratio_of "${models[0]}" "$2")" "$(ratio_of "${models[1]}" "$2")" 'medians of turns'; }

# medians COUNTER LOG: "OP<tab>MEDIAN" of each op that kernels_bench measured; real_time is in microseconds.
medians() {
  awk -F '": ' -v counter="$1" '
    { key = $1; gsub(/[ "]/, "", key); value = $2; gsub(/^"|"?,?$/, "", value) }
    key == "run_name" { op = value; sub(/^[a-z]*\//, "", op); sub(/\/iterations:.*/, "", op) }
    key == "aggregate_name" { is_median = value == "median" }
    key == counter && is_median { print op "\t" value }' "$2" 2>/dev/null
}

# worst MODEL COUNTER: the smallest ratio that an op has, and that op.
worst() {
  medians "$2" "$logs/bench-kernels.log" | awk -F '\t' -v model="$1 " '
    index($1, model) == 1 && (op == "" || $2 < least) { least = $2 + 0; op = substr($1, length(model) + 1) }
    END { if (op != "") printf "%.2f (%s)", least, op }'
}

worst_row() { row "$1" "$(worst net "$2")" "$(worst lenet "$2")" '`kernels_bench`'; }

# us_of LOG...: "OP<tab>MICROSECONDS" of ops and steps.
us_of() {
  local log model
  for log in "$@"; do
    model=${log##*bench-step-}
    case $log in
      *bench-kernels*) medians real_time "$log" ;;
      *) awk -v model="${model%%[-.]*}" '/^native, graph/ { print model " step, graph\t" $(NF - 3) }' "$log" ;;
    esac
  done
}

# changes: each op and each step, microseconds of an earlier version (the less of both turns) and of this one.
changes() {
  awk -F '\t' '
    FNR == NR { if (!($1 in before) || $2 < before[$1]) before[$1] = $2 + 0; next }
    $1 in before { printf "| %s | %.2f | %.2f | %.2f |\n", $1, before[$1], $2, before[$1] / $2 }' \
    <(us_of "$logs"/earlier-bench-{kernels,step}*.log) <(us_of "$logs"/bench-{kernels,step}*.log)
}

print_changes() {
  printf '\nMicroseconds before (%s) and now, in turns.\n\n| op | before | now | before / now |\n|---|---|---|---|\n' "$("$earlier" --version | sed 's/.* //')"
  changes
}

# about_machine: what the numbers were taken on, in one line.
about_machine() {
  local gpu torch
  if [ "$device" = emulated ]; then echo "An emulated GPU; Lockstep $("$lockstep" --version | sed 's/.* //')" && return; fi
  gpu=$(timeout 20 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1 | sed 's/, /, driver /')
  torch=$(cat "$logs"/race-*.log 2>/dev/null | sed -n 's/^{"torch": "\([^"]*\)".*"cudnn": \([0-9]*\).*/PyTorch \1 with cuDNN \2/p' | head -n 1)
  printf '%s; %s; Lockstep %s; %s\n' "${gpu:-GPU unknown}" "$(cuda_versions)" "$("$lockstep" --version | sed 's/.* //')" "${torch:-no PyTorch}"
}

cuda_versions() { grep -oE '[Dd]river [0-9.]+.*untime [0-9.]+' "$logs/devices.log" | head -n 1 | sed 's/^/CUDA: /'; }

print_table() {
  printf '\nMicroseconds a step, fp32, one GPU.\n\n| | Net, batch 64 | LeNet, batch 256 | from |\n|---|---|---|---|\n'
  our_row "Lockstep" "native, graph" 3
  our_row "its part on the host" "native, graph" 2
  our_row "Lockstep, no graph" "native, no graph" 3
  our_row "Lockstep, cuDNN and cuBLAS" "vendor, graph" 3
  their_row "PyTorch, eager" eager
  their_row "PyTorch, whole step in a CUDA graph" graph
  their_row "PyTorch, torch.compile reduce-overhead" compile
  their_row "PyTorch, torch.compile in a CUDA graph" compile-graph
  their_row "PyTorch, torch.compile max-autotune in a CUDA graph" tuned-graph
  ratio_row "PyTorch eager / Lockstep" eager
  ratio_row "PyTorch graph / Lockstep" graph
  ratio_row "PyTorch's fastest / Lockstep" '[a-z-]*'
  worst_row "op by cuDNN or cuBLAS / native, smallest" vendor_ratio
  worst_row "fastest library call alone / native op, smallest" alone_ratio
  [ -z "$earlier" ] || print_changes
}

# print_resnets: of the network and of products alone.
print_resnets() {
  printf '\nMicroseconds a step at 3 x 224 x 224, batch 64.\n\n| | ResNet-18 | ResNet-50 | from |\n|---|---|---|---|\n'
  our_row "Lockstep" "native, graph" 3
  our_row "Lockstep, no graph" "native, no graph" 3
  our_row "Lockstep, cuDNN and cuBLAS" "vendor, graph" 3
  their_row "PyTorch, fp32" fp32
  their_row "PyTorch, TF32" tf32
  their_row "PyTorch, bf16" bf16
  ratio_row "PyTorch fp32 / Lockstep" fp32
  printf '\n| int8 product | TOPS |\n|---|---|\n'
  sed -n 's/.*"int8": "\([^"]*\)", "tops": \([0-9.]*\).*/| \1 | \2 |/p' "$logs/int8-products.log" 2>/dev/null
}

# print_profile: of each kernel, sums over its launches, and means of what Nsight Compute says.
print_profile() {
  printf '\nResNet-18 at 3 x 224 x 224, batch 64, the first 240 launches, kernel by kernel.\n\n| kernel | launches | us | SM %% | memory %% | occupancy %% |\n|---|---|---|---|---|---|\n'
  awk -F '","' '
    /"Metric Value"/ { for (i = 1; i <= NF; ++i) { name = $i; gsub(/"/, "", name); at[name] = i } next }
    !("Metric Value" in at) { next }
    { kernel = $at["Kernel Name"]; metric = $at["Metric Name"]; value = $at["Metric Value"]; gsub(/[",]/, "", value); sum[kernel, metric] += value }
    metric == "Duration" { ++launches[kernel] }
    END { for (kernel in launches) { n = launches[kernel]
      printf "| %s | %d | %.1f | %.0f | %.0f | %.0f |\n", kernel, n, sum[kernel, "Duration"] / 1000, sum[kernel, "Compute (SM) Throughput"] / n,
        sum[kernel, "Memory Throughput"] / n, sum[kernel, "Achieved Occupancy"] / n } }' "$logs/ncu.csv" 2>/dev/null | sort -t '|' -k 4,4gr
}
