// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "models/device_execution.hpp"

#include "common/error.hpp"
#include "models/device_memory.hpp"
#include "models/layer.hpp"

namespace lockstep {
namespace {

std::size_t size_of(const ImageShape& shape, int batch) {
  return static_cast<std::size_t>(shape.features()) * static_cast<std::size_t>(batch);
}

EpilogueBackward make_epilogue_backward(const Stage& stage, const std::uint8_t* mask) {
  return {.channels = stage.before_epilogue.channels,
          .height = stage.before_epilogue.height,
          .width = stage.before_epilogue.width,
          .pool = stage.epilogue.pool,
          .factor = stage.epilogue.factor(),
          .mask = mask};
}

bool has_epilogue(const Stage& stage) {
  return stage.epilogue.count > 0;
}

ExactTarget target_of(const DeviceGradient& gradient, std::size_t tensor, std::size_t offset) {
  std::int64_t* of_tensor =
      gradient.refusals == nullptr ? nullptr : gradient.refusals + tensor * kRefusalKinds;
  return {gradient.arena + offset, gradient.formats[tensor], {gradient.refused, of_tensor}};
}

}  // namespace

DeviceExecution::DeviceExecution(const Network& network, Device& device, DeviceOps& ops, int max_batch,
                                 Purpose purpose)
    : ops_(ops),
      max_batch_(max_batch),
      input_(device, size_of(network.input_shape(), max_batch)),
      labels_(device, static_cast<std::size_t>(max_batch)),
      side_done_(device.make_event()) {
  check_device_limits(network, max_batch);
  std::vector<Stage> stages = fuse_layers(network);
  const auto plan = plan_stage_memory(stages, purpose == Purpose::kTraining);
  const auto batch = static_cast<std::size_t>(max_batch);
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::size_t first_tensor = tensors;
    if (stages[i].trained()) tensors += stages[i].head->parameters().size();
    units_.push_back({.stage = std::move(stages[i]),
                      .y = DeviceBuffer<float>(device, plan[i].y * batch),
                      .mask = DeviceBuffer<std::uint8_t>(device, plan[i].mask * batch),
                      .gradient_memory = DeviceBuffer<float>(device, plan[i].gradient * batch),
                      .detour = DeviceBuffer<float>(device, plan[i].detour * batch),
                      .from_branches = DeviceBuffer<float>(device, plan[i].from_branches * batch),
                      .ready = device.make_event(),
                      .way_back = {},
                      .first_tensor = first_tensor});
  }
  while (!units_[first_trained_].stage.trained()) ++first_trained_;
  if (purpose == Purpose::kTraining) plan_gradients();
}

void DeviceExecution::plan_gradients() {
  std::vector<bool> written(units_.size() + 1);
  for (std::size_t i = units_.size(); i-- > first_trained_;) {
    const auto branch = units_[i].stage.branch;
    if (!branch) continue;
    units_[i].adds_to_dbranch = written[*branch];
    written[*branch] = true;
  }
  for (std::size_t i = units_.size(); i-- > first_trained_;) {
    Unit& unit = units_[i];
    const Unit* next = i + 1 < units_.size() ? &units_[i + 1] : nullptr;
    const auto shape = next == nullptr ? std::nullopt : shape_through_epilogue(unit.stage, next->stage);
    unit.gradient = unit.gradient_memory.data();
    if (next != nullptr && next->stage.passes_gradient()) {
      unit.dy = next->gradient;  // the same numbers
    } else {
      unit.dy = unit.detour.size() > 0     ? unit.detour.data()
                : has_epilogue(unit.stage) ? nullptr
                                           : unit.gradient;
    }
    if (!has_epilogue(unit.stage)) {
      unit.gradient = unit.dy;
      continue;
    }
    unit.way_back = make_epilogue_backward(unit.stage, unit.mask.data());
    unit.stored_through = shape.has_value();
    if (!unit.stored_through) continue;
    unit.way_back.channels = shape->channels;
    unit.way_back.height = shape->height;
    unit.way_back.width = shape->width;
  }
}

const float* DeviceExecution::input_of(std::size_t i) const {
  return i == 0 ? input_.data() : units_[i - 1].y.data();
}

const float* DeviceExecution::branch_of(const Unit& unit) const {
  return unit.stage.branch ? input_of(*unit.stage.branch) : nullptr;
}

float* DeviceExecution::forward_training(Stream& stream, const float* weights, const DevicePass& pass) {
  return run_forward(stream, weights, pass, true);
}

float* DeviceExecution::forward_evaluation(Stream& stream, const float* weights, int batch) {
  return run_forward(stream, weights, {.batch = batch}, false);
}

