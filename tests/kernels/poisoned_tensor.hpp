// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Host tensors in which an element that a kernel forgot to write shows.
#pragma once

#include "common/aligned_buffer.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace lockstep::test {

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

/// Whether `wide` [rows, wide_columns] holds narrow [rows, columns] in its first columns, bit for bit.
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
