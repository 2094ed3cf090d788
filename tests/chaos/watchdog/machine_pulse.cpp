// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/watchdog/machine_pulse.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>

namespace lockstep::chaos {
namespace {

constexpr std::chrono::milliseconds kBeat{100};
constexpr double kComputes = 0.005;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

MachinePulse::MachinePulse() : thread_([this] { run(); }) {}

MachinePulse::~MachinePulse() {
  ending_ = true;
  thread_.join();
}

void MachinePulse::run() {
  const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  while (!ending_) {
    const auto before = Clock::now();
    std::this_thread::sleep_for(kBeat);
    const auto awake = Clock::now();
    const double start = thread_seconds();
    while (thread_seconds() - start < kComputes) {
    }
    const auto done = Clock::now();
    const std::lock_guard lock(mutex_);
    beats_.push_back(
        {done, seconds(awake - before - kBeat), seconds(done - awake), thread_seconds() - start});
  }
}

double MachinePulse::latest_since(Clock::time_point since) const {
  const std::lock_guard lock(mutex_);
  double latest = 0;
  // NOLINTNEXTLINE(modernize-loop-convert): clang 14 does not read std::views::reverse
  for (auto beat = beats_.rbegin(); beat != beats_.rend(); ++beat) {
    if (beat->when < since) break;
    latest = std::max(latest, beat->late);
  }
  return latest;
}

double MachinePulse::slowness_since(Clock::time_point since) const {
  const std::lock_guard lock(mutex_);
  double wall = 0, computed = 0;
  // NOLINTNEXTLINE(modernize-loop-convert): clang 14 does not read std::views::reverse
  for (auto beat = beats_.rbegin(); beat != beats_.rend(); ++beat) {
    if (beat->when < since) break;
    wall += beat->wall;
    computed += beat->computed;
  }
  return computed > 0 ? wall / computed : 1;
}

void keep_to_core(pid_t thread, int core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<std::size_t>(core), &only);
  sched_setaffinity(thread, sizeof only, &only);
}

Hog::Hog(unsigned threads, int core, int niceness) {
  for (unsigned i = 0; i < threads; ++i)
    threads_.emplace_back([this, core, niceness] {
      if (core >= 0) keep_to_core(0, core);
      if (niceness != 0) setpriority(PRIO_PROCESS, 0, niceness);
      while (!ending_.load(std::memory_order_relaxed)) {
      }
    });
}

Hog::~Hog() {
  ending_ = true;
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace lockstep::chaos
