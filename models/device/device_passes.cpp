// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A device's passes: stages forward, and backward with the ranges of gradients that each completes.
#include "common/error.hpp"
#include "models/device/device_execution.hpp"
#include "models/device_layer.hpp"
#include "models/layer.hpp"

#include <cstddef>
#include <limits>
#include <vector>

namespace lockstep {

// Forward on a device: stage after stage, from cut to cut.

float* DeviceExecution::forward_training(Stream& stream, const float* weights, const DevicePass& pass) {
  LOCKSTEP_CHECK(cuts_.empty() && pass.batch > 0);
  begin_training(const_cast<float*>(weights), pass);  // only cuts write to them
  forward_to_cut(stream);
  return logits();
}

float* DeviceExecution::forward_evaluation(Stream& stream, const float* weights, int batch) {
  LOCKSTEP_CHECK(batch > 0 && batch <= max_batch_);
  weights_ = const_cast<float*>(weights);
  pass_ = {.batch = batch};
  training_ = false;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    Unit& unit = units_[i];
    if (const BatchLayer* over_batch = unit.over_batch())
      over_batch->device_use_kept(layer_pass(stream), kept_of(unit), unit.statistics.data());
    forward_stage(stream, i);
  }
  return logits();
}

void DeviceExecution::begin_training(float* weights, const DevicePass& pass) {
  LOCKSTEP_CHECK(pass.batch >= 0 && pass.batch <= max_batch_);
  weights_ = weights;
  pass_ = pass;
  training_ = true;
  next_ = 0;
  terms_added_ = forked_ = loss_is_queued_ = last_dx_is_queued_ = false;
}

CutSums DeviceExecution::forward_to_cut(Stream& stream) {
  for (; next_ < units_.size(); ++next_) {
    Unit& unit = units_[next_];
    if (const BatchLayer* over_batch = unit.over_batch()) {
      terms_added_ = !terms_added_;
      if (terms_added_) return queue_sums(stream, next_, true);
      over_batch->finish_device_forward_sums(layer_pass(stream), words_.data(), pass_.batch_samples,
                                             unit.statistics.data());
    }
    if (pass_.batch > 0) forward_stage(stream, next_);
  }
  if (pass_.loss && !loss_is_queued_) {
    const DeviceSpan span(timeline_, stream, Work::kLoss);
    ops_.loss_and_gradient(stream, pass_.loss->shape, logits(), pass_.loss->target, logits());
    loss_is_queued_ = true;
  }
  return {};
}

void DeviceExecution::forward_stage(Stream& stream, std::size_t i) {
  Unit& unit = units_[i];
  const Stage& stage = unit.stage;
  const DeviceSpan span(training_ ? timeline_ : nullptr, stream, Work::kForward, stage.name);
  const float* x = input_of(i);
  Epilogue epilogue = training_ ? stage.epilogue : without_dropout(stage.epilogue);
  epilogue.seed = pass_.seed;
  epilogue.first_sample = pass_.first_sample;
  std::uint8_t* mask = training_ ? unit.mask.data() : nullptr;
  if (stage.head == nullptr) {
    ops_.epilogue_forward(stream, stage.input, pass_.batch, x, epilogue, pass_.state, unit.y.data(), mask);
    return;
  }
  const DeviceLayerTensors tensors{.weights = weights_of(unit),
                                   .x = x,
                                   .branch = branch_of(unit),
                                   .y = unit.y.data(),
                                   .saved = unit.mask.data(),
                                   .epilogue = &epilogue,
                                   .state = pass_.state,
                                   .mask = mask,
                                   .statistics = unit.statistics.data(),
                                   .zero_bias = zero_bias_.data()};
  if (i + 1 == units_.size() && pass_.loss && forward_with_loss(stream, tensors)) return;
  stage.head->device_forward(layer_pass(stream), tensors);
}

bool DeviceExecution::forward_with_loss(Stream& stream, DeviceLayerTensors tensors) {
  const std::size_t last = units_.size() - 1;
  const Unit& before = unit_before(last);
  const bool has_windows = before.stored_through && before.way_back.pool > 1;
  if (gives_gradient(last) && !has_windows) {
    tensors.dx = before.stored_through ? before.gradient : before.dy;
    tensors.through = before.stored_through ? &before.way_back : nullptr;
  }
  loss_is_queued_ = units_[last].stage.head->device_forward_loss(layer_pass(stream), tensors, *pass_.loss);
  last_dx_is_queued_ = loss_is_queued_ && tensors.dx != nullptr;
  return loss_is_queued_;
}

// Backward on a device: gradients of data on one stream, those of weights beside them on another.

namespace {

/// In units so large that every finite sum is none of them: nothing adds up or is refused.
ExactTarget unread(const DeviceBuffer<std::int64_t>& sums) {
  if (sums.size() == 0) return {};
  constexpr ExactFormat kNothing{0, std::numeric_limits<float>::infinity()};
  return {sums.data(), kNothing, {sums.data() + sums.size() - 1, nullptr}};
}

/// @param offset  counted as the gradient's arena is
ExactTarget target_of(const DeviceGradient& gradient, std::size_t tensor, std::size_t offset) {
  std::int64_t* of_tensor =
      gradient.refusals == nullptr ? nullptr : gradient.refusals + tensor * kRefusalKinds;
  return {gradient.arena + offset, gradient.formats[tensor], {gradient.refused, of_tensor}};
}

}  // namespace

