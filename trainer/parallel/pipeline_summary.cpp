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
#include <string>
#include <thread>
#include <vector>

namespace lockstep {

namespace {

/// Mean seconds of a stage's passes in one direction, over all ranks: those without it have none.
double mean_seconds(const std::vector<std::vector<StageTimes>>& ranks, int stage, bool backward) {
  PassTimes sum;
  for (const std::vector<StageTimes>& stages : ranks) {
    sum.seconds += at(at(stages, stage), backward).seconds;
    sum.passes += at(at(stages, stage), backward).passes;
  }
  return sum.passes > 0 ? sum.seconds / static_cast<double>(sum.passes) : 0;
}

/// "80", and near 0 and 100 as many digits as it takes to be neither: "0.155", "99.84". Sums of shares are rounded.
std::string percent_of_work(double share) {
  constexpr double kRounding = 1e-9;
  const double percent = 100 * share;
  if (percent < 1) return fmt::format("{:.3g}", percent);
  if (percent > 99 && percent < 100 - kRounding) return fmt::format("{:.2f}", std::min(percent, 99.99));
  return fmt::format("{:.0f}", percent);
}

/// "12.30"; below one "0.0123".
std::string milliseconds(double seconds) {
  const double number = 1e3 * seconds;
  return number < 1 ? fmt::format("{:.3g}", number) : fmt::format("{:.2f}", number);
}

std::string ranks_of(const StagePlan& plan, int stage) {
  std::vector<int> ranks;
  for (int replica = 0; replica < plan.replicas; ++replica)
    ranks.push_back(replica * plan.width + plan.rank_of(stage));
  return list_of("rank", ranks);
}

}  // namespace

StrategyDescription Pipeline::describe() const {
  StrategyDescription description;
  description.has_graphs = false;
  description.sums = fmt::format("pipeline of {} on {}, {}", counted(plan_.count(), "stage"),
                                 counted(plan_.width, "rank"), spelt(order_));
  if (plan_.replicas > 1) description.sums += fmt::format(", {} times", plan_.replicas);
  std::vector<std::string> cuts;
  for (int stage = 0; stage < plan_.count(); ++stage) {
    const PipelineStage& s = at(plan_.stages, stage);
    description.lines.push_back(fmt::format("{} on {}: {}, {} % of the work", plan_.describe(stage),
                                            ranks_of(plan_, stage), counted(s.arena.size, "parameter"),
                                            percent_of_work(s.work)));
    cuts.push_back(s.layers);
  }
  description.facts = {{"stages", fmt::format("{}", fmt::join(cuts, "; "))},
                       {"placement", fmt::format("{}", fmt::join(plan_.ranks(), ", "))},
                       {"pipelines", std::to_string(plan_.replicas)},
                       {"pipeline_schedule", std::string(spelt(order_))}};
  const std::string way = links_->name();
  if (!way.empty() && plan_.count() > 1)
    description.lines.push_back("activations and their gradients: " + way);
  return description;
}

StrategySummary Pipeline::summary() {
  enum Number : std::size_t { kBusy, kWall, kBytes };
  const auto numbers =
      gather(comm_, std::array{worker_.busy(), wall_seconds_, static_cast<double>(links_->bytes_sent())});
  const auto times = gather(comm_, std::span<const StageTimes>(worker_.times()));
  const auto sum = [&](Number number) {
    double total = 0;
    for (const auto& of_rank : numbers) total += of_rank[number];
    return total;
  };
  const double wall = sum(kWall), bytes = sum(kBytes);
  if (wall == 0 || comm_.rank() != 0) return {};
  const double bubble = 1 - sum(kBusy) / wall;
  const int micro_batches = static_cast<int>(sampler_.local_grains(0).size());
  StrategySummary summary;
  summary.lines.push_back(fmt::format(
      "pipeline: bubble {:.1f} % of the ranks' time in steps; {} of activations and gradients sent",
      100 * bubble, format_memory(static_cast<std::uint64_t>(bytes))));
  summary.numbers = {{"bubble", bubble}, {"micro_batches", micro_batches}, {"bytes_sent", bytes}};
  for (int stage = 0; stage < plan_.count(); ++stage) {
    const double forward = mean_seconds(times, stage, false), backward = mean_seconds(times, stage, true);
    const int in_flight = at(worker_.schedule(micro_batches).in_flight, stage);
    summary.lines.push_back(
        fmt::format("{} on {}: {}, {} in flight, forward {} ms, backward {} ms", plan_.describe(stage),
                    ranks_of(plan_, stage), counted(at(plan_.stages, stage).arena.size, "parameter"),
                    counted(in_flight, "micro-batch"), milliseconds(forward), milliseconds(backward)));
    summary.numbers.emplace_back(fmt::format("stage_{}_in_flight", stage), in_flight);
    summary.numbers.emplace_back(fmt::format("stage_{}_forward_seconds", stage), forward);
    summary.numbers.emplace_back(fmt::format("stage_{}_backward_seconds", stage), backward);
  }
  return summary;
}

// A byte from each rank to each other.

namespace {

constexpr std::chrono::milliseconds kPause{5};

/// This rank's words and those that it hears, its own too; messages under way use it until the process ends.
struct Roll {
  explicit Roll(Communicator& comm) : heard(static_cast<std::size_t>(comm.size())) {
    PointToPoint& messages = comm.point_to_point();
    for (int rank = 0; rank < comm.size(); ++rank) {
      sending.push_back(messages.start_send(life, rank, StageLinks::kLifeTag));
      receiving.push_back(messages.start_receive(std::span(heard).subspan(static_cast<std::size_t>(rank), 1),
                                                 rank, StageLinks::kLifeTag));
    }
  }

  std::vector<int> silent() {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < receiving.size(); ++rank)
      if (!receiving[rank]->test()) ranks.push_back(static_cast<int>(rank));
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

void Pipeline::throw_silent_stages(const PeerLostError& error) const {
  if (comm_.watch() != nullptr) throw error;  // it knows more
  auto* roll = new Roll(comm_);               // NOLINT: leaked on purpose, the job is ending
  const auto start = Clock::now();
  std::vector<int> silent = roll->silent();
  while (!silent.empty() && Clock::now() - start < patience(comm_)) {
    std::this_thread::sleep_for(kPause);
    silent = roll->silent();
  }
  if (silent.empty()) throw error;
  std::vector<std::string> lost;
  for (const int rank : silent) lost.push_back(stages_on(plan_, rank));
  throw PeerLostError(fmt::format("no sign of life from {}: {}", fmt::join(lost, ", "), error.what()));
}

}  // namespace lockstep
