// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A full disk, low limits, and a system that gives no more threads, for tests that use the real ones.
#pragma once

#include "common/machine.hpp"
#include "tests/support/prelude.hpp"

#include <sys/resource.h>

#include <future>

namespace lockstep {

/// While it lives, no file of this process may grow beyond `bytes`.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit before_{};
};

/// While it lives, a limit of this process is lower.
class SoftLimit {
 public:
  SoftLimit(decltype(RLIMIT_AS) resource, rlim_t value) : resource_(resource) {
    getrlimit(resource_, &before_);
    const rlimit lower{value, before_.rlim_max};
    is_set_ = setrlimit(resource_, &lower) == 0;
  }
  ~SoftLimit() { setrlimit(resource_, &before_); }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;

  /// False: the hard limit is lower still.
  bool is_set() const { return is_set_; }

 private:
  decltype(RLIMIT_AS) resource_;
  rlimit before_{};
  bool is_set_ = false;
};

/// On what this process allocates from now on, in bytes.
inline SoftLimit limit_on_more_data(rlim_t more) {
  return {RLIMIT_DATA, 1024 * std::stoull(value_after("/proc/self/status", "VmData:")) + more};
}

/// While it lives, this process gets no further thread, or only two or three. There is no memory for more
/// stacks. Not under AddressSanitizer, which needs that memory itself.
class NoMoreThreads {
 public:
  enum class Spare { kNone, kTwoOrThree };
  explicit NoMoreThreads(Spare spare = Spare::kNone) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit small{used_bytes() + kLeft, before_.rlim_max};
    setrlimit(RLIMIT_AS, &small);
    try {
      while (true) idle_.emplace_back([this] { gone_.wait(); });
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): that was the last one
    }
    if (spare == Spare::kNone) return;
    const rlimit larger{small.rlim_cur + kSpare, before_.rlim_max};
    setrlimit(RLIMIT_AS, &larger);
  }
  ~NoMoreThreads() {
    go_.set_value();
    for (std::thread& thread : idle_) thread.join();
    setrlimit(RLIMIT_AS, &before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  static constexpr rlim_t kLeft = 48 << 20;   // six stacks, and what else the test takes
  static constexpr rlim_t kSpare = 28 << 20;  // three more

  static rlim_t used_bytes() {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * 4096;
  }

  rlimit before_{};
  std::promise<void> go_;
  std::shared_future<void> gone_{go_.get_future()};
  std::vector<std::thread> idle_;
};

}  // namespace lockstep
