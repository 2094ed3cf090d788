// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Random choices that depend on the seed and the life alone: the same numbers choose the same blows again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace lockstep::chaos {

class Dice {
 public:
  Dice(std::uint64_t seed, std::int64_t life) {
    std::seed_seq words{seed & 0xffffffffU, seed >> 32U, static_cast<std::uint64_t>(life)};
    engine_.seed(words);
  }

  /// Between `low` and `high`, both included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool percent(int chance) { return between(1, 100) <= chance; }
  template <typename T>
  const T& pick(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }
  template <typename T>
  T& pick(std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace lockstep::chaos
