#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# tests/gpu/run itself, without a GPU: in a folder that looks like a bundle, with stand-ins for the program and all tools.
# shellcheck disable=SC2016  # the stand-ins expand their own variables
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

# Stand-in for the program. A training writes the weights, and losses that fall a little; ODD names the key=value that
# makes another result, BROKEN and ABSENT those that end with exit codes 70 and 69.
program='
case "$1 ${2:-}" in
  "--version "*) echo "lockstep 0.0.0"; exit ;;
  "devices "*) [ -z "${NO_GPU:-}" ] || { echo "lockstep: $NO_GPU" >&2; exit 69; }; echo "1 GPU; driver 13.0, runtime 13.0"; exit ;;
  "bench step") printf "%s\n" "native, graph  20.00 0.10 1 1" "native, no graph 60.00 50.00 1 1"; exit ;;
  "bench allreduce") [[ ${ABSENT:-} != *nccl* || $* != *nccl* ]] || { echo "lockstep: no NCCL" >&2; exit 69; }; exit ;;
  bench*) exit ;;
  prove*) echo "refuted at step 3, bucket 0, conv1.weight"; exit 1 ;;
esac
all=" $* "
[ -z "${BROKEN:-}" ] || [[ $all != *" $BROKEN "* ]] || exit 70
for absent in ${ABSENT:-} parallel.device=cuda:99; do
  if [[ $all == *" $absent "* ]]; then echo "lockstep: no $absent" >&2 && exit 69; fi
done
if [[ $all == *" parallel.ranks=2 "* && -n ${HANGS:-} ]]; then exec sleep 60; fi
[ -z "${CUDA_FORCE_PTX_JIT:-}" ] || echo "$all" >>"$HOME/jit"
if [[ $all == *inject.what=die* ]]; then echo "verdict: rank 1 on here is dead" && exit "${KILLED:-137}"; fi
if [[ $all == *backend=nccl* ]] && [ -n "${NCCL_MULTI_RANK_GPU_ENABLE:-}" ]; then
  echo "$(readlink "${LD_LIBRARY_PATH%%:*}/libnccl.so.2") queues=${CUDA_DEVICE_MAX_CONNECTIONS:-8} ranks=${RANKS:-1} $all" >>"$HOME/nccl"
  echo "2 ranks on 1 host; gradients: ${WAY:-NCCL 2.30.7: ranks 0 and 1 share GPU-0 on here, for tests}"
  echo "activations and their gradients: ${WAY:-NCCL 2.30.7, from GPU to GPU}"
elif [ -n "${RANKS:-}" ] && [[ $all == *backend=nccl* ]]; then echo "lockstep: two ranks on one GPU" >&2; exit 69; fi
for argument in "$@"; do if [[ $argument == run.dir=* ]]; then folder=${argument#run.dir=}; fi; done
shift_by=0
[ -z "${ODD:-}" ] || [[ $all != *" $ODD "* ]] || shift_by=2
mkdir -p "$folder"
for ((step = 1; step <= 120; ++step)); do echo "{\"event\":\"step\",\"step\":$step,\"loss\":1.$((1000 - step + shift_by))}"; done >"$folder/metrics.jsonl"
echo "{\"event\":\"epoch\",\"train_loss\":0.5}" >>"$folder/metrics.jsonl"
echo "{\"event\":\"end\",\"weights_sha256\":\"abc$shift_by\"}" >>"$folder/metrics.jsonl"
case "$all $shift_by" in
  *"${UNPUBLISHED:-none}"*) ;;
  *" 0") echo "the published hash: yes (a job)" ;;
  *) echo "the published hash: no; a job comes to abc0" ;;
esac'

