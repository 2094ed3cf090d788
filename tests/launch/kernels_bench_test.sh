#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# kernels_bench: what it measures, and that tests/gpu/benchmarks.sh reads it. Times mean nothing here.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=../gpu/benchmarks.sh
source "$repo/tests/gpu/benchmarks.sh"
bench=$(dirname "${LOCKSTEP_PROGRAM:-$repo/build/release/lockstep}")/kernels_bench
[ -x "$bench" ] || skip "kernels_bench is not built: libbenchmark-dev is not installed"

# measure EXIT_CODE NAMES: two turns of these ops, as JSON in bench-kernels.log.
measure() {
  local program=$bench
  [[ $2 != ^emulated/* ]] || program+=_emulated
  expect_exit "$1" "$program" --benchmark_filter="$2" --benchmark_format=json --benchmark_min_time=0.001 --benchmark_repetitions=2
  echo "$output" >bench-kernels.log
}

Ops_of_a_step_are_measured_beside_the_vendors() {
  local logs=. op counter
  measure 0 '^emulated/net '
  for op in gather "conv1 forward" "conv2 forward" "fc1 forward" "fc2 forward, loss, data gradient" "fc2 weight gradient" "fc1 weight gradient" \
    "fc1 data gradient" "conv2 weight gradient" "conv2 data gradient" "conv1 weight gradient" update "fc2 forward" loss "fc2 data gradient" \
    "conv1 max_pool forward" "conv1 max_pool backward" "conv2 max_pool forward" "conv2 max_pool backward"; do
    echo "net $op"
  done >expected
  expect_equal "$(medians real_time bench-kernels.log | cut -f 1)" "$(cat expected)"
  expect_equal "$(medians limit_us bench-kernels.log | cut -f 1)" "$(cat expected)"
  expect_equal "$(medians vendor_ratio bench-kernels.log | wc -l) $(medians alone_ratio bench-kernels.log | wc -l)" "12 16"
  for counter in vendor_ratio alone_ratio; do
    [[ $(worst net $counter) =~ ^[0-9]+\.[0-9][0-9]" ("[a-z0-9,\ _]+")"$ ]] || fail "the smallest $counter: $(worst net $counter)"
  done
}

Numbers_that_are_not_the_vendors_fail() {
  export FAKE_CUBLAS_IS_WRONG=yes
  measure 1 '^emulated/net (fc1 data|conv2 data)'
  expect_contains "$output" "native and vendor ops differ by"
  expect_equal "$(medians vendor_ratio bench-kernels.log | cut -f 1)" "net conv2 data gradient"
}

Ops_of_a_processor_are_measured_beside_its_peak() {
  measure 0 '^cpu/(Net fc1|relu)'
  expect_equal "$(grep -c '"of_peak"' bench-kernels.log) $(grep -c '"GB/s"' bench-kernels.log)" "$((3 * 6)) $((4 * 6))"
  expect_contains "$output" '"simd": "'
}

Names_that_are_none_and_a_missing_gpu_are_said() {
  measure 1 '^cpu/bogus'
  expect_contains "$output" "Failed to match any benchmarks"
  CUDA_VISIBLE_DEVICES='' expect_says 0 "without_gpu: " "$bench" --benchmark_filter='^cpu/relu' --benchmark_min_time=0.001
  expect_exit 2 "$bench" --device cuda
}

run_tests "$@"
