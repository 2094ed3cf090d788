// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Device memory for benchmarks.
#pragma once

#include "kernels/device/device.hpp"
#include "kernels/device/step_state.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace lockstep::bench {

/// Device memory that is given back all at once, filled with small numbers.
class BenchMemory {
 public:
  BenchMemory(Device& device, Stream& stream) : device_(device), stream_(stream) {}
  float* floats(std::size_t size);
  std::int64_t* integers(std::size_t size);
  /// Counters of `samples` finite samples and a gradient for each parameter, as a step leaves them for the
  /// update.
  std::int64_t* step_sums(std::size_t parameters, int samples);
  /// Of masks for `pool`, of argmax for a pool of that window (then each names one tap), or of images.
  std::uint8_t* bytes(std::size_t size, unsigned below);
  std::int32_t* labels(std::size_t size, int classes);
  StepState* state();

 private:
  template <typename T>
  T* upload(const std::vector<T>& values);

  Device& device_;
  Stream& stream_;
  std::deque<DeviceBuffer<std::byte>> buffers_;
};

}  // namespace lockstep::bench
