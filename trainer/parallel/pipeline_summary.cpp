// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Numbers of all ranks as lines.
#include "comm/agreement.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "trainer/parallel/pipeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {

namespace {

/// A rank's numbers, in the order in which they travel; the times of its stages follow, four numbers each.
enum Number : std::size_t { kBusy, kWall, kBytes, kNumbers };
constexpr std::size_t kOfStage = 4;

std::vector<double> numbers_of(const PipelineMeasures& mine) {
  std::vector<double> numbers{mine.worker.busy(), mine.wall, static_cast<double>(mine.bytes_sent)};
  for (int stage = 0; stage < mine.plan.count(); ++stage) {
    const StageTimes& times = mine.worker.times(stage);
    numbers.insert(numbers.end(), {times.forward, times.backward, static_cast<double>(times.forwards),
                                   static_cast<double>(times.backwards)});
  }
  return numbers;
}

double sum(const std::vector<std::vector<double>>& ranks, std::size_t number) {
  return std::accumulate(ranks.begin(), ranks.end(), 0.0,
                         [&](double total, const auto& rank) { return total + rank[number]; });
}

/// Seconds that the passes of a stage take.
struct StageSeconds {
  double forward = 0, backward = 0;
};

/// Mean seconds of a pass of each stage, over the replicas.
std::vector<StageSeconds> seconds_of_stages(const std::vector<std::vector<double>>& ranks, int stages) {
  std::vector<StageSeconds> seconds;
  for (int stage = 0; stage < stages; ++stage) {
    const std::size_t first = kNumbers + kOfStage * static_cast<std::size_t>(stage);
    const double forwards = sum(ranks, first + 2), backwards = sum(ranks, first + 3);
    seconds.push_back({forwards > 0 ? sum(ranks, first) / forwards : 0,
                       backwards > 0 ? sum(ranks, first + 1) / backwards : 0});
  }
  return seconds;
}

std::string ranks_of(const StagePlan& plan, int stage) {
  std::vector<int> ranks;
  for (int replica = 0; replica < plan.replicas; ++replica)
    ranks.push_back(replica * plan.width + plan.rank_of(stage));
  return fmt::format("{} {}", plural(ranks.size(), "rank"), fmt::join(ranks, ", "));
}

std::string parameters_text(const PipelineStage& stage) {
  return counted(stage.arena.size, "parameter");
}

}  // namespace

StrategyDescription describe_pipeline(PipelineOrder order, const StagePlan& plan) {
  StrategyDescription description;
  description.has_graphs = false;
  description.sums = fmt::format("pipeline of {} on {}, {}", counted(plan.count(), "stage"),
                                 counted(plan.width, "rank"), spelt(order));
  if (plan.replicas > 1) description.sums += fmt::format(", {} times", plan.replicas);
  std::vector<std::string> cuts;
  for (int stage = 0; stage < plan.count(); ++stage) {
    const PipelineStage& s = at(plan.stages, stage);
    description.lines.push_back(fmt::format("{} on {}: {}, {:.0f} % of the work", plan.describe(stage),
                                            ranks_of(plan, stage), parameters_text(s), 100 * s.work));
    cuts.push_back(s.layers);
  }
  description.facts = {{"stages", fmt::format("{}", fmt::join(cuts, "; "))},
                       {"placement", fmt::format("{}", fmt::join(plan.ranks(), ", "))},
                       {"pipelines", std::to_string(plan.replicas)},
                       {"pipeline_schedule", std::string(spelt(order))}};
  return description;
}

StrategySummary summarise_pipeline(const PipelineMeasures& mine, Communicator& comm) {
  const auto ranks = gather(comm, std::span<const double>(numbers_of(mine)));
  const double wall = sum(ranks, kWall);
  if (wall == 0 || comm.rank() != 0) return {};
  const auto seconds = seconds_of_stages(ranks, mine.plan.count());
  const PipelineSchedule& schedule = mine.worker.schedule(mine.grains);
  const double bubble = 1 - sum(ranks, kBusy) / wall;
  StrategySummary summary;
  summary.lines.push_back(fmt::format(
      "pipeline: bubble {:.1f} % of the ranks' time in steps; {} of activations and gradients sent",
      100 * bubble, format_memory(static_cast<std::uint64_t>(sum(ranks, kBytes)))));
  summary.numbers = {{"bubble", bubble}, {"micro_batches", mine.grains}, {"bytes_sent", sum(ranks, kBytes)}};
  for (int stage = 0; stage < mine.plan.count(); ++stage) {
    const auto s = static_cast<std::size_t>(stage);
    const int in_flight = schedule.in_flight[s];
    summary.lines.push_back(fmt::format(
        "{} on {}: {}, {} in flight, forward {:.2f} ms, backward {:.2f} ms", mine.plan.describe(stage),
        ranks_of(mine.plan, stage), parameters_text(mine.plan.stages[s]), counted(in_flight, "micro-batch"),
        1e3 * seconds[s].forward, 1e3 * seconds[s].backward));
    summary.numbers.emplace_back(fmt::format("stage_{}_in_flight", stage), in_flight);
    summary.numbers.emplace_back(fmt::format("stage_{}_forward_seconds", stage), seconds[s].forward);
    summary.numbers.emplace_back(fmt::format("stage_{}_backward_seconds", stage), seconds[s].backward);
  }
  return summary;
}

// A byte from each rank to each other.

namespace {

constexpr int kTag = 32001;
constexpr std::chrono::milliseconds kPause{5};

/// This rank's words and those that it hears; messages under way use it until the process ends.
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
