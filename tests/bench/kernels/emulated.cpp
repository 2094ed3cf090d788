// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// kernels_bench_emulated: on the emulator, with fakes of cuDNN and cuBLAS. Its times mean nothing.
#include "tests/bench/kernels/bench.hpp"

int main(int argc, char** argv) {
  const auto make_vendor = [](lockstep::Device& device, lockstep::VendorAlgorithms algorithms) {
    return std::unique_ptr<lockstep::VendorOps>(lockstep_make_vendor_ops(device, algorithms));
  };
  return lockstep::bench::run_benchmarks(argc, argv, {lockstep::emulated::platform(), make_vendor});
}
