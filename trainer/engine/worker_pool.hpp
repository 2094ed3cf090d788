// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The threads of one rank: the caller and a few that wait for work.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
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

}  // namespace lockstep