# kernels_bench_taking US: a stand-in for kernels_bench, by which ops take once, twice and three times as many microseconds.
kernels_bench_taking() {
  local op aggregate times
  echo 'cat <<JSON
{
  "context": {
    "gpu": "Test"
  },
  "benchmarks": ['
  for op in "1 net fc1 forward" "3 net fc2 forward, loss, data gradient" "2 net update" "2 lenet update"; do
    for aggregate in mean median; do
      times=$([ $aggregate = median ] && echo 1 || echo 9)
      printf '    {\n      "name": "x",\n      "run_name": "cuda/%s/iterations:1/manual_time",\n      "aggregate_name": "%s",\n' "${op#* }" $aggregate
      printf '      "real_time": %s.0e+00,\n      "alone_ratio": %s.0e-01,\n      "vendor_ratio": 1.2e+00\n    },\n' $(($1 * ${op%% *} * times)) $((9 - ${op%% *}))
    done
  done
  printf '  ]\n}\nJSON\n'
}

make_world() {
  mkdir -p bundle/{launch,tests} bin
  cp -r "$repo/tests/gpu" "$repo/tests/results.sh" bundle/tests/
  stand_in bundle/tests/arithmetic/run 'echo "$JOBS ${LOCKSTEP_PROGRAM##*/} $*: 82 of 82 runs"'
  cp "$repo/launch/lib.sh" bundle/launch/
  stand_in bundle/bin/lockstep "$program"
  stand_in bundle/bin/kernels_bench "$(kernels_bench_taking 2)"
  stand_in bundle/bin/mpirun 'while [[ $1 != */lockstep && $1 != sh ]]; do shift; done; RANKS=2 exec "$@"'
  stand_in bundle/libexec/a_gpu_test 'printf "[  SKIPPED ] A.Case (0 ms)\n"'
  stand_in bundle/libexec/b_gpu_test '[ -n "$RANKS" ]'
  : >bundle/libexec/environment.sh
  printf '%s\n' "a_gpu_test 0 a_gpu_test" "b_gpu_test_np2 2 b_gpu_test" >bundle/tests/gpu/tests.txt
  stand_in bin/nvidia-smi 'if [ "$1" = -L ]; then echo "GPU 0: NVIDIA Test (UUID: GPU-0)"; else echo "NVIDIA Test, 1.2.3"; fi'
  stand_in bin/compute-sanitizer 'echo "$* shards=${GTEST_TOTAL_SHARDS:-all} ${OUT:+$(ls "$OUT")}" >>"$HOME/calls"
    if [[ ${DETACHED:-} = "$2" ]]; then echo "========= Error: Unable to attach"; exit "${DETACHED_CODE:-1}"; fi
    if [[ ${RACE:-} = "$2" ]] && [ -z "${GTEST_TOTAL_SHARDS:-}" ]; then echo "========= Error: Race reported"; code=86; fi
    echo "========= ERROR SUMMARY: ${code:-0} errors"; exit "${code:-0}"'
  stand_in bin/ncu 'while [ "$1" != --log-file ]; do shift; done
    printf "%s\n" "==PROF== Connected" "\"ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"" >"$2"
    [ -z "${NO_COUNTERS:-}" ] || { echo "==ERROR== ERR_NVGPUCTRPERM" >"$2"; exit 1; }
    for id in 0 1; do printf "\"$id\",\"%s\",\"x\",\"%s\",\"\",\"%s\"\n" conv Duration 1,500 conv "Compute (SM) Throughput" "$((60 + 10 * id)).0" \
      conv "Memory Throughput" 20 conv "Achieved Occupancy" 50; done >>"$2"'
  stand_in bin/python3 'all=$*; case $all in
    -c*) [ -z "${NO_TORCH:-}" ] ;;
    *--shards*) mkdir -p "$3" && : >"$3/shards.index" ;;
    *--int8*) printf "%s\n" "{\"int8\": \"8x8x8\", \"tops\": 1234.5}" ;;
    *resnet*) printf "%s\n" "{\"mode\": \"fp32\", \"us_per_step\": 40.0}" "{\"mode\": \"bf16\", \"us_per_step\": 10.0}"
      eval "${all##*--between }" ;;
    *) printf "%s\n" "{\"torch\": \"9.9\", \"device\": \"x\", \"cudnn\": 999}" "{\"mode\": \"eager\", \"us_per_step\": 500.0}" "{\"mode\": \"graph\", \"us_per_step\": 90.0}" ;;
  esac'
  unset OUT CUDA_HOME LOCKSTEP_DATA LOCKSTEP_NCCL XDG_CACHE_HOME PYTHON JOBS
}

gpu_run() { bundle/tests/gpu/run "$@"; }

