// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "models/device_execution.hpp"

#include "common/error.hpp"
#include "models/device_memory.hpp"
#include "models/layer.hpp"
#include "models/part_execution.hpp"

#include <algorithm>
#include <limits>
#include <utility>

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
          .factors = stage.epilogue.factors(),
          .mask = mask};
}

bool has_epilogue(const Stage& stage) {
  return stage.epilogue.count > 0;
}

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

DeviceExecution::DeviceExecution(const Network& network, Device& device, DeviceOps& ops, int max_batch,
                                 Purpose purpose, const NetworkPart& part)
    : ops_(ops),
      max_batch_(max_batch),
      gives_input_gradient_(part.gives_input_gradient),
      first_parameter_(parameters_of(network, part).offset),
      labels_(device, static_cast<std::size_t>(max_batch)),
      side_done_(device.make_event()),
      cuts_(cuts_of(network)),
      backward_cuts_(backward_cuts_of(network)),
      parameters_(network.parameters().size),
      words_(device, purpose == Purpose::kTraining ? most_words(cuts_) : 0),
      zero_bias_(device, longest_missing_bias(network)),
      unread_sums_(device, purpose == Purpose::kTraining ? unread_sums_of(network) : 0) {
  check_device_limits(network, max_batch);
  fill_stand_ins(device);
  make_units(device, network, part, purpose == Purpose::kTraining);
  const auto is_trained = [](const Unit& unit) { return unit.stage.trained(); };
  if (!gives_input_gradient_)
    first_trained_ = static_cast<std::size_t>(std::ranges::find_if(units_, is_trained) - units_.begin());
  if (purpose == Purpose::kTraining) plan_gradients();
}

void DeviceExecution::make_units(Device& device, const Network& network, const NetworkPart& part,
                                 bool training) {
  std::vector<Stage> stages = fuse_layers(network, part);
  const auto plan = plan_stage_memory(stages, training, part.gives_input_gradient);
  const PartEnds ends = plan_part_ends(network, part, stages, training);
  const auto batch = static_cast<std::size_t>(max_batch_);
  input_.stage.output = network.layers()[part.first]->input();
  input_.stage.branches = ends.from_branches > 0;
  input_.y = DeviceBuffer<float>(device, ends.input * batch);
  input_.gradient_memory = DeviceBuffer<float>(device, ends.input_gradient * batch);
  input_.from_branches = DeviceBuffer<float>(device, ends.from_branches * batch);
  output_gradient_ = DeviceBuffer<float>(device, ends.output_gradient * batch);
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::size_t first_tensor = tensors;
    if (stages[i].trained()) tensors += stages[i].head->parameters().size();
    const BatchLayer* over_batch = stages[i].head == nullptr ? nullptr : stages[i].head->over_batch();
    const std::size_t statistics = over_batch == nullptr ? 0 : over_batch->statistics_bytes();
    units_.push_back({.stage = std::move(stages[i]),
                      .y = DeviceBuffer<float>(device, plan[i].y * batch),
                      .mask = DeviceBuffer<std::uint8_t>(device, plan[i].mask * batch),
                      .gradient_memory = DeviceBuffer<float>(device, plan[i].gradient * batch),
                      .detour = DeviceBuffer<float>(device, plan[i].detour * batch),
                      .from_branches = DeviceBuffer<float>(device, plan[i].from_branches * batch),
                      .ready = device.make_event(),
                      .way_back = {},
                      .first_tensor = first_tensor,
                      .statistics = DeviceBuffer<std::byte>(device, statistics)});
  }
}

void DeviceExecution::fill_stand_ins(Device& device) {
  if (zero_bias_.size() == 0) return;
  const auto stream = device.make_stream();
  stream->fill_zero(zero_bias_.data(), zero_bias_.bytes());
  stream->fill_zero(unread_sums_.data(), unread_sums_.bytes());
  stream->synchronize();
}

