// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A network that nobody thought of, with the data, grains and optimiser to train it: everything from one
/// seed.
#pragma once

#include "data/dataset.hpp"
#include "kernels/numerics/random.hpp"
#include "kernels/shapes.hpp"
#include "trainer/config/job.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

namespace lockstep::test {

/// All kinds of layers in any order, 1 to 8 of them and the last one; images from 1x1 to 15x15 with 1 to 5
/// channels, as bytes or as fp32 features; 2 to 12 classes. An epoch is two steps: a full batch of 1 to 100
/// samples, and a tail.
struct RandomCase {
  std::uint64_t seed = 0;
  std::string yaml;
  std::shared_ptr<const TrainTestData> data;
  Job job;        ///< of one rank; device and ranks are the runner's choice
  int ranks = 1;  ///< at most as many as the full batch has grains

  /// The network's YAML and, as comments, the rest: for messages.
  std::string describe() const;
};

/// The same case for the same seed, on every machine.
RandomCase make_random_case(std::uint64_t seed);

// Choices of a test: one after another from one seed, the same on every machine.

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

// The layers of a random network as YAML.

/// "layers: ...", valid for this input and number of classes. Every kind of layer, with options that fit the
/// image it meets. Little enough work that the emulator takes milliseconds a sample.
std::string random_layers(Dice& dice, const ImageShape& input, int classes);

}  // namespace lockstep::test
