// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A pass: receive, run, send.
#include "trainer/parallel/stage_worker.hpp"

#include "common/machine.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/fingerprint.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

namespace {

/// Each micro-batch has multipliers of its own.
std::uint64_t fingerprint_of(const StageVisit& visit, std::span<const float> values) {
  return cpu::fingerprint(kWeightsBuffer, static_cast<std::size_t>(visit.number) * values.size(), values);
}

}  // namespace

StageWorker::StageWorker(PipelineOrder order, const StagePlan& plan, int rank, StageLinks& links,
                         StageEngine& engine, StepObserver& observer, Timeline* timeline)
    : plan_(plan),
      rank_(rank),
      links_(links),
      engine_(engine),
      observer_(observer),
      order_(order),
      times_(plan.stages.size()),
      messages_{.sent = std::vector<std::uint64_t>(2 * plan.stages.size()),
                .arrived = std::vector<std::uint64_t>(2 * plan.stages.size())},
      timeline_(timeline) {
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    names_[0].push_back(fmt::format("stage {} forward", stage));
    names_[1].push_back(fmt::format("stage {} backward", stage));
  }
}

const PipelineSchedule& StageWorker::schedule(int grains, bool training) {
  auto [entry, is_new] = schedules_.try_emplace({training, grains});
  if (!is_new) return entry->second;
  std::vector<bool> goes_back;
  for (const PipelineStage& stage : plan_.stages) goes_back.push_back(training && stage.goes_back());
  return entry->second = make_schedule(plan_.ranks(), goes_back, grains, order_);
}

void StageWorker::run(std::span<const StageGrain> grains, bool training) {
  const PipelineSchedule& passes = schedule(static_cast<int>(grains.size()), training);
  for (const int stage : plan_.stages_of(rank_)) engine_.make_room(stage, at(passes.in_flight, stage));
  std::ranges::fill(messages_.sent, 0);
  std::ranges::fill(messages_.arrived, 0);
  for (const PipelinePass& pass : at(passes.ranks, rank_)) {
    const StageVisit visit{
        .stage = pass.stage,
        .number = pass.grain,
        .grain = at(grains, pass.grain),
        .training = training,
        .next = pass.grain + 1 < std::ssize(grains) ? &at(grains, pass.grain + 1) : nullptr};
    run_pass(visit, pass.backward);
  }
}

bool StageWorker::compares(const StageVisit& visit, int other) const {
  return visit.training && engine_.message_stream() == nullptr &&
         plan_.rank_of(visit.stage) != plan_.rank_of(other);
}

void StageWorker::send(const StageVisit& visit, int to, std::span<const float> values) {
  if (compares(visit, to))
    at(messages_.sent, StageLinks::tag_of(visit.stage, to)) += fingerprint_of(visit, values);
  links_.send(visit.stage, to, values);
}

void StageWorker::receive(const StageVisit& visit, int from, std::span<float> values) {
  links_.receive(from, visit.stage, values);
  if (!compares(visit, from)) return;
  observer_.message_arrived(values);
  at(messages_.arrived, StageLinks::tag_of(from, visit.stage)) += fingerprint_of(visit, values);
}

void StageWorker::run_pass(const StageVisit& visit, bool backward) {
  const int previous = visit.stage - 1, next = visit.stage + 1;
  if (backward && next <= plan_.last()) receive(visit, next, engine_.output_gradient(visit));
  if (!backward && previous >= 0) receive(visit, previous, engine_.input(visit));
  const TimeSpan span(visit.training ? timeline_ : nullptr, Work::kMicroBatch,
                      at(at(names_, backward), visit.stage), visit.number);
  const auto start = Clock::now();
  const auto result = backward ? engine_.backward(visit) : engine_.forward(visit);
  if (!result.empty()) send(visit, backward ? previous : next, result);
  if (!visit.training) return;
  PassTimes& times = at(at(times_, visit.stage), backward);
  times.seconds += seconds_since(start);
  ++times.passes;
}

double StageWorker::busy() const {
  double seconds = 0;
  for (const StageTimes& times : times_) seconds += times[0].seconds + times[1].seconds;
  return seconds;
}

}  // namespace lockstep
