// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Chooses what backward finds kept, and what is made again.
#include "models/repeated_layers.hpp"

#include "models/layer_ops.hpp"

#include <algorithm>
#include <variant>

namespace lockstep {

namespace {

bool others_go_on(const TensorUses& uses, std::size_t begin) {
  for (std::size_t i = begin; i < uses.layer_count(); ++i) {
    const auto from = uses.branch_of(i);
    if (from && *from < begin && uses.output_of(*from) != uses.input_of(begin)) return true;
  }
  return false;
}

std::vector<std::size_t> possible_begins(const TensorUses& uses) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 1; i < uses.layer_count(); ++i) {
    const bool in_run = std::ranges::any_of(
        uses.runs(), [i](const ChannelRun& run) { return run.first < i && i <= run.last; });
    if (!in_run && !uses.in_place(i) && !others_go_on(uses, i)) begins.push_back(i);
  }
  return begins;
}

/// For each tensor, whether backward reads it.
std::vector<bool> tensors_that_backward_reads(const TensorUses& uses) {
  std::vector<bool> needed(uses.tensors().size());
  for (std::size_t i = 0; i < uses.layer_count(); ++i)
    uses.for_each_use(i, [&](std::size_t t, bool in_backward) {
      if (in_backward) needed[t] = true;
    });
  return needed;
}

RepeatedLayers no_layers(const TensorUses& uses) {
  return {.before = std::vector<std::vector<std::size_t>>(uses.layer_count()),
          .again = std::vector<bool>(uses.layer_count()),
          .remade = std::vector<bool>(uses.tensors().size())};
}

/// Tensors of all segments but the last one that no other segment reads.
/// @param segment  layer → its segment
std::vector<bool> tensors_within_segments(const TensorUses& uses, const std::vector<std::size_t>& segment) {
  std::vector<bool> within(uses.tensors().size(), true);
  within.front() = within.back() = false;
  for (std::size_t i = 0; i < uses.layer_count(); ++i) {
    if (segment[i] == segment.back()) within[uses.output_of(i)] = false;
    uses.for_each_use(i, [&](std::size_t t, bool) {
      if (segment[uses.tensors()[t].producer] != segment[i]) within[t] = false;
    });
  }
  for (const ChannelRun& run : uses.runs()) {
    bool all = true;
    for (std::size_t i = run.first; i <= run.last; ++i) all = all && within[uses.output_of(i)];
    for (std::size_t i = run.first; i <= run.last; ++i) within[uses.output_of(i)] = all;
  }
  return within;
}

/// Layers without which backward lacks something, of those that write a tensor that is made again.
std::vector<bool> layers_that_remake(const TensorUses& uses, const std::vector<bool>& remade) {
  std::vector<bool> needed = tensors_that_backward_reads(uses), again(uses.layer_count());
  for (std::size_t last = uses.layer_count(); last > 0;) {
    const std::size_t first = uses.first_of_run(last - 1);
    bool wanted = false;
    for (std::size_t i = first; i < last; ++i) {
      const std::size_t output = uses.output_of(i);
      wanted = wanted || (remade[output] && (needed[output] || uses.saved_bytes(i) > 0));
    }
    for (std::size_t i = first; wanted && i < last; ++i) {
      again[i] = true;
      uses.for_each_use(i, [&](std::size_t t, bool) { needed[t] = true; });
    }
    last = first;
  }
  return again;
}

/// Tensors that backward reads and that only a norm with its steps, or a route, writes.
std::vector<bool> quick_tensors(const TensorUses& uses) {
  std::vector<bool> quick = tensors_that_backward_reads(uses);
  quick.front() = quick.back() = false;
  for (std::size_t i = 0; i < uses.layer_count(); ++i) {
    const std::size_t first = uses.tensors()[uses.output_of(i)].producer;
    const Layer& layer = uses.layer(first);
    const bool is_quick = layer.over_batch() != nullptr || std::holds_alternative<RouteOp>(layer.op());
    if (!is_quick || i > uses.last_of_run(first)) quick[uses.output_of(i)] = false;
  }
  return quick;
}

/// Appends layer i and its steps, after those whose outputs they read.
void repeat_quick_layer(const TensorUses& uses, std::size_t i, RepeatedLayers& repeated,
                        std::vector<std::size_t>& layers) {
  if (repeated.again[i]) return;
  const std::size_t last = uses.last_of_run(i);
  for (std::size_t j = i; j <= last; ++j) {
    repeated.again[j] = true;
    uses.for_each_use(j, [&](std::size_t t, bool) {
      if (repeated.remade[t]) repeat_quick_layer(uses, uses.tensors()[t].producer, repeated, layers);
    });
  }
  for (std::size_t j = i; j <= last; ++j) layers.push_back(j);
}

}  // namespace

RepeatedLayers repeat_segments(const TensorUses& uses, const std::vector<std::size_t>& begins) {
  std::vector<std::size_t> segment;
  for (std::size_t i = 0; i < uses.layer_count(); ++i)
    segment.push_back(static_cast<std::size_t>(std::ranges::upper_bound(begins, i) - begins.begin()));
  RepeatedLayers repeated = no_layers(uses);
  repeated.remade = tensors_within_segments(uses, segment);
  repeated.again = layers_that_remake(uses, repeated.remade);
  for (const std::size_t begin : begins) {
    for (std::size_t i = 0; i < begin; ++i)
      if (segment[i] == segment[begin - 1] && repeated.again[i]) repeated.before[begin - 1].push_back(i);
  }
  return repeated;
}

RepeatedLayers repeat_quick_layers(const TensorUses& uses) {
  RepeatedLayers repeated = no_layers(uses);
  repeated.remade = quick_tensors(uses);
  for (std::size_t i = uses.layer_count(); i-- > 0;) {
    uses.for_each_use(i, [&](std::size_t t, bool in_backward) {
      if (in_backward && repeated.remade[t])
        repeat_quick_layer(uses, uses.tensors()[t].producer, repeated, repeated.before[i]);
    });
  }
  return repeated;
}

std::vector<std::size_t> segment_begins(const TensorUses& uses, std::size_t segments) {
  std::vector<std::size_t> made{0};  // before each layer
  for (std::size_t i = 0; i < uses.layer_count(); ++i)
    made.push_back(made.back() + uses.saved_bytes(i) +
                   (uses.in_place(i) ? 0 : uses.tensors()[uses.output_of(i)].bytes));
  std::vector<std::size_t> begins;
  const std::vector<std::size_t> possible = possible_begins(uses);
  for (std::size_t n = 1; n < segments && !possible.empty(); ++n) {
    const std::size_t wanted = made.back() / segments * n;
    const auto distance = [&](std::size_t i) {
      return made[i] > wanted ? made[i] - wanted : wanted - made[i];
    };
    const std::size_t nearest = *std::ranges::min_element(possible, {}, distance);
    if (begins.empty() || nearest > begins.back()) begins.push_back(nearest);
  }
  return begins;
}

}  // namespace lockstep