void DeviceExecution::plan_gradients() {
  std::vector<bool> written(units_.size() + 1);
  for (std::size_t i = units_.size(); i-- > first_trained_;) {
    const auto branch = units_[i].stage.branch;
    if (!branch) continue;
    units_[i].adds_to_dbranch = written[*branch];
    written[*branch] = true;
  }
  for (std::size_t i = units_.size(); i-- > first_trained_;)
    plan_gradient(units_[i], i + 1 < units_.size() ? &units_[i + 1] : nullptr);
  if (gives_input_gradient_) plan_gradient(input_, units_.empty() ? nullptr : &units_.front());
}

void DeviceExecution::plan_gradient(Unit& unit, const Unit* next) {
  const auto shape =
      next == nullptr || &unit == &input_ ? std::nullopt : shape_through_epilogue(unit.stage, next->stage);
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
    return;
  }
  unit.way_back = make_epilogue_backward(unit.stage, unit.mask.data());
  unit.stored_through = shape.has_value();
  if (!unit.stored_through) return;
  unit.way_back.channels = shape->channels;
  unit.way_back.height = shape->height;
  unit.way_back.width = shape->width;
}

const float* DeviceExecution::branch_of(const Unit& unit) const {
  return unit.stage.branch ? input_of(*unit.stage.branch) : nullptr;
}

const BatchLayer* DeviceExecution::Unit::over_batch() const {
  return stage.head == nullptr ? nullptr : stage.head->over_batch();
}

float* DeviceExecution::kept_of(const Unit& unit) const {
  return weights_ + parameters_ + unit.stage.head->kept_offset();
}

DeviceLayerPass DeviceExecution::layer_pass(Stream& stream) const {
  return {.ops = ops_,
          .stream = stream,
          .batch = pass_.batch,
          .grain = pass_.grain,
          .has_first_sample = pass_.first_sample == 0};
}

float* DeviceExecution::forward_training(Stream& stream, const float* weights, const DevicePass& pass) {
  LOCKSTEP_CHECK(cuts_.empty() && pass.batch > 0);
  begin_training(const_cast<float*>(weights), pass);  // which only cuts write to
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
  terms_added_ = forked_ = false;
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
  return {};
}

CutSums DeviceExecution::queue_sums(Stream& stream, std::size_t i, bool forward) {
  Unit& unit = units_[i];
  const BatchLayer& over_batch = *unit.over_batch();
  const CutSums sums{words_.data(), over_batch.words()};
  stream.fill_zero(sums.words, sums.count * sizeof(std::int64_t));
  if (pass_.batch == 0) return sums;
  const DeviceLayerTensors tensors{
      .x = input_of(i), .dy = forward ? nullptr : unit.gradient, .statistics = unit.statistics.data()};
  if (forward) {
    over_batch.device_forward_sums(layer_pass(stream), tensors, sums.words);
  } else {
    over_batch.device_backward_sums(layer_pass(stream), tensors, sums.words);
  }
  return sums;
}

void DeviceExecution::forward_stage(Stream& stream, std::size_t i) {
  Unit& unit = units_[i];
  const Stage& stage = unit.stage;
  const float* x = input_of(i);
  Epilogue epilogue = training_ ? stage.epilogue : without_dropout(stage.epilogue);
  epilogue.seed = pass_.seed;
  epilogue.first_sample = pass_.first_sample;
  std::uint8_t* mask = training_ ? unit.mask.data() : nullptr;
  if (stage.head == nullptr) {
    ops_.epilogue_forward(stream, stage.input, pass_.batch, x, epilogue, pass_.state, unit.y.data(), mask);
    return;
  }
  stage.head->device_forward(layer_pass(stream), {.weights = weights_of(unit),
                                                  .x = x,
                                                  .branch = branch_of(unit),
                                                  .y = unit.y.data(),
                                                  .saved = unit.mask.data(),
                                                  .epilogue = &epilogue,
                                                  .state = pass_.state,
                                                  .mask = mask,
                                                  .statistics = unit.statistics.data(),
                                                  .zero_bias = zero_bias_.data()});
}

void DeviceExecution::backward(Stream& main, Stream& side, const float* weights, const DevicePass& pass,
                               float* dlogits, const DeviceGradient& gradient,
                               const DeviceGradientReady& on_ready) {
  LOCKSTEP_CHECK(weights == weights_ && pass.batch == pass_.batch);
  begin_backward(main, dlogits);
  backward_to_cut(main, side, gradient, on_ready);
}

