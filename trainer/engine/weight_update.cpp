// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a section of a job file and a layout to what the kernels are called with.
#include "trainer/engine/weight_update.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace lockstep {

namespace {

/// Neighbours that are treated alike become one range, unless the rule wants to see tensors.
std::vector<UpdateTensor> ranges_of(const ParameterLayout& layout, UpdateRule rule, bool decay_biases) {
  std::vector<UpdateTensor> ranges;
  for (const Parameter& parameter : layout.parameters) {
    const bool is_whole = decay_biases || parameter.shape.size() > 1;
    const UpdateTensor range{
        .offset = parameter.offset, .size = parameter.size, .decays = is_whole, .adapts = is_whole};
    const bool continues = !ranges.empty() && !uses_norms(rule) && ranges.back().decays == range.decays;
    if (continues) {
      ranges.back().size += range.size;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

std::string scaling_text(const OptimizerSection& section, std::int64_t global_batch) {
  const LrScalingSection& scaling = section.lr_scaling;
  if (scaling.rule == LrScalingSection().rule) return "";
  return fmt::format(" ({:g} for a global batch of {}, {} scaling to {})", section.lr, scaling.base_batch,
                     scaling.rule, global_batch);
}

}  // namespace

WeightAverages::WeightAverages(const Job& job, std::int64_t steps_per_epoch)
    : ema_(job.train.ema),
      first_end_(job.train.swa.from_epoch * steps_per_epoch),
      steps_per_epoch_(steps_per_epoch) {
  if (ema_ > 0) names_.emplace_back(kEmaBuffer);
  if (first_end_ > 0) names_.emplace_back(kSwaBuffer);
}

/// Computed in double, rounded once. With 1 / n of the distance the n-th weights count as much as those before.
float WeightAverages::share(std::size_t i, std::int64_t step) const {
  if (names_[i] == kEmaBuffer) return step == 0 ? 1 : share_of_each_step(i);
  const std::int64_t taken = step + 1;
  if (taken < first_end_ || taken % steps_per_epoch_ != 0) return 0;
  return static_cast<float>(1 / static_cast<double>((taken - first_end_) / steps_per_epoch_ + 1));
}

bool WeightAverages::exists(std::size_t i, std::int64_t steps) const {
  return names_[i] == kEmaBuffer ? steps > 0 : steps >= first_end_;
}

WeightUpdate::WeightUpdate(const Job& job, const ParameterLayout& layout, std::int64_t steps_per_epoch)
    : scaling_(scaling_text(job.train.optimizer, job.data.global_batch)),
      section_(job.train.optimizer),
      optimizer_(find_optimizer(section_)),
      rule_(optimizer_.rule(section_)),
      averages_(job, steps_per_epoch),
      names_(optimizer_.buffers(section_)),
      tensors_(ranges_of(layout, rule_, job.train.optimizer.decay_biases)),
      lr_(scaled_lr(job.train.optimizer, job.data.global_batch)),
      run_{.epochs = job.train.epochs, .steps_per_epoch = steps_per_epoch},
      schedule_(job.train.schedule, lr_, run_) {
  LOCKSTEP_CHECK(static_cast<int>(names_.size()) == buffers_of(rule_));
  names_.insert(names_.end(), averages_.names().begin(), averages_.names().end());
}

/// A schedule moves the momentum of an optimiser that has one: Adam's is betas[0], and its section's is not 0. Where
/// the job gave 0, there is none.
StepScalars WeightUpdate::scalars(std::int64_t step) const {
  ScheduledValues now = schedule_.at(step);
  if (section_.momentum == 0) now.momentum.reset();
  return optimizer_.scalars(section_, now, step);
}

std::string WeightUpdate::describe() const {
  return fmt::format("{}, learning rate {:.6g}{}, {}", section_.kind, lr_, scaling_, schedule_.describe());
}

void WeightUpdate::require_warmup_within_run(const Job& job) const {
  if (schedule_.warmup_steps() == 0 || schedule_.warmup_steps() < run_.steps()) return;
  throw key_error(job, "train.schedule.warmup_steps",
                  fmt::format("{} is not shorter than the run, which has {} (train.epochs: {} of {})",
                              schedule_.warmup_steps(), counted(run_.steps(), "step"), run_.epochs,
                              run_.steps_per_epoch));
}

OptimizerBuffers::OptimizerBuffers(const std::vector<std::string>& names, std::size_t parameters)
    : names_(names) {
  for (std::size_t i = 0; i < names.size(); ++i) values_.emplace_back(parameters);
  for (AlignedBuffer<float>& values : values_) pointers_.push_back(values.data());
}

std::vector<OptimizerBufferView> OptimizerBuffers::views() {
  std::vector<OptimizerBufferView> views;
  for (std::size_t i = 0; i < names_.size(); ++i) views.push_back({names_[i], values_[i].span()});
  return views;
}

void exchange(const TrainedState& state, const std::string& buffer) {
  const auto found = std::ranges::find(state.optimizer, buffer, &OptimizerBufferView::name);
  LOCKSTEP_CHECK(found != state.optimizer.end());
  std::ranges::swap_ranges(found->values, state.weights.first(found->values.size()));
}

std::size_t optimizer_buffers(const Job& job) {
  return find_optimizer(job.train.optimizer).buffers(job.train.optimizer).size() +
         WeightAverages(job, 1).count();
}

double sum_of_squares(std::span<const float> values) {
  std::array<double, kNormLanes> lanes{};
  for (std::size_t i = 0; i < values.size(); i += kNormLanes) {
    const std::size_t count = std::min<std::size_t>(kNormLanes, values.size() - i);
    for (std::size_t lane = 0; lane < count; ++lane)
      lanes[lane] += double{values[i + lane]} * double{values[i + lane]};
  }
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

double norm_of(std::span<const double> squares) {
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

// Which tensors there are.

GradientUnits make_gradient_units(const ParameterLayout& layout, std::int64_t global_grains) {
  std::vector<std::size_t> sizes;
  for (const Parameter& parameter : layout.parameters) sizes.push_back(parameter.size);
  return {sizes, global_grains};
}

FingerprintLayout fingerprint_layout(const ParameterLayout& parameters, std::size_t buffers) {
  return {.trained = parameters.parameters.size(), .kept = parameters.kept.size(), .buffers = buffers};
}

std::vector<HeldTensor> held_tensors(const ParameterLayout& parameters) {
  std::vector<HeldTensor> held;
  for (const Parameter& tensor : parameters.tensors())
    held.push_back({held.size(), tensor.offset, tensor.offset, tensor.size});
  return held;
}

}  // namespace lockstep