float* DeviceExecution::run_forward(Stream& stream, const float* weights, const DevicePass& pass,
                                    bool training) {
  LOCKSTEP_CHECK(pass.batch > 0 && pass.batch <= max_batch_);
  for (std::size_t i = 0; i < units_.size(); ++i) {
    forward_stage(stream, units_[i], weights, pass, input_of(i), training);
  }
  return units_.back().y.data();
}

void DeviceExecution::forward_stage(Stream& stream, Unit& unit, const float* weights, const DevicePass& pass,
                                    const float* x, bool training) {
  const Stage& stage = unit.stage;
  Epilogue epilogue = training ? stage.epilogue : without_dropout(stage.epilogue);
  epilogue.seed = pass.seed;
  epilogue.first_sample = pass.first_sample;
  std::uint8_t* mask = training ? unit.mask.data() : nullptr;
  if (stage.head == nullptr) {
    ops_.epilogue_forward(stream, stage.input, pass.batch, x, epilogue, pass.state, unit.y.data(), mask);
    return;
  }
  stage.head->device_forward({ops_, stream, pass.batch}, {.weights = weights + stage.parameter_offset(),
                                                          .x = x,
                                                          .branch = branch_of(unit),
                                                          .y = unit.y.data(),
                                                          .saved = unit.mask.data(),
                                                          .epilogue = &epilogue,
                                                          .state = pass.state,
                                                          .mask = mask});
}

void DeviceExecution::backward(Stream& main, Stream& side, const float* weights, const DevicePass& pass,
                               float* dlogits, const DeviceGradient& gradient,
                               const DeviceGradientReady& on_ready) {
  start_from_logits(main, pass.batch, dlogits);
  bool forked = false;
  for (std::size_t i = units_.size(); i-- > first_trained_;) {
    const bool last = i == first_trained_;
    if (units_[i].stage.trained()) {
      Stream& stream = last ? main : side;
      if (!last) {
        main.record(*units_[i].ready);
        side.wait(*units_[i].ready);
        forked = true;
      }
      backward_weights(stream, i, pass.batch, gradient);
      on_ready(stream, units_[i].stage.parameter_offset(), units_[i].stage.parameter_size());
    }
    if (!last) backward_data(main, i, weights, pass.batch);
  }
  if (!forked) return;
  side.record(*side_done_);
  main.wait(*side_done_);
}

void DeviceExecution::start_from_logits(Stream& stream, int batch, float* dlogits) {
  units_.back().dy = dlogits;
  through_epilogue(stream, units_.back(), batch);
}

/// A unit without an epilogue may share its gradient with those in front of it that have the same numbers.
void DeviceExecution::through_epilogue(Stream& stream, Unit& unit, int batch) {
  if (has_epilogue(unit.stage)) {
    ops_.epilogue_backward(stream, unit.way_back, batch, unit.dy, unit.gradient);
  } else {
    unit.gradient = unit.dy;
  }
}

void DeviceExecution::backward_weights(Stream& stream, std::size_t i, int batch,
                                       const DeviceGradient& gradient) {
  const Unit& unit = units_[i];
  const Layer& layer = *unit.stage.head;
  std::vector<ExactTarget> targets;
  for (const Parameter& parameter : layer.parameters())
    targets.push_back(target_of(gradient, unit.first_tensor + targets.size(), parameter.offset));
  layer.device_backward_weights({ops_, stream, batch}, {.x = input_of(i),
                                                        .saved = unit.mask.data(),
                                                        .dy = unit.gradient,
                                                        .grain = gradient.grain,
                                                        .gradients = targets});
}

void DeviceExecution::backward_data(Stream& stream, std::size_t i, const float* weights, int batch) {
  Unit& unit = units_[i];
  Unit& before = units_[i - 1];
  if (unit.stage.passes_gradient()) before.dy = unit.gradient;
  if (unit.stage.head != nullptr) {
    const auto branch = unit.stage.branch;
    const bool wanted = branch && *branch > first_trained_;  // it comes from a trained unit, or one behind
    unit.stage.head->device_backward_data(
        {ops_, stream, batch}, {.weights = weights + unit.stage.parameter_offset(),
                                .x = input_of(i),
                                .y = unit.y.data(),
                                .saved = unit.mask.data(),
                                .dy = unit.gradient,
                                .dx = before.stored_through ? before.gradient : before.dy,
                                .dbranch = wanted ? units_[*branch - 1].from_branches.data() : nullptr,
                                .adds_to_dbranch = unit.adds_to_dbranch,
                                .through = before.stored_through ? &before.way_back : nullptr});
  }
  if (before.stored_through) return;
  join_branches(stream, before, batch);
  through_epilogue(stream, before, batch);
}

void DeviceExecution::join_branches(Stream& stream, Unit& unit, int batch) {
  if (!unit.stage.branches) return;
  ops_.add(stream, size_of(unit.stage.output, batch), unit.dy, unit.from_branches.data(), unit.dy);
}

}  // namespace lockstep
