// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A byte from each rank to each other.
#include "trainer/strategies/pipeline/silent_stages.hpp"

#include "common/clock.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

constexpr int kTag = 32001;
constexpr std::chrono::milliseconds kPause{5};

/// Of this rank; messages under way use it until the process ends.
struct Roll {
  explicit Roll(Communicator& comm) : heard(static_cast<std::size_t>(comm.size())) {
    PointToPoint& messages = comm.point_to_point();
    for (int rank = 0; rank < comm.size(); ++rank) {
      if (rank == comm.rank()) {
        receiving.push_back(nullptr);
        continue;
      }
      sending.push_back(messages.start_send(life, rank, kTag));
      receiving.push_back(
          messages.start_receive(std::span(heard).subspan(static_cast<std::size_t>(rank), 1), rank, kTag));
    }
  }

  std::vector<int> silent() {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < receiving.size(); ++rank) {
      if (receiving[rank] && !receiving[rank]->test()) ranks.push_back(static_cast<int>(rank));
    }
    for (const auto& message : sending) static_cast<void>(message->test());
    return ranks;
  }

  std::array<std::byte, 1> life{};
  std::vector<std::byte> heard;
  std::vector<std::unique_ptr<PendingCollective>> sending, receiving;
};

/// All ranks have waited as long; they differ by a step at most.
std::chrono::duration<double> patience(const Communicator& comm) {
  return std::clamp(comm.timeout() / 4, std::chrono::duration<double>(0.5), std::chrono::duration<double>(5));
}

std::string stages_on(const StagePlan& plan, int rank) {
  std::vector<std::string> stages;
  for (const int stage : plan.stages_of(rank % plan.width)) stages.push_back(plan.describe(stage));
  return fmt::format("{} on rank {}", fmt::join(stages, " and "), rank);
}

}  // namespace

void throw_silent_stages(const PeerLostError& error, const StagePlan& plan, Communicator& comm) {
  const bool somebody_knows_more = comm.watch() != nullptr;
  if (somebody_knows_more) throw error;
  auto* roll = new Roll(comm);  // NOLINT: leaked on purpose, the job is ending
  const auto start = Clock::now();
  std::vector<int> silent = roll->silent();
  while (!silent.empty() && Clock::now() - start < patience(comm)) {
    std::this_thread::sleep_for(kPause);
    silent = roll->silent();
  }
  if (silent.empty()) throw error;
  std::vector<std::string> lost;
  for (const int rank : silent) lost.push_back(stages_on(plan, rank));
  throw PeerLostError(fmt::format("no sign of life from {}: {}", fmt::join(lost, ", "), error.what()));
}

}  // namespace lockstep
