// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The platform under test is the emulator.
#include "kernels/emulation/thread_order.hpp"
#include "tests/kernels/device/rig.hpp"

namespace lockstep::test {

const Platform& platform_under_test() {
  return emulated::platform();
}

std::vector<std::uint64_t> thread_orders() {
  return {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
}

void set_thread_order(std::uint64_t seed) {
  emulated::set_thread_order(seed);
}

}  // namespace lockstep::test
