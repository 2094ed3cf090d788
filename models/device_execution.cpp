// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "models/device_execution.hpp"

#include "common/error.hpp"
#include "models/device_memory.hpp"

namespace lockstep {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::size_t size_of(const ImageShape& shape, int batch) {
  return static_cast<std::size_t>(shape.features()) * static_cast<std::size_t>(batch);
}

template <typename Shape>
Shape with_columns(Shape shape, int batch) {
  shape.batch = batch;
  return shape;
}

EpilogueBackward make_epilogue_backward(const Stage& stage, const std::uint8_t* mask) {
  return {.channels = stage.before_epilogue.channels,
          .height = stage.before_epilogue.height,
          .width = stage.before_epilogue.width,
          .pool = stage.epilogue.pool,
          .factor = stage.epilogue.factor(),
          .mask = mask};
}

bool is_epilogue_alone(const Stage& stage) {
  return std::holds_alternative<std::monostate>(stage.head);
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
    if (stages[i].trained()) tensors += 2;
    units_.push_back({.stage = std::move(stages[i]),
                      .y = DeviceBuffer<float>(device, plan[i].y * batch),
                      .mask = DeviceBuffer<std::uint8_t>(device, plan[i].mask * batch),
                      .gradient_memory = DeviceBuffer<float>(device, plan[i].gradient * batch),
                      .detour = DeviceBuffer<float>(device, plan[i].detour * batch),
                      .ready = device.make_event(),
                      .epilogue_backward = {},
                      .fused_epilogue_backward = {},
                      .first_tensor = first_tensor});
  }
  while (!units_[first_trained_].stage.trained()) ++first_trained_;
  if (purpose == Purpose::kTraining) plan_gradients();
}

void DeviceExecution::plan_gradients() {
  for (std::size_t i = units_.size(); i-- > first_trained_;) {
    Unit& unit = units_[i];
    const Unit* next = i + 1 < units_.size() ? &units_[i + 1] : nullptr;
    unit.gradient = unit.gradient_memory.data();
    if (!has_epilogue(unit.stage)) {
      // The same numbers; of the last one the caller's gradient of the logits.
      if (next != nullptr && is_epilogue_alone(next->stage)) unit.gradient = next->gradient;
      continue;
    }
    unit.epilogue_backward = unit.fused_epilogue_backward =
        make_epilogue_backward(unit.stage, unit.mask.data());
    const auto shape = next == nullptr ? std::nullopt : shape_through_epilogue(unit.stage, next->stage);
    if (!shape) continue;
    unit.fused_epilogue_backward.channels = shape->channels;
    unit.fused_epilogue_backward.height = shape->height;
    unit.fused_epilogue_backward.width = shape->width;
  }
}

const float* DeviceExecution::input_of(std::size_t i) const {
  return i == 0 ? input_.data() : units_[i - 1].y.data();
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
  const float* w = weights + stage.parameter_offset;
  const float* b = w + stage.weight_size;
  float* y = unit.y.data();
  std::uint8_t* mask = training ? unit.mask.data() : nullptr;
  std::visit(Overloaded{[&](std::monostate) {
                          ops_.epilogue_forward(stream, stage.input, pass.batch, x, epilogue, pass.state, y,
                                                mask);
                        },
                        [&](const Conv2dShape& shape) {
                          ops_.conv2d_forward(stream, with_columns(shape, pass.batch), x, w, b, epilogue,
                                              pass.state, y, mask);
                        },
                        [&](const LinearShape& shape) {
                          ops_.linear_forward(stream, with_columns(shape, pass.batch), x, w, b, epilogue,
                                              pass.state, y, mask);
                        },
                        [&](const MaxPoolOp& pool) {
                          ops_.max_pool_forward(stream, with_columns(pool.shape, pass.batch), x, y,
                                                unit.mask.data());
                        },
                        [&](const AvgPoolOp& pool) {
                          ops_.avg_pool_forward(stream, with_columns(pool.shape, pass.batch), x, y);
                        }},
             stage.head);
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
      on_ready(stream, units_[i].stage.parameter_offset, units_[i].stage.parameter_size());
    }
    if (!last) backward_data(main, i, weights, pass.batch);
  }
  if (!forked) return;
  side.record(*side_done_);
  main.wait(*side_done_);
}

void DeviceExecution::start_from_logits(Stream& stream, int batch, float* dlogits) {
  Unit& last = units_.back();
  if (has_epilogue(last.stage)) {
    ops_.epilogue_backward(stream, last.epilogue_backward, batch, dlogits, last.gradient);
  } else {
    last.gradient = dlogits;
  }
}

void DeviceExecution::backward_weights(Stream& stream, std::size_t i, int batch,
                                       const DeviceGradient& gradient) {
  const Unit& unit = units_[i];
  const std::size_t weight = unit.stage.parameter_offset, bias = weight + unit.stage.weight_size;
  const ExactGradient target{target_of(gradient, unit.first_tensor, weight),
                             target_of(gradient, unit.first_tensor + 1, bias)};
  if (const auto* conv = std::get_if<Conv2dShape>(&unit.stage.head)) {
    ops_.conv2d_backward_weights(stream, with_columns(*conv, batch), gradient.grain, input_of(i),
                                 unit.gradient, target);
  } else {
    ops_.linear_backward_weights(stream, with_columns(std::get<LinearShape>(unit.stage.head), batch),
                                 gradient.grain, input_of(i), unit.gradient, target);
  }
}

void DeviceExecution::backward_data(Stream& stream, std::size_t i, const float* weights, int batch) {
  const Unit& unit = units_[i];
  const Unit& before = units_[i - 1];
  const float* dy = unit.gradient;
  const bool expands = has_epilogue(before.stage), apart = before.detour.size() > 0;
  float* dx = apart ? before.detour.data() : before.gradient;
  const float* w = weights + unit.stage.parameter_offset;
  const EpilogueBackward* fused = expands && !apart ? &before.fused_epilogue_backward : nullptr;
  std::visit(Overloaded{[&](std::monostate) {
                          // Its own way back is behind us: dy is the gradient of what the stage before made.
                          if (expands)
                            ops_.epilogue_backward(stream, before.epilogue_backward, batch, dy, dx);
                        },
                        [&](const Conv2dShape& shape) {
                          ops_.conv2d_backward_data(stream, with_columns(shape, batch), dy, w, fused, dx);
                        },
                        [&](const LinearShape& shape) {
                          ops_.linear_backward_data(stream, with_columns(shape, batch), dy, w, fused, dx);
                        },
                        [&](const MaxPoolOp& pool) {
                          ops_.max_pool_backward(stream, with_columns(pool.shape, batch), dy,
                                                 unit.mask.data(), dx);
                        },
                        [&](const AvgPoolOp& pool) {
                          ops_.avg_pool_backward(stream, with_columns(pool.shape, batch), dy, dx);
                        }},
             unit.stage.head);
  if (apart) ops_.epilogue_backward(stream, before.epilogue_backward, batch, dx, before.gradient);
}

}  // namespace lockstep
