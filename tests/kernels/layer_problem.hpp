// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers with weights and numbers to compute them from: what tests of convolutions and fully connected layers share, on CPUs
/// and on devices.
#pragma once

#include "tests/kernels/reference/conv2d.hpp"
#include "tests/kernels/reference/linear.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

inline constexpr std::uint64_t kProblemSeed = 20260917;

inline std::size_t input_size(const Conv2dShape& s) {
  return s.in_size();
}
inline std::size_t output_size(const Conv2dShape& s) {
  return s.out_size();
}
inline int outputs_of(const Conv2dShape& s) {
  return s.out_channels;
}

inline std::size_t input_size(const LinearShape& s) {
  return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.in_features);
}
inline std::size_t output_size(const LinearShape& s) {
  return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.out_features);
}
inline int outputs_of(const LinearShape& s) {
  return s.out_features;
}

inline std::string describe(const Conv2dShape& s) {
  std::ostringstream text;
  text << "seed " << kProblemSeed << ", shape";
  for (const int size : {s.batch, s.in_channels, s.in_height, s.in_width, s.out_channels, s.kernel_height,
                         s.kernel_width, s.stride, s.padding}) {
    text << " " << size;
  }
  text << " (batch C H W K R S stride padding)";
  return text.str();
}

inline std::string describe(const LinearShape& s) {
  std::ostringstream text;
  text << "seed " << kProblemSeed << ", shape " << s.batch << " " << s.in_features << " " << s.out_features
       << " (batch inputs outputs)";
  return text.str();
}

/// Columns [first, first + count) of a tensor that has `batch` of them.
template <typename T>
std::vector<T> columns_of(const std::vector<T>& from, int batch, int first, int count) {
  std::vector<T> part;
  for (std::size_t row = 0; row < from.size(); row += static_cast<std::size_t>(batch)) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(row) + first;
    part.insert(part.end(), begin, begin + count);
  }
  return part;
}

/// The arguments of all three directions.
template <class Shape>
struct LayerProblem {
  LayerProblem(const Shape& s, std::vector<double> x_numbers, std::vector<double> dy_numbers)
      : shape(s),
        x(std::move(x_numbers)),
        w(reference::random_numbers(kProblemSeed, 2, s.weight_size())),
        b(reference::random_numbers(kProblemSeed, 3, static_cast<std::size_t>(outputs_of(s)))),
        dy(std::move(dy_numbers)) {}
  explicit LayerProblem(const Shape& s)
      : LayerProblem(s, reference::random_numbers(kProblemSeed, 1, input_size(s)),
                     reference::random_numbers(kProblemSeed, 4, output_size(s))) {}

  /// The same layer on columns [first, first + count).
  LayerProblem columns(int first, int count) const {
    LayerProblem part = *this;
    part.shape.batch = count;
    part.x = columns_of(x, first, count);
    part.dy = columns_of(dy, first, count);
    return part;
  }
  template <typename T>
  std::vector<T> columns_of(const std::vector<T>& from, int first, int count) const {
    return test::columns_of(from, shape.batch, first, count);
  }

  /// Weights and biases one after another, as in a model; from the second number on, so that neither is aligned to more than a
  /// float.
  std::vector<double> arena() const {
    std::vector<double> numbers = {NAN};
    numbers.insert(numbers.end(), w.begin(), w.end());
    numbers.insert(numbers.end(), b.begin(), b.end());
    return numbers;
  }

  Shape shape;
  std::vector<double> x, w, b, dy;
};

}  // namespace lockstep::test
