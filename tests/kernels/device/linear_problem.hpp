// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A fully connected layer's arguments, and its ops on the device under test.
#pragma once

#include "tests/kernels/device/rig.hpp"
#include "tests/kernels/reference/linear.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::test::linear_test {

inline constexpr std::uint64_t kSeed = 20260511;
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline std::string describe(const LinearShape& s) {
  std::ostringstream text;
  text << "seed " << kSeed << ", batch " << s.batch << ", " << s.in_features << " inputs, " << s.out_features
       << " outputs";
  return text.str();
}

inline std::size_t in_size(const LinearShape& s) {
  return static_cast<std::size_t>(s.in_features) * static_cast<std::size_t>(s.batch);
}
inline std::size_t out_size(const LinearShape& s) {
  return static_cast<std::size_t>(s.out_features) * static_cast<std::size_t>(s.batch);
}

/// The arguments of all three directions.
struct Problem {
  explicit Problem(const LinearShape& s)
      : shape(s),
        x(reference::random_numbers(kSeed, 1, in_size(s))),
        w(reference::random_numbers(kSeed, 2, s.weight_size())),
        b(reference::random_numbers(kSeed, 3, static_cast<std::size_t>(s.out_features))),
        dy(reference::random_numbers(kSeed, 4, out_size(s))) {}

  /// The same layer on columns [first, first + count).
  Problem columns(int first, int count) const {
    Problem part = *this;
    part.shape.batch = count;
    part.x = columns_of(x, first, count);
    part.dy = columns_of(dy, first, count);
    return part;
  }
  template <typename T>
  std::vector<T> columns_of(const std::vector<T>& from, int first, int count) const {
    std::vector<T> part;
    for (std::size_t row = 0; row < from.size(); row += static_cast<std::size_t>(shape.batch)) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(row) + first;
      part.insert(part.end(), begin, begin + count);
    }
    return part;
  }

  LinearShape shape;
  std::vector<double> x, w, b, dy;
};

/// What an op with an epilogue writes.
struct Activation {
  std::vector<float> y;
  std::vector<std::uint8_t> mask;
};

/// dw, db, and the count of refused numbers, as integers.
using ExactSums = std::vector<std::int64_t>;

class LinearTest : public testing::Test {
 protected:
  /// Weights and biases one after another, from an address that is aligned to nothing but a float.
  DeviceBuffer<float> arena(const Problem& p) {
    std::vector<double> numbers = {NAN};
    numbers.insert(numbers.end(), p.w.begin(), p.w.end());
    numbers.insert(numbers.end(), p.b.begin(), p.b.end());
    return rig_.upload(numbers);
  }

  Activation forward(const Problem& p, const Epilogue& epilogue = {}) {
    const auto x = rig_.upload(p.x), weights = arena(p);
    const auto y = rig_.poisoned<float>(p.dy.size());
    const auto mask = rig_.poisoned<std::uint8_t>(p.dy.size());
    const auto state = rig_.upload(std::vector<StepState>{state_});
    const float* w = weights.data() + 1;
    rig_.ops().linear_forward(rig_.stream(), p.shape, x.data(), w, w + p.w.size(), epilogue, state.data(),
                              y.data(), mask.data());
    return {rig_.download(y), rig_.download(mask)};
  }

  Activation epilogue_alone(const Problem& p, const std::vector<float>& sums, const Epilogue& epilogue) {
    const auto x = rig_.upload(sums);
    const auto y = rig_.poisoned<float>(sums.size());
    const auto mask = rig_.poisoned<std::uint8_t>(sums.size());
    const auto state = rig_.upload(std::vector<StepState>{state_});
    rig_.ops().epilogue_forward(rig_.stream(), {p.shape.out_features, 1, 1}, p.shape.batch, x.data(),
                                epilogue, state.data(), y.data(), mask.data());
    return {rig_.download(y), rig_.download(mask)};
  }

  std::vector<float> backward_data(const Problem& p, const EpilogueBackward* expand, std::size_t dx_size) {
    const auto dy = rig_.upload(p.dy), weights = arena(p);
    const auto dx = rig_.poisoned<float>(dx_size);
    rig_.ops().linear_backward_data(rig_.stream(), p.shape, dy.data(), weights.data() + 1, expand, dx.data());
    return rig_.download(dx);
  }
  std::vector<float> backward_data(const Problem& p) { return backward_data(p, nullptr, p.x.size()); }

  std::vector<float> expand_alone(const EpilogueBackward& expand, int batch,
                                  const std::vector<float>& gradient, std::size_t dx_size) {
    const auto dy = rig_.upload(gradient);
    const auto dx = rig_.poisoned<float>(dx_size);
    rig_.ops().epilogue_backward(rig_.stream(), expand, batch, dy.data(), dx.data());
    return rig_.download(dx);
  }

  /// Adds to sums that start as `before`, or as 0.
  ExactSums backward_weights(const Problem& p, int grain, ExactSums before = {}) {
    before.resize(p.w.size() + p.b.size() + 1);
    const auto x = rig_.upload(p.x), dy = rig_.upload(p.dy);
    const auto sums = rig_.upload(before);
    std::int64_t* const db = sums.data() + p.w.size();
    rig_.ops().linear_backward_weights(
        rig_.stream(), p.shape, grain, x.data(), dy.data(),
        {{sums.data(), exact_format(64), {db + p.b.size()}}, {db, exact_format(64), {db + p.b.size()}}});
    return rig_.download(sums);
  }

  DeviceRig rig_;
  StepState state_ = [] {
    StepState state;
    state.step = 4711;
    return state;
  }();
};

}  // namespace lockstep::test::linear_test