void DeviceExecution::begin_backward(Stream& main, float* dlogits) {
  next_ = units_.size();
  Unit& last = unit_before(next_);
  last.dy = dlogits;
  if (pass_.batch > 0) through_epilogue(main, last, pass_.batch);
}

CutSums DeviceExecution::backward_to_cut(Stream& main, Stream& side, const DeviceGradient& gradient,
                                         const DeviceGradientReady& on_ready) {
  for (; next_ > first_trained_; --next_) {
    const std::size_t i = next_ - 1;
    Unit& unit = units_[i];
    if (const BatchLayer* over_batch = unit.over_batch()) {
      terms_added_ = !terms_added_;
      if (terms_added_) {
        join_side(main, side);
        return queue_sums(main, i, false);
      }
      over_batch->finish_device_backward_sums(layer_pass(main), words_.data(), pass_.batch_samples,
                                              unit.statistics.data());
    }
    if (unit.stage.trained()) backward_unit_weights(main, side, i, gradient, on_ready);
    if ((i > first_trained_ || gives_input_gradient_) && pass_.batch > 0) backward_data(main, i);
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

/// A unit without an epilogue may share its gradient with those in front of it that have the same numbers.
void DeviceExecution::through_epilogue(Stream& stream, Unit& unit, int batch) {
  if (has_epilogue(unit.stage)) {
    ops_.epilogue_backward(stream, unit.way_back, batch, unit.dy, unit.gradient);
  } else {
    unit.gradient = unit.dy;
  }
}

void DeviceExecution::backward_weights(Stream& stream, std::size_t i, const DeviceGradient& gradient) {
  const Unit& unit = units_[i];
  const Layer& layer = *unit.stage.head;
  std::vector<ExactTarget> targets;
  for (const Parameter& parameter : layer.parameters())
    targets.push_back(
        target_of(gradient, unit.first_tensor + targets.size(), parameter.offset - first_parameter_));
  layer.device_backward_weights(layer_pass(stream), {.x = input_of(i),
                                                     .saved = unit.mask.data(),
                                                     .dy = unit.gradient,
                                                     .statistics = unit.statistics.data(),
                                                     .grain = gradient.grain,
                                                     .gradients = targets,
                                                     .unread_gradient = unread(unread_sums_)});
}

void DeviceExecution::backward_data(Stream& stream, std::size_t i) {
  Unit& unit = units_[i];
  Unit& before = unit_before(i);
  if (unit.stage.passes_gradient()) before.dy = unit.gradient;
  if (unit.stage.head != nullptr) {
    const auto branch = unit.stage.branch;
    const bool wanted =
        branch && (gives_input_gradient_ || *branch > first_trained_);  // behind a trained unit
    unit.stage.head->device_backward_data(
        layer_pass(stream), {.weights = weights_of(unit),
                             .x = input_of(i),
                             .y = unit.y.data(),
                             .saved = unit.mask.data(),
                             .dy = unit.gradient,
                             .dx = before.stored_through ? before.gradient : before.dy,
                             .statistics = unit.statistics.data(),
                             .dbranch = wanted ? unit_before(*branch).from_branches.data() : nullptr,
                             .adds_to_dbranch = unit.adds_to_dbranch,
                             .through = before.stored_through ? &before.way_back : nullptr});
  }
  if (before.stored_through) return;
  join_branches(stream, before, pass_.batch);
  through_epilogue(stream, before, pass_.batch);
}

void DeviceExecution::queue_move_kept(Stream& stream) {
  for (Unit& unit : units_) {
    if (const BatchLayer* over_batch = unit.over_batch())
      over_batch->device_move_kept(layer_pass(stream), unit.statistics.data(), pass_.state, kept_of(unit));
  }
}

void DeviceExecution::join_branches(Stream& stream, Unit& unit, int batch) {
  if (!unit.stage.branches) return;
  ops_.add(stream, size_of(unit.stage.output, batch), unit.dy, unit.from_branches.data(), unit.dy);
}

}  // namespace lockstep
