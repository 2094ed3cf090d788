// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A convolution with numbers to compute it from: what the tests of convolutions on devices share.
#pragma once

#include "kernels/numerics/exact_sum.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/kernels/reference/conv2d.hpp"

#include <sstream>

namespace lockstep::test {

inline constexpr std::uint64_t kConv2dSeed = 20260917;

inline std::string describe(const Conv2dShape& s) {
  std::ostringstream text;
  text << "seed " << kConv2dSeed << ", shape";
  for (const int size : {s.batch, s.in_channels, s.in_height, s.in_width, s.out_channels, s.kernel_height,
                         s.kernel_width, s.stride, s.padding}) {
    text << " " << size;
  }
  text << " (batch C H W K R S stride padding)";
  return text.str();
}

/// The arguments of all three directions.
struct Conv2dProblem {
  explicit Conv2dProblem(const Conv2dShape& s)
      : shape(s),
        x(reference::random_numbers(kConv2dSeed, 1, s.in_size())),
        w(reference::random_numbers(kConv2dSeed, 2, s.weight_size())),
        b(reference::random_numbers(kConv2dSeed, 3, static_cast<std::size_t>(s.out_channels))),
        dy(reference::random_numbers(kConv2dSeed, 4, s.out_size())) {}

  /// The same convolution of columns [first, first + count).
  Conv2dProblem columns(int first, int count) const {
    Conv2dProblem part = *this;
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

  Conv2dShape shape;
  std::vector<double> x, w, b, dy;
};

/// The problem in device memory. Weights and biases lie at odd places of an arena, as those of a model do.
class Conv2dOnDevice {
 public:
  Conv2dOnDevice(DeviceRig& rig, const Conv2dProblem& p)
      : shape(p.shape),
        x_(rig.upload(p.x)),
        dy_(rig.upload(p.dy)),
        arena_(rig.upload(arena_of(p))),
        weights_(p.w.size()) {}

  const float* x() const { return x_.data(); }
  const float* dy() const { return dy_.data(); }
  const float* w() const { return arena_.data() + 1; }
  const float* b() const { return w() + weights_; }

  const Conv2dShape shape;

 private:
  static std::vector<double> arena_of(const Conv2dProblem& p) {
    std::vector<double> arena = {NAN};
    arena.insert(arena.end(), p.w.begin(), p.w.end());
    arena.insert(arena.end(), p.b.begin(), p.b.end());
    return arena;
  }

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
