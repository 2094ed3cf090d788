// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The threads of one rank: the caller and a few that wait for work.
#pragma once

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "models/execution.hpp"
#include "models/network.hpp"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
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

/// Read errors of a rank, on any of its threads. A rank that keeps one goes on to the end of the step, which no rank
/// then takes, or leaves the evaluation: so the state before can be saved.
class UnreadSamples {
 public:
  /// From now on errors are kept; until then attempt() throws them.
  void keep() { keeps_ = true; }
  /// @returns whether it could: samples on a disk that fails are kept as the reason, and damaged ones; the first counts
  template <typename Read>
  bool attempt(const Read& read) {
    try {
      read();
      return true;
    } catch (const Error& error) {
      if (!keeps_ || (error.code() != ExitCode::kIo && error.code() != ExitCode::kDataDamaged)) throw;
      const std::lock_guard lock(mutex_);
      if (!reason_) reason_ = std::current_exception();
    }
    return false;
  }
  bool any() const {
    const std::lock_guard lock(mutex_);
    return reason_ != nullptr;
  }
  /// Null: all was read; so it is afterwards.
  std::exception_ptr take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reason_, nullptr);
  }

 private:
  bool keeps_ = false;
  mutable std::mutex mutex_;
  std::exception_ptr reason_;
};

// State of one thread of a rank that computes grains: its activations, its gradient.

struct ThreadContext {
  /// @param recomputes  as NetworkPart has it
  ThreadContext(const Network& network, int grain, bool recomputes)
      : columns(columns_for(grain)),
        execution(network, columns, {.recomputes = recomputes}),
        gradients(network.parameters().size),
        labels(static_cast<std::size_t>(columns)) {}

  /// Columns that a grain of `samples` takes.
  static int columns_for(int samples) { return (samples + cpu::kLanes - 1) / cpu::kLanes * cpu::kLanes; }

  int columns;  ///< in a full grain
  Execution execution;
  AlignedBuffer<float> gradients;    ///< for the grain in work
  std::vector<std::int32_t> labels;  ///< for the grain in work
  double input_seconds = 0;          ///< gathering and normalising batches
};
std::vector<ThreadContext> make_threads(const Network& network, int threads, int grain,
                                        bool recomputes = false);

}  // namespace lockstep