# expect_times: the parts of a command, of which $output tells, take less than ten minutes, and as long as docs/testing.md says.
expect_times() {
  local sum part seconds
  sum=$(sed -n 's/^==> .*; at most \([0-9]*\) s$/\1/p' <<<"$output" | awk '{ sum += $1 } END { print sum }')
  expect_contains "$output" ": together at most $sum s"
  while read -r part seconds; do expect_contains "$(cat "$repo/docs/testing.md")" "| \`$part\` | $seconds |"
  done < <(sed -n 's/^==> \([a-z]*\): .*; at most \([0-9]*\) s$/\1 \2/p' <<<"$output")
  if [ "$sum" -lt 400 ] || [ "$sum" -gt 550 ]; then fail "the parts may take $sum s"; fi
}

Gpu_suite_compares_weights_in_its_first_command() {
  make_world
  OUT=$PWD/out expect_exit 0 gpu_run correct
  expect_times
  expect_contains "$output" "skipped: tests: a_gpu_test: A.Case"
  expect_contains "$output" "skipped: training: 2 GPUs, and pipelines over NCCL: there is one GPU"
  expect_contains "$output" "6 lockstep --steps 50 --devices cuda: 82 of 82 runs"
  local network
  for network in resnet20 resnet18 resnet50 mobilenet_v2; do
    for way in "" ", no graph" ", streamed" ", 2 ranks, replays"; do expect_contains "$output" "ok      same bits, $network$way"; done
  done
  expect_contains "$output" "ok      same bits, mobilenet_v2 at 224"
  expect_contains "$(cat jit)" "parallel.device=cuda"
  [[ $(tail -n 1 <<<"$output") =~ ^[0-9]+" passed, 0 failed, 2 skipped"$ ]] || fail "last line: $(tail -n 1 <<<"$output")"
  expect_contains "$(cat out/correct.md)" "| networks | same bits, resnet18, streamed | ok |"
  expect_contains "$(tar -tzf out/correct-logs.tar.gz)" correct/machine.log
  ODD=data.on_device=stream expect_says 1 "failed:  networks: same bits, resnet50, streamed: other weights than resnet50 on the CPU" gpu_run networks
}

Gpu_suite_measures_in_its_third_command() {
  make_world
  OUT=$PWD/out expect_exit 0 gpu_run speed
  expect_times
  expect_contains "$output" "| Lockstep | 20.00 | 20.00 |"
  expect_contains "$output" "| op by cuDNN or cuBLAS / native, smallest | 1.20 (fc1 forward) | 1.20 (update) |"
  expect_contains "$output" "| fastest library call alone / native op, smallest | 0.60 (fc2 forward, loss, data gradient) | 0.70 (update) |"
  expect_contains "$output" "| PyTorch eager / Lockstep | 25.00 | 25.00 |"
  expect_contains "$output" "| PyTorch, bf16 | 10.0 | 10.0 |"
  expect_contains "$output" "| PyTorch fp32 / Lockstep | 2.00 | 2.00 |"
  expect_contains "$output" "| 8x8x8 | 1234.5 |"
  expect_contains "$output" "| conv | 2 | 3.0 | 65 | 20 | 50 |"
  expect_contains "$output" "NVIDIA Test, driver 1.2.3; CUDA: driver 13.0, runtime 13.0; Lockstep 0.0.0; PyTorch 9.9 with cuDNN 999"
  expect_contains "$(cat out/speed.md)" "| 8x8x8 | 1234.5 |"
  NO_COUNTERS=1 NO_TORCH=1 expect_exit 0 gpu_run resnets profile
  expect_contains "$output" "skipped: profile: Nsight Compute measures no kernel here: ==ERROR== ERR_NVGPUCTRPERM"
  expect_contains "$output" "skipped: resnets: race against PyTorch: no python3"
  expect_contains "$output" "| Lockstep | 20.00 | 20.00 |"
}

