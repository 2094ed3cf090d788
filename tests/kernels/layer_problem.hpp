// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Layers with weights and numbers to compute them from. What tests of convolutions and fully connected
/// layers share, on CPUs and on devices.
#pragma once

#include "common/buffers.hpp"
#include "kernels/shapes.hpp"
#include "kernels/sum_cuts.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

inline constexpr std::uint64_t kProblemSeed = 20260917;

using reference::input_size, reference::output_size, reference::outputs_of;

inline std::string describe(const Conv2dShape& s) {
  return fmt::format(
      "shape {} {} {} {} {} {} {} {} {} {} {} (batch C H W K R S stride padding groups dilation)", s.batch,
      s.in_channels, s.in_height, s.in_width, s.out_channels, s.kernel_height, s.kernel_width, s.stride,
      s.padding, s.groups, s.dilation);
}

inline std::string describe(const LinearShape& s) {
  return fmt::format("shape {} {} {} (batch inputs outputs)", s.batch, s.in_features, s.out_features);
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
        b(reference::random_numbers(kProblemSeed, 3, outputs_of(s))),
        dy(std::move(dy_numbers)) {}
  explicit LayerProblem(const Shape& s)
      : LayerProblem(s, reference::random_numbers(kProblemSeed, 1, input_size(s)),
                     reference::random_numbers(kProblemSeed, 4, output_size(s))) {}

  /// Layer on columns [first, first + count).
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

  /// Weights and biases one after another, as in a model. From the second number on, so that neither is
  /// aligned to more than a float.
  std::vector<double> arena() const {
    std::vector<double> numbers = {NAN};
    numbers.insert(numbers.end(), w.begin(), w.end());
    numbers.insert(numbers.end(), b.begin(), b.end());
    return numbers;
  }

  Shape shape;
  std::vector<double> x, w, b, dy;
};

// The weight gradient of a convolution as one number for each weight, where ops give several terms.

/// @param run  called with a GradientOutput; must write all of it
/// @param dw, db  overwritten with the sums of the terms, added up in double
template <class Run>
void sum_terms(const Conv2dShape& shape, int grain, const Run& run, float* dw, float* db) {
  const auto terms = static_cast<std::size_t>(GradientSplit(shape, grain).terms);
  const std::size_t weights = shape.weight_size();
  const std::size_t stride = weights + static_cast<std::size_t>(shape.out_channels);
  std::vector<float> all(terms * stride, NAN);
  run(GradientOutput{all.data(), all.data() + weights, stride});
  for (std::size_t i = 0; i < stride; ++i) {
    double sum = 0;
    for (std::size_t t = 0; t < terms; ++t) sum += static_cast<double>(all[t * stride + i]);
    (i < weights ? dw[i] : db[i - weights]) = static_cast<float>(sum);
  }
}

// Host tensors in which an element that a kernel forgot to write shows.

/// Floats that start on a 64-byte line, or `offset` floats after one (weights lie anywhere in the arena). NaN
/// at first.
class PoisonedTensor {
 public:
  explicit PoisonedTensor(std::size_t size, std::size_t offset = 0)
      : buffer_(size + offset), offset_(offset) {
    for (float& f : values()) f = NAN;
  }
  explicit PoisonedTensor(const std::vector<double>& numbers, std::size_t offset = 0)
      : PoisonedTensor(numbers.size(), offset) {
    for (std::size_t i = 0; i < numbers.size(); ++i) data()[i] = static_cast<float>(numbers[i]);
  }

  float* data() { return buffer_.data() + offset_; }
  const float* data() const { return buffer_.data() + offset_; }
  std::span<float> values() { return buffer_.span().subspan(offset_); }
  std::span<const float> values() const { return buffer_.span().subspan(offset_); }

 private:
  AlignedBuffer<float> buffer_;
  std::size_t offset_;
};

inline bool same_bits(const PoisonedTensor& a, const PoisonedTensor& b) {
  return a.values().size() == b.values().size() &&
         std::memcmp(a.data(), b.data(), a.values().size_bytes()) == 0;
}

/// [rows, columns] → [rows, columns + more], the new columns filled with `fill`.
inline std::vector<double> add_columns(const std::vector<double>& from, int columns, int more, double fill) {
  std::vector<double> to;
  for (std::size_t i = 0; i < from.size(); i += static_cast<std::size_t>(columns)) {
    const auto row = from.begin() + static_cast<std::ptrdiff_t>(i);
    to.insert(to.end(), row, row + columns);
    to.insert(to.end(), static_cast<std::size_t>(more), fill);
  }
  return to;
}

/// True if `wide` [rows, wide_columns] holds narrow [rows, columns] in its first columns, bit for bit.
inline bool same_columns(const PoisonedTensor& narrow, int columns, const PoisonedTensor& wide,
                         int wide_columns) {
  const auto width = static_cast<std::size_t>(columns), step = static_cast<std::size_t>(wide_columns);
  for (std::size_t row = 0; row < narrow.values().size() / width; ++row) {
    if (std::memcmp(narrow.data() + row * width, wide.data() + row * step, width * sizeof(float)) != 0)
      return false;
  }
  return true;
}

}  // namespace lockstep::test
