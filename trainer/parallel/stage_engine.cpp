// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sizes of a stage's messages, and its samples.
#include "trainer/parallel/stage_engine.hpp"

#include "models/layer.hpp"

namespace lockstep {

std::size_t StageEngine::input_features(int stage) const {
  return static_cast<std::size_t>(network().layers()[part(stage).first]->input().features());
}

std::size_t StageEngine::output_features(int stage) const {
  return static_cast<std::size_t>(network().layers()[part(stage).last - 1]->output().features());
}

const Dataset& StageEngine::data_of(const StageVisit& visit) const {
  return visit.training ? parts_.setup.data->train : parts_.setup.data->part(evaluated_part_);
}

void StageEngine::copy_labels(const StageVisit& visit, std::span<std::int32_t> labels) const {
  take_labels(data_of(visit).labels, visit.grain.indices, visit.grain.mixes, labels.data());
}

ArenaPart StageEngine::arena_part() const {
  return {.options = parts_.setup.options,
          .network = network().parameters(),
          .layout = held().layout,
          .held = held().tensors,
          .plan = held().buckets(),
          .steps_per_epoch = parts_.sampler.steps_per_epoch(),
          .global_grains = parts_.sampler.batch_grains(0),
          .is_stage = true};
}

}  // namespace lockstep
