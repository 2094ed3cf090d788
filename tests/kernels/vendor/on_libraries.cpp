// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// This machine's GPU with cuDNN and cuBLAS. Without any of them the whole binary is skipped, and says why.
#include "common/error.hpp"
#include "tests/kernels/vendor/vendor_rig.hpp"

#include <cstdio>

namespace lockstep::test {

const Platform& platform_under_test() {
  return cuda::platform();
}

std::vector<std::uint64_t> thread_orders() {
  return {0, 1};
}

void set_thread_order(std::uint64_t /*seed*/) {}

std::unique_ptr<VendorOps> vendor_ops_under_test(Device& device, VendorAlgorithms algorithms) {
  return make_vendor_ops(device, algorithms);
}

std::vector<int> batches_under_test() {
  return {1, 17, 64, 100, 256};
}

}  // namespace lockstep::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    lockstep::test::VendorRig();
  } catch (const lockstep::DeviceError& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  return RUN_ALL_TESTS();
}
