// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Work is handed out by number; the first error of any thread is rethrown to the caller.
#include "trainer/training/worker_pool.hpp"

#include "common/machine.hpp"

namespace lockstep {

std::vector<ThreadContext> make_threads(const Network& network, int threads, int grain, bool recomputes) {
  std::vector<ThreadContext> contexts;
  contexts.reserve(static_cast<std::size_t>(threads));
  while (std::ssize(contexts) < threads) contexts.emplace_back(network, grain, recomputes);
  return contexts;
}

WorkerPool::WorkerPool(int threads) {
  for (int thread = 1; thread < threads; ++thread) {
    try {
      workers_.push_back(start_thread([this, thread] { serve(thread); }));
    } catch (...) {  // no destructor runs after a constructor that throws
      end_threads(workers_, mutex_, start_, quit_);
      throw;
    }
  }
}

WorkerPool::~WorkerPool() {
  end_threads(workers_, mutex_, start_, quit_);
}

void WorkerPool::run(const std::function<void(int)>& work) {
  if (workers_.empty()) return work(0);
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    failure_ = nullptr;
    busy_ = static_cast<int>(workers_.size());
    ++round_;
  }
  start_.notify_all();
  call(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void WorkerPool::call(int thread) {
  try {
    (*work_)(thread);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void WorkerPool::serve(int thread) {
  long seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return quit_ || round_ != seen; });
      if (quit_) return;
      seen = round_;
    }
    call(thread);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace lockstep
