// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// kernels_bench: on this machine's processor and its GPU.
#include "tests/bench/kernels/bench.hpp"

int main(int argc, char** argv) {
  return lockstep::bench::run_benchmarks(argc, argv, {lockstep::cuda::platform(), lockstep::make_vendor_ops});
}
