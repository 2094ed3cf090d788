// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/stop_signal.hpp"

#include "kernels/runtime/error.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace lockstep {
namespace {

// sig_atomic_t would do within one thread; the flag is read by the training thread and set on any.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  int none = 0;
  if (!received_signal.compare_exchange_strong(none, signal))
    _exit(static_cast<int>(ExitCode::kSavedOnRequest));
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaction(signal, &action, nullptr);
}

bool stop_requested() noexcept {
  return received_signal.load() != 0;
}

int stop_signal() noexcept {
  return received_signal.load();
}

}  // namespace lockstep
