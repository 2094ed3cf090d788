// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The threads of one rank: the caller and a few that wait for work.
#pragma once

#include "common/buffers.hpp"
#include "kernels/cpu/ops.hpp"
#include "models/execution.hpp"
#include "models/network.hpp"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep {

/// Runs a function on `threads` threads at once, again and again. The caller is thread 0.
class WorkerPool {
 public:
  /// @throws DeviceError  the system gives no more threads
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  /// Calls work(thread) on every thread and returns when all are done. Rethrows the first exception.
  void run(const std::function<void(int thread)>& work);

 private:
  void quit();
  void serve(int thread);
  void call(int thread);

  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(int)>* work_ = nullptr;
  long round_ = 0;
  int busy_ = 0;
  bool quit_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> workers_;
};

// What one thread of a rank needs to compute grains: its activations, its gradient.

struct ThreadContext {
  /// @param recomputes  as NetworkPart has it
  ThreadContext(const Network& network, int grain, bool recomputes = false)
      : columns(columns_for(grain)),
        execution(network, columns, {.recomputes = recomputes}),
        gradients(network.parameters().size),
        labels(static_cast<std::size_t>(columns)) {}

  /// Columns that a grain of `samples` takes.
  static int columns_for(int samples) { return (samples + cpu::kLanes - 1) / cpu::kLanes * cpu::kLanes; }

  int columns;  ///< of a full grain
  Execution execution;
  AlignedBuffer<float> gradients;    ///< of the grain in work, arena order
  std::vector<std::int32_t> labels;  ///< of the grain in work
  double input_seconds = 0;          ///< gathering and normalising batches
};

}  // namespace lockstep
