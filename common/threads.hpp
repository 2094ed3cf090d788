// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Starting threads. All threads of the program start here, so that a refusal of the system is one sentence.
#pragma once

#include <functional>
#include <future>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace lockstep {

/// "a thread cannot be started: this process has 300 threads, ...": how many it has, which limits hold, what helps.
std::string explain_missing_thread();

/// True of the error that std::thread and std::async throw where the system gives no more threads.
bool is_missing_thread(const std::system_error& error);

/// @throws DeviceError  as explain_missing_thread() says
std::thread start_thread(std::function<void()> body);

[[noreturn]] void throw_missing_thread(const std::system_error& error);

/// std::async on a thread of its own. @throws as start_thread
template <typename Work>
auto start_async(Work&& work) {
  try {
    return std::async(std::launch::async, std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw_missing_thread(error);
  }
}

}  // namespace lockstep
