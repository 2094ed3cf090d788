// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Starts the threads, joins them, and rethrows the error that came first, not its echoes.
#include "comm/thread/thread_ranks.hpp"

#include "comm/thread/thread_communicator.hpp"
#include "comm/thread/thread_group.hpp"
#include "common/error.hpp"

#include <fmt/format.h>

#include <exception>
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

RankOutcome run_rank(ThreadGroup& group, int rank, const std::function<void(Communicator&)>& body,
                     std::chrono::duration<double> timeout) {
  ThreadCommunicator comm(group, rank, timeout);
  try {
    body(comm);
    return {};
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    group.fail(fmt::format("rank {} failed: {}", rank, text_of(error)));
    return {error, comm.was_released()};
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
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { outcomes[static_cast<std::size_t>(rank)] = run_rank(group, rank, body, timeout); });
  }
  for (std::thread& thread : threads) thread.join();
  rethrow_first(outcomes);
}

}  // namespace lockstep
