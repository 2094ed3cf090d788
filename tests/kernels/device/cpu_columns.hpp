// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Numbers for the ops of a CPU, which want the batch padded. Shared by tests that compare a device's bits
/// with those of the CPU (docs/arithmetic.md).
#pragma once

#include "common/buffers.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/sums.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

inline int padded_columns(int columns) {
  return (columns + cpu::kLanes - 1) / cpu::kLanes * cpu::kLanes;
}

/// [rows, columns] → [rows, padded_columns(columns)], 0 in the new ones.
template <typename T>
AlignedBuffer<float> to_cpu(const std::vector<T>& from, int columns) {
  const std::size_t narrow = static_cast<std::size_t>(columns),
                    wide = static_cast<std::size_t>(padded_columns(columns));
  AlignedBuffer<float> to(from.size() / narrow * wide);
  std::memset(to.data(), 0, to.size() * sizeof(float));
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i / narrow * wide + i % narrow] = static_cast<float>(from[i]);
  return to;
}

/// Room for [rows, padded_columns(columns)], of which nothing is written yet.
inline AlignedBuffer<float> cpu_room(std::size_t size, int columns) {
  AlignedBuffer<float> room(size / static_cast<std::size_t>(columns) *
                            static_cast<std::size_t>(padded_columns(columns)));
  std::memset(room.data(), 0xFF, room.size() * sizeof(float));
  return room;
}

/// Expects the bits of the CPU's numbers in all columns that are no padding, signs of zeros included. All NaN are one.
inline void expect_bits_of_cpu(const AlignedBuffer<float>& cpu, const std::vector<float>& device, int columns,
                               const char* what) {
  const std::size_t narrow = static_cast<std::size_t>(columns),
                    wide = static_cast<std::size_t>(padded_columns(columns));
  ASSERT_EQ(device.size() / narrow * wide, cpu.size()) << what;
  for (std::size_t i = 0; i < device.size(); ++i) {
    const float expected = cpu[i / narrow * wide + i % narrow];
    ASSERT_TRUE(std::memcmp(&device[i], &expected, sizeof expected) == 0 ||
                (std::isnan(device[i]) && std::isnan(expected)))
        << what << "[" << i << "] is " << device[i] << ", on the CPU " << expected;
  }
}

}  // namespace lockstep::test