Gpu_suite_shows_what_has_changed_since_an_earlier_program() {
  make_world
  stand_in old/lockstep '[ "$1" != --version ] || { echo "lockstep 0.0.1"; exit; }
    [ "$2" != step ] || printf "%s\n" "native, graph  30.00 0.10 1 1" "native, no graph 90.00 50.00 1 1"'
  stand_in old/kernels_bench "if [ -e '$PWD/turn' ]; then $(kernels_bench_taking 4)
else : >'$PWD/turn'; $(kernels_bench_taking 5)
fi"
  expect_says 0 "| net fc1 forward | 4.00 | 2.00 | 2.00 |" gpu_run --earlier old/lockstep benchmarks
  expect_contains "$output" "| net fc2 forward, loss, data gradient | 12.00 | 6.00 | 2.00 |"
  expect_contains "$output" "| lenet step, graph | 30.00 | 20.00 | 1.50 |"
  expect_contains "$output" "Microseconds before (0.0.1) and now"
  expect_exit 66 gpu_run --earlier old benchmarks
  rm old/kernels_bench
  expect_says 0 "skipped: benchmarks: kernels_bench is not beside $PWD/old/lockstep" gpu_run --earlier old/lockstep benchmarks
  expect_contains "$output" "ok      bench kernels"
  expect_lacks "$output" "| net fc1 forward | 4.00 |"
  rm bundle/bin/kernels_bench
  expect_says 0 "skipped: benchmarks: kernels_bench is not beside $PWD/bundle/bin/lockstep: install libbenchmark-dev" gpu_run benchmarks
}

Gpu_suite_takes_the_programs_of_an_archive() {
  make_world
  mkdir -p clone/{launch,tests,build/bundle} && cp -r bundle/tests/{gpu,arithmetic,results.sh} clone/tests/ && cp bundle/launch/lib.sh clone/launch/
  rm clone/tests/gpu/tests.txt && mv bundle lockstep
  tar -czf clone/build/bundle/lockstep.tar.gz lockstep && rm -r lockstep
  expect_says 0 "ok      b_gpu_test_np2" clone/tests/gpu/run tests
  echo broken >clone/build/bundle/lockstep.tar.gz
  expect_says 65 "lockstep.tar.gz cannot be unpacked" clone/tests/gpu/run tests
}

Gpu_suite_hands_over_after_every_part() {
  make_world
  OUT=$PWD/out expect_exit 0 gpu_run tests sanitizer
  expect_contains "$(cat calls)" "tests-sanitizer.md"
  rm -r out calls
  stand_in bundle/libexec/a_gpu_test 'exit 1'
  stand_in bin/compute-sanitizer 'kill -KILL "$(cat "$HOME/pid")"'
  { OUT=$PWD/out bash -c 'echo $$ >pid; exec bundle/tests/gpu/run tests sanitizer' >/dev/null; } 2>/dev/null
  expect_contains "$(cat out/tests-sanitizer.md)" "failed:  tests: a_gpu_test: exit code 1"
  expect_contains "$(tar -tzf out/tests-sanitizer-logs.tar.gz)" a_gpu_test.log
}

Gpu_suite_lets_memcheck_pass_calls_that_tests_make_wrong_on_purpose() {
  make_world
  expect_exit 0 gpu_run sanitizer
  expect_contains "$(grep memcheck calls)" "--report-api-errors no"
  expect_lacks "$(grep racecheck calls)" "--report-api-errors"
  expect_equal "$(sed -n 's/^--tool \([a-z]*\) .*shards=all.*/\1/p' calls | sort | xargs)" "initcheck memcheck racecheck synccheck"
  expect_lacks "$(cat calls)" b_gpu_test
}

Gpu_suite_tries_a_sanitizer_that_cannot_attach_once() {
  make_world
  for DETACHED_CODE in 0 1; do
    rm -f calls
    DETACHED=racecheck DETACHED_CODE=$DETACHED_CODE expect_exit 0 gpu_run sanitizer
    expect_contains "$output" "skipped: sanitizer: racecheck: compute-sanitizer cannot attach here: ========= Error: Unable to attach"
    expect_contains "$output" "ok      memcheck a_gpu_test"
    expect_equal "$(grep -c racecheck calls)" 1
  done
}

Gpu_suite_without_a_gpu_says_why_and_runs_nothing() {
  make_world
  NO_GPU="the driver is too old" expect_exit 69 gpu_run
  expect_equal "$output" "run: no GPU: the driver is too old; nothing run"
  rm bin/nvidia-smi
  if [ -e /dev/nvidiactl ] || command -v nvidia-smi >/dev/null; then return; fi
  expect_exit 69 gpu_run
  expect_equal "$output" "run: no GPU: this machine has no NVIDIA driver; nothing run"
}

