// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The platform under test is this machine's GPU. Without one the whole binary is skipped, and says why.
#include "common/error.hpp"
#include "tests/kernels/device/rig.hpp"

#include <cstdio>

namespace lockstep::test {

const Platform& platform_under_test() {
  return cuda::platform();
}

std::vector<std::uint64_t> thread_orders() {
  return {0, 1};
}

void set_thread_order(std::uint64_t /*seed*/) {}

}  // namespace lockstep::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    lockstep::cuda::platform().devices();
  } catch (const lockstep::DeviceError& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  return RUN_ALL_TESTS();
}
