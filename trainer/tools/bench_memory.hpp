// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Device memory for benchmarks.
#pragma once

#include "kernels/device.hpp"
#include "kernels/step_state.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
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

// Times ops on a device: many calls in one graph, between two events, so that neither the host nor the
// launching of single kernels is part of it.

/// Queues call number `call` (0, 1, ...) of an op.
using QueueCall = std::function<void(Stream& stream, int call)>;

class GraphTimer {
 public:
  /// @param calls     in the graph
  /// @param launches  of the graph in a turn
  /// Runs the op once before it captures it. Borrows device and stream.
  GraphTimer(Device& device, Stream& stream, const QueueCall& queue, int calls, int launches);

  /// Of one call, averaged over a turn. Blocks until it is done.
  double seconds();

 private:
  Stream& stream_;
  int calls_, launches_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Event> start_, end_;
};

}  // namespace lockstep::bench
