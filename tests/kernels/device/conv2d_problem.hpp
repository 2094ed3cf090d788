// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A convolution in device memory: what the tests of convolutions on devices share.
#pragma once

#include "kernels/numerics/sums.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/kernels/layer_problem.hpp"

namespace lockstep::test {

using Conv2dProblem = LayerProblem<Conv2dShape>;

/// The problem in device memory. Weights and biases lie at odd places of an arena, as those of a model do.
class Conv2dOnDevice {
 public:
  Conv2dOnDevice(DeviceRig& rig, const Conv2dProblem& p)
      : shape(p.shape),
        x_(rig.upload(p.x)),
        dy_(rig.upload(p.dy)),
        arena_(rig.upload(p.arena())),
        weights_(p.w.size()) {}

  const float* x() const { return x_.data(); }
  const float* dy() const { return dy_.data(); }
  const float* w() const { return arena_.data() + 1; }
  const float* b() const { return w() + weights_; }

  const Conv2dShape shape;

 private:
  DeviceBuffer<float> x_, dy_, arena_;
  std::size_t weights_;
};

/// Exact sums of dw, then db, then the number of refused terms.
class ExactSums {
 public:
  ExactSums(DeviceRig& rig, const Conv2dShape& s, float limit)
      : sums_(rig.zeroed<std::int64_t>(s.weight_size() + static_cast<std::size_t>(s.out_channels) + 1)),
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

inline std::vector<float> as_floats(std::span<const std::int64_t> sums) {
  std::vector<float> numbers;
  for (const std::int64_t sum : sums) numbers.push_back(static_cast<float>(from_exact(sum)));
  return numbers;
}

}  // namespace lockstep::test
