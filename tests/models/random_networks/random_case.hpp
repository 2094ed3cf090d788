// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A random network, with the data, grains and optimiser to train it: everything from one
/// seed.
#pragma once

#include "data/dataset.hpp"
#include "kernels/numerics/random.hpp"
#include "kernels/shapes.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"

namespace lockstep::test {

/// All kinds of layers in any order, 1 to 8 of them and the last one. Images from 1x1 to 15x15 with 1 to 5
/// channels, as bytes or as fp32 features; 2 to 12 classes. An epoch is two steps: a full batch of 1 to 100
/// samples, and a tail.
struct RandomCase {
  std::uint64_t seed = 0;
  std::string yaml;
  std::shared_ptr<const TrainTestData> data;
  Job job;        ///< for one rank; the runner chooses device and ranks
  int ranks = 1;  ///< at most as many as the full batch has grains

  /// The network's YAML and, as comments, the rest: for messages.
  std::string describe() const;
};

/// Case of a seed, the same on every machine.
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
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(between(0, static_cast<int>(values.size()) - 1))];
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

// One random network trained by the program's own step engine, and judged by the reference.

/// Results that all devices must agree on to the bit.
struct TrainedBits {
  std::vector<float> weights;
  std::vector<double> losses;  ///< one for each step, and the evaluation's
  std::vector<std::int64_t> correct;
};

struct Comparison {
  std::string mismatch;   ///< empty: everything agrees; otherwise the worst place
  std::int64_t ties = 0;  ///< decisions of relu and max-pool that rounding may turn, in both steps
  double worst = 0;       ///< the largest error as a share of what is allowed
  TrainedBits bits;
};

/// Two steps, the second one of the tail, and an evaluation, on `device` ("cpu" or "emulated"). Losses,
/// correct answers, gradients, momentum and weights against the reference. The reference starts each step
/// from the weights that the engine has, so that errors do not add up. Whatever the engine throws is a
/// mismatch, too.
Comparison try_case(const RandomCase& trial, const std::string& device);

/// Empty if two devices came to the same; else the first difference. Where sums are fp32 (determinism off) there is
/// nothing to compare.
std::string difference(const RandomCase& trial, const Comparison& one, const Comparison& other);

}  // namespace lockstep::test
