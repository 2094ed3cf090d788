// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Set-up before the first pass: units with their memory, places of the gradients, and what both passes use.
#include "models/device/device_execution.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "models/device_layer.hpp"
#include "models/execution.hpp"
#include "models/layer.hpp"
#include "models/layer_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

// The tensors of each stage, as DeviceExecution and device_execution_bytes ask for them.

namespace {

/// Memory for one stage, or for the input of all, for each sample.
struct StageMemory {
  std::uint64_t y = 0;              ///< numbers: the output
  std::uint64_t mask = 0;           ///< bytes: of the epilogue, or what a layer without one saves
  std::uint64_t gradient = 0;       ///< numbers: the gradient before the epilogue; 0: another's, or none
  std::uint64_t from_branches = 0;  ///< numbers: the gradient that branches of its output bring
  /// Numbers: the gradient of y, where the stage after it cannot store through the epilogue.
  std::uint64_t detour = 0;
};

struct PartMemory {
  StageMemory input = {};
  std::vector<StageMemory> stages = {};
  std::uint64_t output_gradient = 0;  ///< numbers: as others bring it
};

std::uint64_t elements(const ImageShape& shape) {
  return static_cast<std::uint64_t>(shape.features());
}

/// @param next  null: the last stage
void plan_gradients(const Stage& stage, const Stage* next, StageMemory& memory) {
  const bool has_epilogue = stage.epilogue.count > 0;
  // Otherwise the gradient of the logits is the caller's, and what the next stage passes is that one's.
  if (has_epilogue || (next != nullptr && !next->passes_gradient()))
    memory.gradient = elements(stage.before_epilogue);
  if (stage.branches) memory.from_branches = elements(stage.output);
  if (!has_epilogue || next == nullptr || next->passes_gradient()) return;
  if (!shape_through_epilogue(stage, *next)) memory.detour = elements(stage.output);
}

/// Evaluation needs no gradients. @param stages  stages of the part
PartMemory plan_part_memory(const Network& network, const NetworkPart& part, const std::vector<Stage>& stages,
                            bool training) {
  const Layers layers = layers_of(network, part);
  PartMemory plan{.input = {.y = elements(layers.front()->input())}};
  if (training && part.takes_output_gradient) plan.output_gradient = elements(layers.back()->output());
  if (training && part.gives_input_gradient && !stages.empty()) {
    if (!stages.front().passes_gradient()) plan.input.gradient = plan.input.y;
    if (std::ranges::any_of(stages, [](const Stage& stage) { return stage.branch == std::size_t{0}; }))
      plan.input.from_branches = plan.input.y;
  }
  bool trained = part.gives_input_gradient;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    trained = trained || stage.trained();
    StageMemory memory{.y = elements(stage.output)};
    if (stage.head != nullptr) memory.mask = stage.head->saved_bytes(1);
    if (stage.epilogue.count > 0) memory.mask = memory.y;
    if (training && trained) plan_gradients(stage, i + 1 < stages.size() ? &stages[i + 1] : nullptr, memory);
    plan.stages.push_back(memory);
  }
  return plan;
}

/// Numbers of the longest bias that a layer's kernels take and it does not have.
std::size_t longest_missing_bias(const Network& network) {
  std::size_t longest = 0;
  for (const auto& layer : network.layers()) longest = std::max(longest, layer->missing_bias());
  return longest;
}

/// Sums for the gradient of such a bias, and one word more; 0: all layers have their biases.
std::size_t unread_sums_of(const Network& network) {
  const std::size_t longest = longest_missing_bias(network);
  return longest == 0 ? 0 : longest + 1;
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
  if (zero_bias_.size() > 0) {
    const auto stream = device.make_stream();
    stream->fill_zero(zero_bias_.data(), zero_bias_.bytes());
    stream->fill_zero(unread_sums_.data(), unread_sums_.bytes());
    stream->synchronize();
  }
  make_units(device, network, part, purpose == Purpose::kTraining);
  const auto is_trained = [](const Unit& unit) { return unit.stage.trained(); };
  if (!gives_input_gradient_)
    first_trained_ = static_cast<std::size_t>(std::ranges::find_if(units_, is_trained) - units_.begin());
  if (purpose == Purpose::kTraining) plan_gradients();
}

void DeviceExecution::make_units(Device& device, const Network& network, const NetworkPart& part,
                                 bool training) {
  std::vector<Stage> stages = fuse_layers(network, part);
  const PartMemory plan = plan_part_memory(network, part, stages, training);
  const auto batch = static_cast<std::size_t>(max_batch_);
  const auto allocate = [&](Unit& unit, const StageMemory& memory) {
    unit.y = DeviceBuffer<float>(device, memory.y * batch);
    unit.mask = DeviceBuffer<std::uint8_t>(device, memory.mask * batch);
    unit.gradient_memory = DeviceBuffer<float>(device, memory.gradient * batch);
    unit.detour = DeviceBuffer<float>(device, memory.detour * batch);
    unit.from_branches = DeviceBuffer<float>(device, memory.from_branches * batch);
  };
  input_.stage.output = network.layers()[part.first]->input();
  input_.stage.branches = plan.input.from_branches > 0;
  allocate(input_, plan.input);
  output_gradient_ = DeviceBuffer<float>(device, plan.output_gradient * batch);
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Unit& unit = units_.emplace_back();
    unit.stage = std::move(stages[i]);
    allocate(unit, plan.stages[i]);
    unit.ready = device.make_event();
    unit.first_tensor = tensors;
    if (unit.stage.trained()) tensors += unit.stage.head->parameters().size();
    if (const BatchLayer* over_batch = unit.over_batch())
      unit.statistics = DeviceBuffer<std::byte>(device, over_batch->statistics_bytes());
  }
}

