// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The memory of a pipeline's rank, and its passes: receive, run, send.
#include "trainer/parallel/stage_engine.hpp"

#include "common/machine.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "models/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {

const HeldRange* HeldLayout::range_of(int stage) const {
  const auto found = std::ranges::find(ranges, stage, &HeldRange::stage);
  return found == ranges.end() ? nullptr : &*found;
}

bool HeldLayout::take_units(const GradientUnits& whole, GradientUnits& own) const {
  std::vector<std::int16_t> exponents;
  for (const HeldTensor& tensor : tensors) exponents.push_back(whole.exponents()[tensor.number]);
  if (std::ranges::equal(exponents, own.exponents())) return false;
  own.restore(exponents, whole.changed_at());
  return true;
}

BucketPlan HeldLayout::buckets() const {
  BucketPlan plan;
  for (std::size_t i = ranges.size(); i-- > 0;)
    plan.buckets.push_back({.offset = ranges[i].local, .size = ranges[i].size});
  return plan;
}

HeldLayout held_layout(const Network& network, const StagePlan& plan, int rank) {
  HeldLayout held;
  for (const int number : plan.stages_of(rank)) {
    const PipelineStage& stage = at(plan.stages, number);
    if (stage.arena.size == 0) continue;
    held.ranges.push_back(
        {number, stage.arena.offset, held.layout.size, stage.arena.size, held.tensors.size()});
    const auto& all = network.parameters().parameters;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].offset < stage.arena.offset || all[i].offset >= stage.arena.offset + stage.arena.size)
        continue;
      Parameter& local = held.layout.parameters.emplace_back(all[i]);
      local.offset += held.layout.size - stage.arena.offset;
      held.tensors.push_back({i, all[i].offset, local.offset, local.size});
    }
    held.layout.size += stage.arena.size;
  }
  return held;
}

std::size_t StageEngine::input_features(int stage) const {
  return static_cast<std::size_t>(network().layers()[part(stage).first]->input().features());
}

std::size_t StageEngine::output_features(int stage) const {
  return static_cast<std::size_t>(network().layers()[part(stage).last - 1]->output().features());
}

const Dataset& StageEngine::data_of(const StageVisit& visit) const {
  return visit.training ? parts_.setup.data->train : parts_.setup.data->part(evaluated_part_);
}

void StageEngine::copy_labels(const StageVisit& visit, std::span<std::int32_t> labels) const {
  take_labels(data_of(visit).labels, visit.grain.indices, visit.grain.mixes, labels.data());
}

ArenaPart StageEngine::arena_part() const {
  return {.options = parts_.setup.options,
          .network = network().parameters(),
          .layout = held().layout,
          .held = held().tensors,
          .plan = held().buckets(),
          .steps_per_epoch = parts_.sampler.steps_per_epoch(),
          .global_grains = parts_.sampler.batch_grains(0),
          .is_stage = true};
}

namespace {

/// Each micro-batch has multipliers of its own.
std::uint64_t fingerprint_of(const StageVisit& visit, std::span<const float> values) {
  return cpu::fingerprint(kWeightsBuffer, static_cast<std::size_t>(visit.number) * values.size(), values);
}

std::vector<bool> goes_back(const StagePlan& plan) {
  std::vector<bool> answers;
  for (const PipelineStage& stage : plan.stages) answers.push_back(stage.goes_back());
  return answers;
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
    forward_names_.push_back(fmt::format("stage {} forward", stage));
    backward_names_.push_back(fmt::format("stage {} backward", stage));
  }
}

const PipelineSchedule& StageWorker::schedule(int grains, PipelineOrder order) {
  auto [entry, is_new] = schedules_.try_emplace({order, grains});
  if (is_new) entry->second = make_schedule(plan_.ranks(), goes_back(plan_), grains, order);
  return entry->second;
}

void StageWorker::run(std::span<const StageGrain> grains, PipelineOrder order) {
  const PipelineSchedule& passes = schedule(static_cast<int>(grains.size()), order);
  for (const int stage : plan_.stages_of(rank_)) engine_.make_room(stage, at(passes.in_flight, stage));
  std::ranges::fill(messages_.sent, 0);
  std::ranges::fill(messages_.arrived, 0);
  for (const PipelinePass& pass : at(passes.ranks, rank_)) {
    const StageVisit visit{
        .stage = pass.stage,
        .number = pass.grain,
        .grain = at(grains, pass.grain),
        .training = order != PipelineOrder::kForward,
        .next = pass.grain + 1 < std::ssize(grains) ? &at(grains, pass.grain + 1) : nullptr};
    if (pass.backward) {
      backward(visit);
    } else {
      forward(visit);
    }
  }
}

bool StageWorker::compares(const StageVisit& visit, int other) const {
  return visit.training && engine_.message_stream() == nullptr &&
         plan_.rank_of(visit.stage) != plan_.rank_of(other);
}

void StageWorker::note_sent(const StageVisit& visit, int to, std::span<const float> values) {
  if (compares(visit, to))
    at(messages_.sent, StageLinks::tag_of(visit.stage, to)) += fingerprint_of(visit, values);
}

void StageWorker::note_arrived(const StageVisit& visit, int from, std::span<float> values) {
  if (!compares(visit, from)) return;
  observer_.message_arrived(values);
  at(messages_.arrived, StageLinks::tag_of(from, visit.stage)) += fingerprint_of(visit, values);
}

void StageWorker::forward(const StageVisit& visit) {
  if (visit.stage > 0) {
    const std::span<float> input = engine_.input(visit);
    links_.receive_forward(visit.stage, input);
    note_arrived(visit, visit.stage - 1, input);
  }
  const TimeSpan span(visit.training ? timeline_ : nullptr, Work::kMicroBatch,
                      at(forward_names_, visit.stage), visit.number);
  const auto start = Clock::now();
  const auto output = engine_.forward(visit);
  if (visit.stage < plan_.last()) {
    note_sent(visit, visit.stage + 1, output);
    links_.send_forward(visit.stage, output);
  }
  if (!visit.training) return;
  at(times_, visit.stage).forward += seconds_since(start);
  ++at(times_, visit.stage).forwards;
}

void StageWorker::backward(const StageVisit& visit) {
  if (visit.stage < plan_.last()) {
    const std::span<float> gradient = engine_.output_gradient(visit);
    links_.receive_backward(visit.stage, gradient);
    note_arrived(visit, visit.stage + 1, gradient);
  }
  const TimeSpan span(visit.training ? timeline_ : nullptr, Work::kMicroBatch,
                      at(backward_names_, visit.stage), visit.number);
  const auto start = Clock::now();
  const auto gradient = engine_.backward(visit);
  if (!gradient.empty()) {
    note_sent(visit, visit.stage - 1, gradient);
    links_.send_backward(visit.stage, gradient);
  }
  at(times_, visit.stage).backward += seconds_since(start);
  ++at(times_, visit.stage).backwards;
}

double StageWorker::busy() const {
  double seconds = 0;
  for (const StageTimes& times : times_) seconds += times.forward + times.backward;
  return seconds;
}

}  // namespace lockstep
