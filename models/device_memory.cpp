// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The tensors of each stage, as DeviceExecution will ask for them, and what a grid cannot hold.
#include "models/device_memory.hpp"

#include "common/advice.hpp"
#include "common/checked_size.hpp"
#include "common/error.hpp"
#include "models/layer.hpp"
#include "models/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

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

[[noreturn]] void fail(const Layer& layer, const std::string& what) {
  throw ShapeError(
      fmt::format("layer {} ({}): {}; use {}cpu", layer.name(), layer.describe(), what, spelling().device));
}

void check_tensor(const Layer& layer, const ImageShape& shape, std::int64_t samples) {
  if (checked_product(shape.features(), samples) <= kMaxDeviceElements) return;
  fail(layer,
       fmt::format("{} numbers for each of {} samples of a rank are more than a GPU kernel can count ({}); "
                   "lower {} or use more ranks",
                   shape.features(), samples, kMaxDeviceElements, spelling().global_batch));
}

}  // namespace

std::vector<StageMemory> plan_stage_memory(const std::vector<Stage>& stages, bool training,
                                           bool input_gradient) {
  std::vector<StageMemory> plan;
  bool trained = input_gradient;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    trained = trained || stage.trained();
    StageMemory memory;
    memory.y = elements(stage.output);
    if (stage.head != nullptr) memory.mask = stage.head->saved_bytes(1);
    if (stage.epilogue.count > 0) memory.mask = memory.y;
    if (training && trained) plan_gradients(stage, i + 1 < stages.size() ? &stages[i + 1] : nullptr, memory);
    plan.push_back(memory);
  }
  return plan;
}

PartEnds plan_part_ends(const Network& network, const NetworkPart& part, const std::vector<Stage>& stages,
                        bool training) {
  const std::size_t last = std::min(part.last, network.layers().size()) - 1;
  PartEnds ends{.input = elements(network.layers()[part.first]->input())};
  if (training && part.takes_output_gradient)
    ends.output_gradient = elements(network.layers()[last]->output());
  if (!training || !part.gives_input_gradient || stages.empty()) return ends;
  if (!stages.front().passes_gradient()) ends.input_gradient = ends.input;
  for (const Stage& stage : stages) {
    if (stage.branch == std::size_t{0}) ends.from_branches = ends.input;
  }
  return ends;
}

std::size_t longest_missing_bias(const Network& network) {
  std::size_t longest = 0;
  for (const auto& layer : network.layers()) longest = std::max(longest, layer->missing_bias());
  return longest;
}

std::size_t unread_sums_of(const Network& network) {
  const std::size_t longest = longest_missing_bias(network);
  return longest == 0 ? 0 : longest + 1;
}

std::uint64_t device_execution_bytes(const Network& network, std::int64_t samples, bool training,
                                     const NetworkPart& part) {
  const std::vector<Stage> stages = fuse_layers(network, part);
  const PartEnds ends = plan_part_ends(network, part, stages, training);
  constexpr std::uint64_t kLabel = 1;
  std::uint64_t numbers =
      checked_sum(ends.input, ends.input_gradient, ends.from_branches, ends.output_gradient, kLabel);
  std::uint64_t bytes = 0;
  for (const StageMemory& memory : plan_stage_memory(stages, training, part.gives_input_gradient)) {
    numbers = checked_sum(numbers, memory.y, memory.gradient, memory.from_branches, memory.detour);
    bytes = checked_sum(bytes, memory.mask);
  }
  const std::uint64_t stand_ins = longest_missing_bias(network) * sizeof(float) +
                                  (training ? unread_sums_of(network) * sizeof(std::int64_t) : 0);
  return checked_sum(checked_product(checked_sum(checked_product(numbers, sizeof(float)), bytes), samples),
                     stand_ins);
}

void check_device_limits(const Network& network, std::int64_t samples) {
  if (samples > kMaxDeviceSamples) {
    throw ShapeError(
        fmt::format("{} samples of one rank in a step are more than a GPU's grid can have ({}); lower "
                    "{} or use more ranks",
                    samples, kMaxDeviceSamples, spelling().global_batch));
  }
  for (const auto& layer : network.layers()) {
    check_tensor(*layer, layer->input(), samples);
    check_tensor(*layer, layer->output(), samples);
    if (const auto what = layer->beyond_device()) {
      fail(*layer, fmt::format("{} is beyond what a GPU's grid can have ({})", *what, kMaxDeviceSide));
    }
  }
}

}  // namespace lockstep
