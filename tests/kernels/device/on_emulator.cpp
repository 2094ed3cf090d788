// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The platform under test is the emulator.
#include "kernels/emulation/order.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/test_settings.hpp"

#include <numeric>

namespace lockstep::test {

const Platform& platform_under_test() {
  return emulated::platform();
}

std::vector<std::uint64_t> thread_orders() {
  std::vector<std::uint64_t> orders(effort(10, 3));
  std::iota(orders.begin(), orders.end(), 0);
  return orders;
}

void set_thread_order(std::uint64_t seed) {
  emulated::set_thread_order(seed);
}

}  // namespace lockstep::test
