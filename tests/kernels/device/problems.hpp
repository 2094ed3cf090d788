// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Problems of the tests of convolutions and linear layers, and their tolerances.
#pragma once

#include "kernels/numerics/sums.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/kernels/layer_problem.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

/// A layer's problem in device memory. Weights and biases lie at odd places of an arena, as those of a model do.
template <class Shape>
class OnDevice {
 public:
  OnDevice(DeviceRig& rig, const LayerProblem<Shape>& p)
      : shape(p.shape),
        x_(rig.upload(p.x)),
        dy_(rig.upload(p.dy)),
        arena_(rig.upload(p.arena())),
        weights_(p.w.size()) {}

  const float* x() const { return x_.data(); }
  const float* dy() const { return dy_.data(); }
  const float* w() const { return arena_.data() + 1; }
  const float* b() const { return w() + weights_; }

  const Shape shape;

 private:
  DeviceBuffer<float> x_, dy_, arena_;
  std::size_t weights_;
};

using Conv2dProblem = LayerProblem<Conv2dShape>;
using Conv2dOnDevice = OnDevice<Conv2dShape>;

/// Exact sums of a layer's dw, then db, then the number of refused terms.
class ExactSums {
 public:
  template <class Shape>
  ExactSums(DeviceRig& rig, const Shape& s, float limit)
      : sums_(rig.zeroed<std::int64_t>(s.weight_size() + outputs_of(s) + 1)),
        refusals_{sums_.data() + sums_.size() - 1},
        gradient{{sums_.data(), {.limit = limit}, refusals_},
                 {sums_.data() + s.weight_size(), {.limit = limit}, refusals_}} {}

  std::vector<std::int64_t> download(DeviceRig& rig) const { return rig.download(sums_); }

 private:
  DeviceBuffer<std::int64_t> sums_;
  Refusals refusals_;

 public:
  const ExactGradient gradient;
};

}  // namespace lockstep::test

namespace lockstep::test::linear_test {

// The ops of a fully connected layer on the device under test.

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Problem = LayerProblem<LinearShape>;

/// Output of an op with an epilogue.
struct Activation {
  std::vector<float> y;
  std::vector<std::uint8_t> mask;
};

/// dw, db, and the count of refused numbers, as integers.
using ExactSums = std::vector<std::int64_t>;

class LinearTest : public testing::Test {
 protected:
  DeviceBuffer<float> arena(const Problem& p) { return rig_.upload(p.arena()); }

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
