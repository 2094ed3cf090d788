// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// CpuStageEngine: an execution for each part that the rank holds, and room for the grains in flight.
#include "trainer/strategies/cpu_stage_engine.hpp"

#include "data/dataset.hpp"
#include "models/layer.hpp"
#include "trainer/config/job.hpp"
#include "trainer/strategies/device_stage_engine.hpp"
#include "trainer/strategies/stage_engine.hpp"

#include <algorithm>

namespace lockstep {

CpuStageEngine::CpuStageEngine(const StageEngineParts& parts)
    : network_(parts.setup.network),
      data_(*parts.setup.data),
      plan_(parts.plan),
      first_stage_(parts.plan.stages_of(parts.rank).front()),
      replicas_(parts.replicas),
      weights_(parts.job, parts.setup.network, parts.held, parts.replicas, parts.sampler.steps_per_epoch(),
               parts.sampler.batch_grains(0)),
      columns_(columns_for(parts.job.parallel.grain)),
      slots_(parts.plan.stages.size()),
      labels_(static_cast<std::size_t>(columns_)) {}

int CpuStageEngine::columns_for(int samples) const {
  const int multiple = cpu::kLanes;
  return (samples + multiple - 1) / multiple * multiple;
}

std::size_t CpuStageEngine::input_size(const StageVisit& visit) const {
  const Layer& first = *network_.layers()[part(visit.stage).first];
  return std::size_t{1} * first.input().features() * columns_for(visit.grain.samples());
}

std::size_t CpuStageEngine::output_size(const StageVisit& visit) const {
  const Layer& last = *network_.layers()[part(visit.stage).last - 1];
  return std::size_t{1} * last.output().features() * columns_for(visit.grain.samples());
}

void CpuStageEngine::make_room(int stage, int micro_batches) {
  Slots& slots = slots_[static_cast<std::size_t>(stage)];
  while (slots.size() < static_cast<std::size_t>(micro_batches))
    slots.emplace_back(network_, columns_, part(stage));
}

Execution& CpuStageEngine::slot(const StageVisit& visit) {
  Slots& slots = slots_[static_cast<std::size_t>(visit.stage)];
  return slots[static_cast<std::size_t>(visit.number) % slots.size()];
}

std::span<float> CpuStageEngine::input(const StageVisit& visit) {
  return {slot(visit).input(), input_size(visit)};
}

std::span<const float> CpuStageEngine::forward(const StageVisit& visit) {
  Execution& execution = slot(visit);
  const StageGrain& grain = visit.grain;
  const int columns = columns_for(grain.samples());
  if (visit.stage == 0) {
    BatchLoader(visit.training ? data_.train : data_.test)
        .load(grain.indices, columns, execution.input(), labels_.data());
  }
  const float* weights = weights_.weights_of(visit.stage);
  float* output = visit.training ? execution.forward_training(weights, columns, grain.key)
                                 : execution.forward_evaluation(weights, columns);
  const bool is_last = visit.stage == plan_.last();
  if (is_last) take_loss(visit, output);
  if (visit.training) {
    if (visit.stage == first_stage_) weights_.count_grain(grain.samples());
    weights_.poll();
  }
  return is_last ? std::span<const float>() : std::span<const float>(output, output_size(visit));
}

void CpuStageEngine::take_loss(const StageVisit& visit, float* logits) {
  const Dataset& data = visit.training ? data_.train : data_.test;
  const StageGrain& grain = visit.grain;
  for (std::size_t n = 0; n < grain.indices.size(); ++n)
    labels_[n] = data.labels[static_cast<std::size_t>(grain.indices[n])];
  LossSums sums;
  const LossShape shape{
      .batch = columns_for(grain.samples()), .samples = grain.samples(), .classes = network_.classes()};
  cpu::softmax_cross_entropy(shape, logits, labels_.data(), visit.training ? logits : nullptr, &sums);
  if (!visit.training) {
    evaluated_.add(sums, grain.samples());
    return;
  }
  const StepCounters of_grain = loss_counters(sums, grain.samples(), narrow_limit_);
  for (std::size_t i = 0; i < counters_.values.size(); ++i) counters_.values[i] += of_grain.values[i];
}

std::span<float> CpuStageEngine::output_gradient(const StageVisit& visit) {
  return {slot(visit).output_gradient(), output_size(visit)};
}

std::span<const float> CpuStageEngine::backward(const StageVisit& visit) {
  const auto add = [&](std::size_t offset, std::size_t size, const GradientTerms& terms) {
    weights_.add(visit.stage, offset, size, terms);
  };
  Execution& execution = slot(visit);
  execution.backward(weights_.weights_of(visit.stage), execution.output_gradient(),
                     weights_.gradients_of(visit.stage), add, [&] { weights_.poll(); });
  weights_.poll();
  const float* gradient = execution.input_gradient();
  return {gradient, gradient == nullptr ? 0 : input_size(visit)};
}

void CpuStageEngine::begin_step(const StepPosition& /*position*/, const GradientUnits& units, int grains) {
  counters_ = {};
  narrow_limit_ = narrow_loss_limit(units.global_grains());
  weights_.use_units(units);
  weights_.begin_step(grains);
}

/// They are summed over the replicas already: the first one speaks for all.
std::vector<TensorRefusals> CpuStageEngine::refusals() {
  const auto refusals = weights_.refusals();
  if (replicas_.rank() == 0) return {refusals.begin(), refusals.end()};
  return std::vector<TensorRefusals>(refusals.size());
}

void CpuStageEngine::update(const StepPosition& position, std::int64_t /*samples*/,
                            std::vector<std::uint64_t>& rows) {
  weights_.update(position.global_step, rows);
}

// A reducer for the rank's own arena, in which every stage is a bucket.

RankWeights::RankWeights(const Job& job, const Network& network, const HeldLayout& held,
                         Communicator& replicas, std::int64_t steps_per_epoch, std::int64_t global_grains)
    : held_(held),
      weights_(held_.layout.size),
      gradient_(held_.layout.size),
      grain_gradient_(held_.layout.size),
      update_(job, held_.layout, steps_per_epoch),
      buffers_(update_.buffer_names(), held_.layout.size) {
  if (keeps_trail(job)) {
    fingerprints_.emplace(fingerprint_layout(network.parameters(), buffers_.count()),
                          places_in_network(held_, network.parameters()));
  }
  if (held_.ranges.empty()) return;
  units_.emplace(held_.tensor_sizes(), global_grains);
  reducer_.emplace(replicas, held_.buckets(), *units_, job.parallel.determinism);
}

float* RankWeights::begin_of(int stage, AlignedBuffer<float>& arena) const {
  const HeldRange* range = held_.range_of(stage);
  return range == nullptr ? nullptr : arena.data() + range->local;
}

void RankWeights::use_units(const GradientUnits& whole) {
  if (!units_) return;
  std::vector<std::int16_t> exponents;
  for (const std::size_t tensor : held_.tensors) exponents.push_back(whole.exponents()[tensor]);
  units_->restore(exponents, whole.changed_at());
}

void RankWeights::begin_step(int local_grains) {
  if (reducer_) reducer_->begin_step(local_grains, false);
}

void RankWeights::add(int stage, std::size_t offset, std::size_t size, const GradientTerms& terms) {
  reducer_->add(held_.range_of(stage)->local + offset, size, terms);
}

void RankWeights::count_grain(int samples) {
  if (reducer_) reducer_->add_sums({}, samples);
}

void RankWeights::poll() {
  if (reducer_) reducer_->poll();
}

void RankWeights::wait() {
  if (reducer_) reducer_->wait();
}

std::span<const TensorRefusals> RankWeights::refusals() const {
  return reducer_ ? reducer_->refusals() : std::span<const TensorRefusals>();
}

std::vector<double> RankWeights::largest_sums() const {
  return reducer_ ? reducer_->largest_sums() : std::vector<double>();
}

void RankWeights::update(std::int64_t global_step, std::vector<std::uint64_t>& rows) {
  GradientReducer::SeeSums see;
  if (fingerprints_) {
    const HostFingerprints::Row row = fingerprints_->append_empty(rows);
    fingerprints_->add_state(row, 0, weights_.size(), weights_.span(), buffers_);
    see = [this, row](auto tensor, auto first, auto sums) {
      fingerprints_->add_sums(row, tensor, first, sums);
    };
  }
  if (!reducer_) return;
  reducer_->mean_gradient(gradient_.data(), see);
  cpu::update(update_.rule(), update_.scalars(global_step), update_.tensors(), gradient_.data(),
              buffers_.pointers(), weights_.data());
}

// Places of a stage's parameters, in the rank's arena and in the network's.

const HeldRange* HeldLayout::range_of(int stage) const {
  const auto found = std::ranges::find(ranges, stage, &HeldRange::stage);
  return found == ranges.end() ? nullptr : &*found;
}

std::vector<std::size_t> HeldLayout::tensor_sizes() const {
  std::vector<std::size_t> sizes;
  for (const Parameter& parameter : layout.parameters) sizes.push_back(parameter.size);
  return sizes;
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
    const PipelineStage& stage = plan.stages[static_cast<std::size_t>(number)];
    if (stage.arena.size == 0) continue;
    held.ranges.push_back(
        {number, stage.arena.offset, held.layout.size, stage.arena.size, held.tensors.size()});
    const auto& all = network.parameters().parameters;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].offset < stage.arena.offset || all[i].offset >= stage.arena.offset + stage.arena.size)
        continue;
      held.layout.parameters.push_back(all[i]);
      held.layout.parameters.back().offset += held.layout.size - stage.arena.offset;
      held.tensors.push_back(i);
    }
    held.layout.size += stage.arena.size;
  }
  return held;
}

std::vector<HeldTensor> places_in_network(const HeldLayout& held, const ParameterLayout& network) {
  std::vector<HeldTensor> places;
  for (std::size_t i = 0; i < held.tensors.size(); ++i) {
    const Parameter& local = held.layout.parameters[i];
    const std::size_t number = held.tensors[i];
    places.push_back({number, network.parameters[number].offset, local.offset, local.size});
  }
  return places;
}

// The choice of the engine.

std::unique_ptr<StageEngine> make_stage_engine(const StageEngineParts& parts) {
  if (parts.setup.device.gpu) return std::make_unique<DeviceStageEngine>(parts);
  return std::make_unique<CpuStageEngine>(parts);
}

}  // namespace lockstep
