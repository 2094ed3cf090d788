// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The random numbers that training starts from: the same bits on every machine.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep {

/// Initial values of one parameter tensor. Element e is made from word e % 4 of
/// philox(seed, {e / 4, 0, random_stream(kInitialise, parameter), 0}), by arithmetic that IEEE 754 rounds the
/// same everywhere: no function of the C library but the square root.
class InitialWeights {
 public:
  /// @param parameter  index of the tensor in the parameter layout
  InitialWeights(std::uint64_t seed, std::uint32_t parameter) : seed_(seed), parameter_(parameter) {}

  /// PyTorch's default for convolutions and linear layers: uniform in [-1/sqrt(fan_in), 1/sqrt(fan_in)).
  void fill_uniform(int fan_in, std::span<float> weights) const;
  /// N(0, std).
  void fill_normal(double std, std::span<float> weights) const;

 private:
  /// Calls make(word) for each element.
  template <typename Make>
  void fill(std::span<float> weights, Make make) const;

  std::uint64_t seed_;
  std::uint32_t parameter_;
};

}  // namespace lockstep