void DeviceExecution::make_room_for_next_input(Device& device) {
  next_input_ = DeviceBuffer<float>(device, input_.y.size());
  next_labels_ = DeviceBuffer<std::int32_t>(device, labels_.size());
}

void DeviceExecution::take_next_input() {
  std::swap(input_.y, next_input_);
  std::swap(labels_, next_labels_);
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
  if (next != nullptr && next->stage.passes_gradient()) {
    unit.dy = next->gradient;  // equal numbers
  } else if (unit.detour.size() > 0) {
    unit.dy = unit.detour.data();
  } else {
    unit.dy = unit.has_epilogue() ? nullptr : unit.gradient_memory.data();
  }
  unit.gradient = unit.has_epilogue() ? unit.gradient_memory.data() : unit.dy;
  if (!unit.has_epilogue()) return;
  const auto through = next == nullptr ? std::nullopt : shape_through_epilogue(unit.stage, next->stage);
  const ImageShape& shape = through.value_or(unit.stage.before_epilogue);
  unit.stored_through = through.has_value();
  unit.way_back = {.channels = shape.channels,
                   .height = shape.height,
                   .width = shape.width,
                   .pool = unit.stage.epilogue.pool,
                   .factors = unit.stage.epilogue.factors(),
                   .mask = unit.mask.data()};
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

void DeviceExecution::queue_move_kept(Stream& stream) {
  for (Unit& unit : units_) {
    if (const BatchLayer* over_batch = unit.over_batch())
      over_batch->device_move_kept(layer_pass(stream), unit.statistics.data(), pass_.state, kept_of(unit));
  }
}

// Memory that a network takes of a device, and what a grid cannot hold.

std::uint64_t device_execution_bytes(const Network& network, std::int64_t samples, bool training,
                                     const NetworkPart& part) {
  PartMemory plan = plan_part_memory(network, part, fuse_layers(network, part), training);
  plan.stages.push_back(plan.input);
  constexpr std::uint64_t kLabel = 1;
  std::uint64_t numbers = checked_sum(plan.output_gradient, kLabel), bytes = 0;
  for (const StageMemory& memory : plan.stages) {
    numbers = checked_sum(numbers, memory.y, memory.gradient, memory.from_branches, memory.detour);
    bytes = checked_sum(bytes, memory.mask);
  }
  const std::uint64_t stand_ins = longest_missing_bias(network) * sizeof(float) +
                                  (training ? unread_sums_of(network) * sizeof(std::int64_t) : 0);
  return checked_sum(checked_product(checked_sum(checked_product(numbers, sizeof(float)), bytes), samples),
                     stand_ins);
}

std::uint64_t next_input_bytes(const Network& network, std::int64_t samples) {
  constexpr std::uint64_t kLabel = 1;
  return checked_product(checked_sum(elements(network.input_shape()), kLabel), samples, sizeof(float));
}

namespace {

[[noreturn]] void fail(const Layer& layer, const std::string& what) {
  throw ShapeError(
      fmt::format("layer {} ({}): {}; use {}cpu", layer.name(), layer.describe(), what, spelling().device));
}

void check_tensor(const Layer& layer, const ImageShape& shape, std::int64_t samples, std::string_view fewer) {
  if (checked_product(shape.features(), samples) <= kMaxDeviceElements) return;
  fail(layer,
       fmt::format("{} numbers for each of {} samples of a rank are more than a GPU kernel can count ({}); "
                   "{} or use more ranks",
                   shape.features(), samples, kMaxDeviceElements, fewer));
}

}  // namespace

void check_device_limits(const Network& network, std::int64_t samples, std::string_view fewer) {
  const std::string lower = fmt::format("lower {}", spelling().global_batch);
  if (fewer.empty()) fewer = lower;
  if (samples > kMaxDeviceSamples)
    throw ShapeError(
        fmt::format("{} samples of one rank in a step are more than a GPU's grid can have ({}); "
                    "{} or use more ranks",
                    samples, kMaxDeviceSamples, fewer));
  for (const auto& layer : network.layers()) {
    check_tensor(*layer, layer->input(), samples, fewer);
    check_tensor(*layer, layer->output(), samples, fewer);
    if (const auto what = layer->beyond_device())
      fail(*layer, fmt::format("{} is beyond what a GPU's grid can have ({})", *what, kMaxDeviceSide));
  }
}

}  // namespace lockstep
