// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers with weights on a device: their problems, their ops by one name for both kinds, and exact sums.
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

/// The ops of a layer, for std::invoke.
template <class Shape>
struct OpsOf;

template <>
struct OpsOf<Conv2dShape> {
  static constexpr auto kForward = &DeviceOps::conv2d_forward;
  static constexpr auto kBackwardWeights = &DeviceOps::conv2d_backward_weights;
  static void backward_data(DeviceOps& ops, Stream& stream, const Conv2dShape& shape, const float* dy,
                            const float* w, const EpilogueBackward* expand, float* dx) {
    ops.conv2d_backward_data(stream, shape, dy, w, nullptr, expand, dx);
  }
};

template <>
struct OpsOf<LinearShape> {
  static constexpr auto kForward = &DeviceOps::linear_forward;
  static constexpr auto kBackwardWeights = &DeviceOps::linear_backward_weights;
  static void backward_data(DeviceOps& ops, Stream& stream, const LinearShape& shape, const float* dy,
                            const float* w, const EpilogueBackward* expand, float* dx) {
    ops.linear_backward_data(stream, shape, dy, w, expand, dx);
  }
};

/// The output of a layer, of each sample.
inline ImageShape output_image(const Conv2dShape& s) {
  return {s.out_channels, s.out_height(), s.out_width()};
}
inline ImageShape output_image(const LinearShape& s) {
  return {s.out_features, 1, 1};
}

/// Exact sums of a layer's dw, then db, then the number of refused terms.
class ExactSums {
 public:
  /// @param before  what they start as; empty: zeros
  template <class Shape>
  ExactSums(DeviceRig& rig, const Shape& s, float limit, std::vector<std::int64_t> before = {})
      : rig_(rig), weights_(s.weight_size()), sums_([&] {
          before.resize(weights_ + outputs_of(s) + 1);
          return rig.upload(before);
        }()) {
    const ExactFormat format = {.limit = limit};
    const Refusals refusals = {sums_.data() + sums_.size() - 1};
    gradient = {{sums_.data(), format, refusals}, {sums_.data() + weights_, format, refusals}};
  }

  std::vector<std::int64_t> all() const { return rig_.download(sums_); }
  std::vector<std::int64_t> dw() const { return part(0, weights_); }
  std::vector<std::int64_t> db() const { return part(weights_, sums_.size() - 1); }
  std::int64_t refused() const { return all().back(); }

  ExactGradient gradient;

 private:
  std::vector<std::int64_t> part(std::size_t first, std::size_t end) const {
    const auto sums = all();
    return {sums.begin() + static_cast<std::ptrdiff_t>(first),
            sums.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  DeviceRig& rig_;
  std::size_t weights_;
  DeviceBuffer<std::int64_t> sums_;
};

}  // namespace lockstep::test
