// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Starts the threads, joins them, and rethrows the error that came first, not its echoes.
#include "comm/thread/thread_ranks.hpp"

#include "comm/thread/thread_communicator.hpp"
#include "comm/thread/thread_group.hpp"
#include "common/error.hpp"
#include "common/threads.hpp"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

/// How a rank ended: `error` is its own, or null.
struct RankOutcome {
  std::exception_ptr error;
  bool released = false;  ///< it failed only because another rank had
};

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return explain(exception).text;
  } catch (...) {
    return "an unknown error";
  }
}

/// Ends the waits of all ranks. The sentence takes memory, which may be what the rank has failed for.
void fail_group(ThreadGroup& group, int rank, const std::exception_ptr& error) noexcept {
  try {
    group.fail(fmt::format("rank {} failed: {}", rank, text_of(error)));
  } catch (...) {
    group.fail("a rank failed");  // so short that it takes none
  }
}

RankOutcome run_rank(ThreadGroup& group, int rank, const std::function<void(Communicator&)>& body,
                     std::chrono::duration<double> timeout) noexcept {
  std::optional<ThreadCommunicator> comm;
  try {
    comm.emplace(group, rank, timeout);
    body(*comm);
    return {};
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    fail_group(group, rank, error);
    return {error, comm && comm->was_released()};
  }
}

/// A rank's own error first; what the others report is only its echo.
void rethrow_first(const std::vector<RankOutcome>& outcomes) {
  for (const bool released : {false, true}) {
    for (const RankOutcome& outcome : outcomes) {
      if (outcome.error && outcome.released == released) std::rethrow_exception(outcome.error);
    }
  }
}

}  // namespace

void run_thread_ranks(int ranks, const std::function<void(Communicator&)>& body,
                      std::chrono::duration<double> timeout) {
  LOCKSTEP_CHECK(ranks >= 1);
  ThreadGroup group(ranks);
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  threads.reserve(outcomes.size());
  std::exception_ptr not_started;
  for (int rank = 0; rank < ranks && !not_started; ++rank) {
    try {
      threads.push_back(start_thread(
          [&, rank] { outcomes[static_cast<std::size_t>(rank)] = run_rank(group, rank, body, timeout); }));
    } catch (...) {  // the ranks that have started wait for this one
      not_started = std::current_exception();
      fail_group(group, rank, not_started);
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (not_started) std::rethrow_exception(not_started);
  rethrow_first(outcomes);
}

}  // namespace lockstep
