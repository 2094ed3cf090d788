// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A seed for the process, and permutations drawn from it with SplitMix64.
#include "kernels/emulation/order.hpp"

#include "kernels/emulation/thread_order.hpp"

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

std::uint64_t splitmix64(std::uint64_t& state) {
  std::uint64_t z = state += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

}  // namespace

void Order::refresh() {
  const std::uint64_t version = seed().version;
  if (version == version_) return;
  version_ = version;
  state_ = seed().value;
  natural_ = state_ == 0;
}

std::size_t Order::draw(std::size_t bound) {
  if (natural_) return 0;
  return static_cast<std::size_t>(((splitmix64(state_) >> 32) * bound) >> 32);
}

void Order::permutation(std::size_t size, std::vector<std::uint32_t>& order) {
  order.resize(size);
  std::iota(order.begin(), order.end(), 0U);
  if (natural_) return;
  for (std::size_t i = 0; i + 1 < size; ++i) std::swap(order[i], order[i + draw(size - i)]);
}

}  // namespace emulation

void emulated::set_thread_order(std::uint64_t seed) {
  emulation::seed().value = seed;
  ++emulation::seed().version;
}

}  // namespace lockstep
