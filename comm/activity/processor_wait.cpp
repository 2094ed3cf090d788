// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// /proc/thread-self/schedstat stays open, so that any thread can read it: "RUNNING WAITING SLICES", in nanoseconds.
#include "comm/activity/processor_wait.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace lockstep {
namespace {

/// The second number; 0 where it cannot be read.
std::int64_t waited_ns(int file) {
  std::array<char, 64> text{};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  if (size <= 0) return 0;
  const char *begin = text.data(), *end = begin + size;
  const char* second = std::find(begin, end, ' ');
  std::int64_t waited = 0;
  if (second != end) std::from_chars(second + 1, end, waited);
  return waited;
}

}  // namespace

ProcessorWait::~ProcessorWait() {
  for (const Thread& thread : threads_) ::close(thread.file);
}

void ProcessorWait::count_this_thread() {
  const int file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const std::lock_guard lock(mutex_);
  threads_.push_back({file, waited_ns(file)});
}

void ProcessorWait::start() {
  const std::lock_guard lock(mutex_);
  for (Thread& thread : threads_) thread.at_start = waited_ns(thread.file);
}

std::int64_t ProcessorWait::since_start() const {
  const std::lock_guard lock(mutex_);
  std::int64_t longest = 0;
  for (const Thread& thread : threads_) longest = std::max(longest, waited_ns(thread.file) - thread.at_start);
  return longest;
}

}  // namespace lockstep
