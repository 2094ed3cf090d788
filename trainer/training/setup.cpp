// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Shares of a batch, and parts of a network.
#include "trainer/training/setup.hpp"

#include <algorithm>

namespace lockstep {

DistributedSampler::Options sampler_options(const TrainingOptions& options, const Dataset& data, int rank,
                                            int ranks) {
  return {.samples = data.size(),
          .global_batch = std::min(options.batch.global_batch, data.size()),
          .grain = options.step.grain,
          .seed = options.seed,
          .shuffle = options.batch.shuffle,
          .window = options.batch.shuffle_window,
          .rank = rank,
          .world_size = ranks,
          .split = options.step.split,
          .per_rank_batch = options.batch.per_rank_batch,
          .balanced_labels =
              options.batch.balance_classes ? std::span(data.labels) : std::span<const std::int32_t>()};
}

MixedShare TrainingSetup::mixed_share(const DistributedSampler& sampler, std::int64_t epoch,
                                      std::int64_t step_in_epoch, std::span<const Grain> grains) const {
  if (!mixer.mixes() || grains.empty()) return {};
  const std::int64_t first = sampler.place(step_in_epoch, grains.front());
  const std::int64_t end = sampler.place(step_in_epoch, grains.back()) + grains.back().samples;
  return {mixer, epoch, sampler.order(), first, end - first, data->train.labels};
}

GradientUnits make_gradient_units(const ParameterLayout& layout, std::int64_t global_grains) {
  std::vector<std::size_t> sizes;
  for (const Parameter& parameter : layout.parameters) sizes.push_back(parameter.size);
  return {sizes, global_grains};
}

ArenaPart whole_network(const TrainingSetup& setup, std::int64_t steps_per_epoch,
                        std::int64_t global_grains) {
  const ParameterLayout& layout = setup.network.parameters();
  return {.options = setup.options,
          .network = layout,
          .layout = layout,
          .held = held_tensors(layout),
          .plan = setup.plan,
          .steps_per_epoch = steps_per_epoch,
          .global_grains = global_grains};
}

}  // namespace lockstep