Gpu_suite_waits_half_a_minute_for_an_nvidia_smi_that_hangs() {
  make_world
  stand_in bin/nvidia-smi 'echo "GPU 0: NVIDIA Test (UUID: GPU-0)"; exec sleep 60'
  # shellcheck disable=SC2162,SC2317  # its options are the caller's, which is list_gpus
  read() { builtin read "${@/#30/0.3}"; }
  export -f read
  expect_exit 69 timeout 30 bundle/tests/gpu/run
  expect_equal "$output" \
    "run: no GPU: nvidia-smi -L has not answered in 30 s, as with a broken driver: see dmesg, and restart the machine; nothing run"
}

Gpu_suite_sees_other_weights_and_that_nothing_is_published() {
  make_world
  ODD=parallel.graph=off UNPUBLISHED=data-parallel-tutorial expect_says 1 "failed:  training: same bits, no graph: other weights" gpu_run training
  expect_contains "$output" "failed:  training: same bits, 2 ranks on one, no graph: other weights"
  expect_contains "$output" "ok      same bits, 20 repetitions"
  expect_contains "$output" "failed:  training: published-linear-cpu: the published hash: no; nothing is said of it"
}

Gpu_suite_sees_where_gpu_cpu_and_published_weights_part() {
  local place
  make_world
  ODD=parallel.device=cpu expect_says 1 "loss curve, gpu: not the CPU's within 1e-3" gpu_run training
  expect_contains "$output" "failed:  training: same bits, gpu and CPU: other weights: refuted at step 3, bucket 0, conv1.weight; logs: "
  for place in linear net; do
    expect_contains "$output" "failed:  training: published-$place-cpu: the published hash: no"
    expect_contains "$output" "ok      published-$place-cuda: the published hash: yes"
  done
  expect_contains "$output" "ok      published-linear-emulated: the published hash: yes"
}

Gpu_suite_goes_on_after_a_failure() {
  make_world
  BROKEN=parallel.kernels=vendor RACE=racecheck expect_exit 1 gpu_run sanitizer training race
  expect_contains "$output" "failed:  sanitizer: racecheck a_gpu_test: exit code 86: ========= Error: Race reported"
  expect_contains "$output" "ok      memcheck a_gpu_test"
  expect_contains "$output" "failed:  training: loss curve, vendor: exit code 70"
  expect_contains "$output" "ok      race lenet"
}

Gpu_suite_skips_libraries_that_are_not_there() {
  make_world
  ABSENT="parallel.kernels=vendor parallel.backend=nccl parallel.graph=off" expect_exit 1 gpu_run training benchmarks
  expect_contains "$output" "skipped: training: loss curve, vendor: lockstep: no parallel.kernels=vendor"
  expect_contains "$output" "skipped: training: same bits, NCCL, 1 rank: lockstep: no parallel.backend=nccl"
  expect_contains "$output" "skipped: benchmarks: bench allreduce nccl: lockstep: no NCCL"
  expect_contains "$output" "failed:  training: same bits, no graph: exit code 69"
}

Gpu_suite_runs_nccl_between_ranks_that_share_a_gpu() {
  make_world
  expect_says 66 "NCCL 2.30 or newer is not at $PWD/bundle/build/nccl/libnccl.so.2" gpu_run nccl
  LOCKSTEP_NCCL=nowhere.so expect_exit 66 gpu_run nccl
  : >libnccl-2.30.so
  echo "nccl_all_reduce_gpu_test 0 a_gpu_test" >>bundle/tests/gpu/tests.txt
  export LOCKSTEP_NCCL=libnccl-2.30.so
  expect_exit 0 gpu_run nccl
  expect_times
  local way
  for way in "buckets, 2 processes" "buckets, no graph, 4 processes" "batch_norm, 2 processes" "batch_norm, no graph, 3 processes" "3 stages, gpipe, 3 processes" \
    "2 stages twice, 4 processes" "stages 0-1-0-1, one queue, 2 processes" "buckets, sockets, 2 processes" "buckets, 2 threads" "batch_norm, 2 threads"; do
    expect_contains "$output" "ok      same bits, NCCL, $way"
  done
  expect_contains "$output" "ok      NCCL, a killed rank is named"
  expect_contains "$output" "ok      bench allreduce nccl, 3 processes"
  expect_contains "$output" "ok      nccl_all_reduce_gpu_test"
  expect_contains "$output" "ok      memcheck a_gpu_test"
  expect_lacks "$output" "ok      a_gpu_test"
  expect_equal "$(cut -d ' ' -f 1 nccl | sort -u)" "$PWD/libnccl-2.30.so"
  expect_equal "$(grep -c 'queues=1 ' nccl)" 2
  # Processes first: threads may hang.
  expect_equal "$(sed -n 's/.* \(ranks=2\|parallel.ranks\)[ =].*/\1/p' nccl | uniq | xargs)" "ranks=2 parallel.ranks"
  [[ $(tail -n 1 <<<"$output") =~ ^[0-9]+" passed, 0 failed, 1 skipped"$ ]] || fail "last line: $(tail -n 1 <<<"$output")"
}

