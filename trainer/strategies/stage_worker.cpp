// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Receive, run, send.
#include "common/machine.hpp"
#include "trainer/strategies/stage_engine.hpp"

namespace lockstep {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

std::vector<bool> goes_back(const StagePlan& plan) {
  std::vector<bool> answers;
  for (const PipelineStage& stage : plan.stages) answers.push_back(stage.goes_back());
  return answers;
}

}  // namespace

StageWorker::StageWorker(const Job& job, const StagePlan& plan, int rank, StageLinks& links,
                         StageEngine& engine)
    : plan_(plan),
      rank_(rank),
      links_(links),
      engine_(engine),
      order_(job.parallel.schedule),
      times_(plan.stages.size()) {}

const PipelineSchedule& StageWorker::schedule(int grains, PipelineOrder order) {
  auto [entry, is_new] = schedules_.try_emplace({order, grains});
  if (is_new) entry->second = make_schedule(plan_.ranks(), goes_back(plan_), grains, order);
  return entry->second;
}

void StageWorker::train(std::span<const StageGrain> grains) {
  run(grains, order_);
}

void StageWorker::evaluate(std::span<const StageGrain> grains) {
  run(grains, PipelineOrder::kForward);
}

void StageWorker::run(std::span<const StageGrain> grains, PipelineOrder order) {
  const PipelineSchedule& passes = schedule(static_cast<int>(grains.size()), order);
  for (const int stage : plan_.stages_of(rank_)) engine_.make_room(stage, passes.in_flight[at(stage)]);
  for (const PipelinePass& pass : passes.ranks[at(rank_)]) {
    const StageVisit visit{.stage = pass.stage,
                           .number = pass.grain,
                           .grain = grains[at(pass.grain)],
                           .training = order != PipelineOrder::kForward};
    if (pass.backward) {
      backward(visit);
    } else {
      forward(visit);
    }
  }
}

void StageWorker::forward(const StageVisit& visit) {
  if (visit.stage > 0) links_.receive_forward(visit.stage, engine_.input(visit));
  const auto start = Clock::now();
  const auto output = engine_.forward(visit);
  if (visit.stage < plan_.last()) links_.send_forward(visit.stage, output);
  if (!visit.training) return;
  times_[at(visit.stage)].forward += seconds_since(start);
  ++times_[at(visit.stage)].forwards;
}

void StageWorker::backward(const StageVisit& visit) {
  if (visit.stage < plan_.last()) links_.receive_backward(visit.stage, engine_.output_gradient(visit));
  const auto start = Clock::now();
  const auto gradient = engine_.backward(visit);
  if (!gradient.empty()) links_.send_backward(visit.stage, gradient);
  times_[at(visit.stage)].backward += seconds_since(start);
  ++times_[at(visit.stage)].backwards;
}

double StageWorker::busy() const {
  double seconds = 0;
  for (const StageTimes& times : times_) seconds += times.forward + times.backward;
  return seconds;
}

}  // namespace lockstep
