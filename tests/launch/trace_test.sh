#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Traces as users make them: of every strategy, across a stop, on a full disk, and read with Perfetto's own classes by
# $LOCKSTEP_PYTHON, or a virtual environment in build/trace-python, or python3:
#   python3 -m venv build/trace-python && build/trace-python/bin/pip install perfetto protobuf
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
program=${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}
job=$repo/launch/jobs/mnist.yaml
made=(data.set=synthetic data.train_samples=640 data.test_samples=64 data.global_batch=64 parallel.grain=16 train.epochs=1
  parallel.device=cpu run.report=false run.checkpoint_every_steps=0)
export PYTHONDONTWRITEBYTECODE=1

# train RUN KEY=VALUE...: a run of ten steps between threads.
train() {
  expect_exit 0 "$program" train "$job" "${made[@]}" parallel.backend=thread run.dir="$1" "${@:2}"
}

Tracing_changes_no_bit() {
  train without parallel.ranks=4
  local weights=${output##*weights sha256 }
  train with parallel.ranks=4 run.trace=3..5
  expect_contains "$output" "trace: steps 3..5 of 4 ranks in with/trace.pftrace"
  expect_equal "${output##*weights sha256 }" "$weights"
  train pipeline parallel.ranks=2 parallel.strategy=pipeline run.trace=3..5
  expect_equal "${output##*weights sha256 }" "$weights"
  train device parallel.ranks=2 parallel.device=emulated model=linear run.trace=3..3
  expect_file device/trace.pftrace
}

Slices_are_NVTX_ranges_where_a_profiler_listens() {
  local listener
  listener=$(dirname "$program")/tests/trainer/run/nvtx_listener.so
  [ -f "$listener" ] || skip "no NVTX: built without CUDA"
  export NVTX_INJECTION64_PATH=$listener LOCKSTEP_NVTX_FILE=$PWD/ranges
  train run parallel.ranks=2 run.trace=3..4
  expect_equal "$(grep -c '^begin step [34]$' ranges)" 4
  expect_equal "$(grep -c '^begin update$' ranges)" 4
  grep -q '^begin conv1.* forward$' ranges || fail "no range of conv1: $(sort -u ranges | head)"
  expect_equal "$(grep -c '^begin ' ranges)" "$(grep -c '^end$' ranges)"
}

Steps_beyond_the_end_of_the_run_are_refused_before_it_begins() {
  expect_exit 2 "$program" train "$job" "${made[@]}" parallel.backend=thread run.dir=other parallel.ranks=2 run.trace=50..60
  expect_contains "$output" "run.trace: 50..60: the run has 10 steps"
  expect_no_file other
  expect_says 2 "run.trace: 50..60: the run has 10 steps" "$program" validate "$job" "${made[@]}" run.trace=50..60
}

A_trace_that_cannot_be_written_is_a_warning() {
  train run
  mkdir -p run/trace.pftrace/full
  train run run.trace=11..12 train.epochs=2
  expect_contains "$output" "warning: the trace is not written, the run goes on without it"
  expect_contains "$output" "weights sha256"
}

Perfetto_reads_the_overlap_that_the_bench_measured() {
  find_python trace perfetto.protos.perfetto.trace.perfetto_trace_pb2
  "$program" bench step "$job" "${made[@]}" data.train_samples=6400 parallel.backend=thread parallel.ranks=4 --rounds 1 \
    --steps 40 --json --trace steps.pftrace >bench.json || fail "bench step failed"
  expect_exit 0 "$python" "$repo/tests/trainer/run/overlap.py" steps.pftrace bench.json
  echo "${output##*$'\n'}"
  local name
  for name in "step 60" "conv2 sums" "fc1 forward" "all-reduce of bucket 0" "update"; do expect_contains "$output" "\"$name\""; done
}

run_tests "$@"