Gpu_suite_skips_threads_that_hang() {
  make_world
  export LOCKSTEP_NCCL=$PWD/bundle/libexec/environment.sh
  sed -i 's/train_seconds=12/train_seconds=3/' bundle/tests/gpu/nccl.sh
  HANGS=1 expect_says 0 "skipped: threads: same bits, NCCL, buckets, 2 threads: it may hang, and did: took too long" gpu_run threads processes
  expect_contains "$output" "ok      same bits, NCCL, buckets, 2 processes"
  ODD=parallel.ranks=2 expect_says 1 "failed:  threads: same bits, NCCL, buckets, 2 threads: other weights than shared" gpu_run threads
}

Gpu_suite_sees_that_nccl_is_not_what_ranks_share_a_gpu_over() {
  make_world
  : >libnccl-2.30.so
  export LOCKSTEP_NCCL=libnccl-2.30.so
  WAY="mpi through pinned memory" ODD=parallel.graph=off KILLED=0 expect_exit 1 gpu_run nccl
  expect_contains "$output" "failed:  threads: NCCL, buckets, 2 threads: the ranks do not share a GPU over NCCL"
  expect_contains "$output" "failed:  processes: NCCL, 2 stages, 2 processes: stages do not talk over NCCL"
  expect_contains "$output" "failed:  processes: same bits, NCCL, buckets, no graph, 3 processes: other weights than shared"
  expect_contains "$output" "failed:  processes: NCCL, a killed rank: exit code 0"
  expect_contains "$output" "ok      same bits, NCCL, buckets, 2 processes"
}

Gpu_suite_gives_the_programs_reason_and_not_mpiruns_line() {
  make_world
  local box='printf -- "----------\nmpirun detected that one or more processes exited\n\n  Exit code: 70\n----------\n"'
  stand_in bundle/libexec/b_gpu_test "echo 'bits differ'; $box; exit 70"
  expect_says 1 "failed:  tests: b_gpu_test_np2: exit code 70: bits differ; log: " gpu_run tests
  stand_in bundle/libexec/b_gpu_test "echo 'lockstep: rank 1 died'; echo 'and more'; $box; exit 71"
  expect_says 1 "b_gpu_test_np2: exit code 71: lockstep: rank 1 died; log: " gpu_run tests
  stand_in bundle/libexec/b_gpu_test "$box; exit 1"
  expect_says 1 "b_gpu_test_np2: exit code 1: mpirun detected that one or more processes exited; log: " gpu_run tests
}

Gpu_suite_stops_a_part_when_its_time_is_over() {
  make_world
  expect_contains "$(timeout 30 bundle/tests/gpu/run correct training race)" "tests training arithmetic networks training race: together at most 550 s"
  stand_in bundle/libexec/a_gpu_test 'trap : TERM; for i in {1..60}; do sleep 1; done'
  sed -i 's/\[tests\]=[0-9]*/[tests]=1/' bundle/tests/gpu/run
  expect_says 1 "failed:  tests: a_gpu_test: took too long" gpu_run tests
  sed -i 's/^run_seconds=.*/run_seconds=0/' bundle/tests/gpu/run
  expect_says 1 "failed:  training: training on the CPU" gpu_run training
}

Gpu_suite_refuses_what_it_does_not_know() {
  make_world
  expect_exit 2 gpu_run trainin
  expect_exit 2 gpu_run --device tpu
  expect_says 2 "--build needs a folder" gpu_run --build '' tests
  expect_exit 66 gpu_run --earlier no/such benchmarks
  expect_equal "$output" "run: no program $PWD/no/such: build the earlier version first"
  rm bundle/libexec/environment.sh # in a clone, then
  expect_exit 66 gpu_run --build no/such tests
  expect_equal "$output" "run: no program $PWD/no/such/lockstep: launch/build"
}

run_tests "$@"
