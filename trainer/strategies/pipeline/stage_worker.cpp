// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Receive, run, send.
#include "trainer/strategies/pipeline/stage_worker.hpp"

#include "common/clock.hpp"
#include "common/error.hpp"
#include "models/layer.hpp"

#include <algorithm>

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

StageWorker::StageWorker(const Job& job, const JobSetup& setup, const StagePlan& plan, int rank,
                         StageLinks& links, RankWeights& weights)
    : network_(setup.network),
      training_set_(setup.data->train),
      plan_(plan),
      rank_(rank),
      links_(links),
      weights_(weights),
      order_(job.parallel.schedule == "gpipe" ? PipelineOrder::kGPipe : PipelineOrder::k1F1B),
      ops_(setup.device.make_ops()),
      columns_(columns_for(job.parallel.grain)),
      slots_(plan.stages.size()),
      labels_(at(columns_)),
      times_(plan.stages.size()) {}

int StageWorker::columns_for(int samples) const {
  const int multiple = ops_->batch_multiple();
  return (samples + multiple - 1) / multiple * multiple;
}

std::size_t StageWorker::input_size(int stage, int columns) const {
  return std::size_t{1} * network_.layers()[plan_.stages[at(stage)].part.first]->input().features() * columns;
}

std::size_t StageWorker::output_size(int stage, int columns) const {
  return std::size_t{1} * network_.layers()[plan_.stages[at(stage)].part.last - 1]->output().features() *
         columns;
}

const PipelineSchedule& StageWorker::schedule(int grains) {
  return schedule(grains, order_);
}

const PipelineSchedule& StageWorker::schedule(int grains, PipelineOrder order) {
  auto [entry, is_new] = schedules_.try_emplace({order, grains});
  if (is_new) entry->second = make_schedule(plan_.ranks(), goes_back(plan_), grains, order);
  return entry->second;
}

void StageWorker::make_room(const PipelineSchedule& schedule) {
  for (const int stage : plan_.stages_of(rank_)) {
    Slots& slots = slots_[at(stage)];
    while (slots.size() < at(schedule.in_flight[at(stage)]))
      slots.emplace_back(network_, plan_.stages[at(stage)].part, *ops_, columns_);
  }
}

/// Grains of a stage come and go in order, so that those in flight are neighbours.
PartExecution& StageWorker::slot(int stage, int grain) {
  Slots& slots = slots_[at(stage)];
  return slots[at(grain) % slots.size()];
}

void StageWorker::train(std::span<const StageGrain> grains, const OnLoss& on_loss) {
  const int first_stage = plan_.stages_of(rank_).front();
  const PipelineSchedule& order = schedule(static_cast<int>(grains.size()));
  make_room(order);
  for (const PipelinePass& pass : order.ranks[at(rank_)]) {
    const StageGrain& grain = grains[at(pass.grain)];
    if (pass.backward) {
      backward(pass.stage, pass.grain, grain);
    } else {
      forward(pass.stage, pass.grain, grain, training_set_, true, on_loss);
      if (pass.stage == first_stage) weights_.count_grain(grain.samples());
    }
    weights_.poll();
  }
}

void StageWorker::evaluate(const Dataset& data, std::span<const StageGrain> grains, const OnLoss& on_loss) {
  const PipelineSchedule& order = schedule(static_cast<int>(grains.size()), PipelineOrder::kForward);
  make_room(order);
  for (const PipelinePass& pass : order.ranks[at(rank_)])
    forward(pass.stage, pass.grain, grains[at(pass.grain)], data, false, on_loss);
}

void StageWorker::forward(int stage, int number, const StageGrain& grain, const Dataset& data, bool training,
                          const OnLoss& on_loss) {
  PartExecution& execution = slot(stage, number);
  const int columns = columns_for(grain.samples());
  if (stage > 0) links_.receive_forward(stage, {execution.input(), input_size(stage, columns)});
  const auto start = Clock::now();
  if (stage == 0) BatchLoader(data).load(*ops_, grain.indices, columns, execution.input(), labels_.data());
  const float* weights = weights_.weights_of(stage);
  float* output = training ? execution.forward_training(weights, columns, grain.key)
                           : execution.forward_evaluation(weights, columns);
  if (stage == plan_.last()) {
    for (std::size_t n = 0; n < grain.indices.size(); ++n) labels_[n] = data.labels[at(grain.indices[n])];
    on_loss(loss_of(output, grain, training), grain.samples());
  }
  if (stage < plan_.last()) links_.send_forward(stage, {output, output_size(stage, columns)});
  if (!training) return;
  times_[at(stage)].forward += seconds_since(start);
  ++times_[at(stage)].forwards;
}

/// The logits become their gradient.
LossSums StageWorker::loss_of(float* logits, const StageGrain& grain, bool training) {
  LossSums sums;
  const LossShape shape{
      .batch = columns_for(grain.samples()), .samples = grain.samples(), .classes = network_.classes()};
  ops_->softmax_cross_entropy(shape, logits, labels_.data(), training ? logits : nullptr, &sums);
  return sums;
}

void StageWorker::backward(int stage, int number, const StageGrain& grain) {
  PartExecution& execution = slot(stage, number);
  const int columns = columns_for(grain.samples());
  if (stage < plan_.last())
    links_.receive_backward(stage, {execution.output_gradient(), output_size(stage, columns)});
  const auto start = Clock::now();
  const auto add = [&](std::size_t offset, std::size_t size, const GradientTerms& terms) {
    weights_.add(*ops_, stage, offset, size, terms);
  };
  const float* gradient = execution.backward(weights_.weights_of(stage), weights_.gradients_of(stage), add,
                                             [&] { weights_.poll(); });
  if (gradient != nullptr) links_.send_backward(stage, {gradient, input_size(stage, columns)});
  times_[at(stage)].backward += seconds_since(start);
  ++times_[at(stage)].backwards;
}

double StageWorker::busy() const {
  double seconds = 0;
  for (const StageTimes& times : times_) seconds += times.forward + times.backward;
  return seconds;
}

}  // namespace lockstep