void DeviceExecution::backward(Stream& main, Stream& side, float* dlogits, const DeviceGradient& gradient,
                               const DeviceGradientReady& on_ready) {
  begin_backward(main, dlogits);
  backward_to_cut(main, side, gradient, on_ready);
}

void DeviceExecution::begin_backward(Stream& main, float* dlogits) {
  next_ = units_.size();
  Unit& last = unit_before(next_);
  last.dy = dlogits;
  if (pass_.batch > 0) through_epilogue(main, last);
}

CutSums DeviceExecution::backward_to_cut(Stream& main, Stream& side, const DeviceGradient& gradient,
                                         const DeviceGradientReady& on_ready) {
  for (; next_ > first_trained_; --next_) {
    const std::size_t i = next_ - 1;
    Unit& unit = units_[i];
    if (const BatchLayer* over_batch = unit.over_batch()) {
      terms_added_ = !terms_added_;
      if (terms_added_) return queue_sums(main, i, false);
      over_batch->finish_device_backward_sums(layer_pass(main), words_.data(), pass_.batch_samples,
                                              unit.statistics.data());
    }
    if (unit.stage.trained()) backward_unit_weights(main, side, i, gradient, on_ready);
    if (gives_gradient(i) && pass_.batch > 0) backward_data(main, i);
  }
  join_side(main, side);
  return {};
}

void DeviceExecution::join_side(Stream& main, Stream& side) {
  if (!forked_) return;
  side.record(*side_done_);
  main.wait(*side_done_);
  forked_ = false;
}

void DeviceExecution::backward_unit_weights(Stream& main, Stream& side, std::size_t i,
                                            const DeviceGradient& gradient,
                                            const DeviceGradientReady& on_ready) {
  Unit& unit = units_[i];
  const bool on_side = i != first_trained_ && pass_.batch > 0;
  if (on_side) {
    main.record(*unit.ready);
    side.wait(*unit.ready);
    forked_ = true;
  }
  Stream& stream = on_side ? side : main;
  if (pass_.batch > 0) backward_weights(stream, i, gradient);
  on_ready(stream, unit.stage.parameter_offset() - first_parameter_, unit.stage.parameter_size());
}

/// A unit without an epilogue may share its gradient with those before it that have the same numbers.
void DeviceExecution::through_epilogue(Stream& stream, Unit& unit) {
  if (unit.has_epilogue()) {
    ops_.epilogue_backward(stream, unit.way_back, pass_.batch, unit.dy, unit.gradient);
  } else {
    unit.gradient = unit.dy;
  }
}

void DeviceExecution::backward_weights(Stream& stream, std::size_t i, const DeviceGradient& gradient) {
  const Unit& unit = units_[i];
  const DeviceSpan span(timeline_, stream, Work::kBackward, unit.stage.name);
  const Layer& layer = *unit.stage.head;
  std::vector<ExactTarget> targets;
  for (const Parameter& parameter : layer.parameters())
    targets.push_back(
        target_of(gradient, unit.first_tensor + targets.size(), parameter.offset - first_parameter_));
  layer.device_backward_weights(layer_pass(stream), {.x = input_of(i),
                                                     .saved = unit.mask.data(),
                                                     .epilogue = &unit.stage.epilogue,
                                                     .dy = unit.gradient,
                                                     .statistics = unit.statistics.data(),
                                                     .grain = gradient.grain,
                                                     .gradients = targets,
                                                     .unread_gradient = unread(unread_sums_)});
}

void DeviceExecution::backward_data(Stream& stream, std::size_t i) {
  Unit& unit = units_[i];
  Unit& before = unit_before(i);
  const DeviceSpan span(timeline_, stream, Work::kBackward, unit.stage.name);
  if (unit.stage.passes_gradient()) before.dy = unit.gradient;
  const bool is_done = last_dx_is_queued_ && i + 1 == units_.size();
  if (unit.stage.head != nullptr && !is_done) {
    const auto branch = unit.stage.branch;
    const bool wanted =
        branch && (gives_input_gradient_ || *branch > first_trained_);  // after a trained unit
    unit.stage.head->device_backward_data(
        layer_pass(stream), {.weights = weights_of(unit),
                             .x = input_of(i),
                             .branch = branch_of(unit),
                             .y = unit.y.data(),
                             .saved = unit.mask.data(),
                             .epilogue = &unit.stage.epilogue,
                             .dy = unit.gradient,
                             .dx = before.stored_through ? before.gradient : before.dy,
                             .statistics = unit.statistics.data(),
                             .dbranch = wanted ? unit_before(*branch).from_branches.data() : nullptr,
                             .adds_to_dbranch = unit.adds_to_dbranch,
                             .through = before.stored_through ? &before.way_back : nullptr,
                             .zero_bias = zero_bias_.data()});
  }
  if (before.stored_through) return;
  if (before.stage.branches)
    ops_.add(stream, numbers_of(before.stage.output, pass_.batch), before.dy, before.from_branches.data(),
             before.dy);
  through_epilogue(stream, before);
}

}  // namespace lockstep
