// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A seed for the process, and permutations drawn from it with SplitMix64.
#include "kernels/emulation/order.hpp"

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace lockstep {
namespace emulation {
namespace {

struct Seed {
  std::atomic<std::uint64_t> value{0}, version{1};
  Seed() {
    if (const char* text = std::getenv("LOCKSTEP_THREAD_ORDER")) value = std::strtoull(text, nullptr, 10);
  }
};

Seed& seed() {
  static Seed instance;
  return instance;
}

}  // namespace

void Order::refresh() {
  const std::uint64_t version = seed().version;
  if (version == version_) return;
  version_ = version;
  state_ = seed().value;
  natural_ = state_ == 0;
  next_ = generate();
}

std::vector<std::uint32_t> Order::permutation(std::size_t size) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = 0; i + 1 < size; ++i) std::swap(order[i], order[i + draw(size - i)]);
  return order;
}

}  // namespace emulation

void emulated::set_thread_order(std::uint64_t seed) {
  emulation::seed().value = seed;
  ++emulation::seed().version;
}

}  // namespace lockstep
