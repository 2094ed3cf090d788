// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Choices of a test: one after another from one seed, the same on every machine.
#pragma once

#include "kernels/numerics/random.hpp"

#include <cstdint>
#include <initializer_list>

namespace lockstep::test {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}

  /// In [least, most].
  int between(int least, int most) {
    return least +
           static_cast<int>((std::uint64_t{bits()} * static_cast<std::uint32_t>(most - least + 1)) >> 32);
  }
  bool chance(double probability) { return uniform01(bits()) < probability; }
  float uniform(float low, float high) { return low + (high - low) * uniform01(bits()); }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<int>(values.size()) - 1)];
  }
  std::uint32_t bits() { return philox(seed_, {{next_++, 0, 0x64696365U, 0}}).value[0]; }

 private:
  std::uint64_t seed_;
  std::uint32_t next_ = 0;
};

}  // namespace lockstep::test
