// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Inputs of a rank's steps, ready: data, network, the pieces in which gradients are summed. All ranks have the same.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/bucket_plan.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "data/augmentation.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "models/network.hpp"
#include "trainer/training/fingerprints.hpp"
#include "trainer/training/options.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct TrainingSetup {
  TrainingOptions options;
  std::shared_ptr<const TrainTestData> data;
  Network network;
  BucketPlan plan;
  std::optional<AugmentPlan> augment = {};  ///< for data.train; nothing: images stay as they are
  SampleMixer mixer = {};                   ///< for data.train
  std::string processor = {};               ///< this rank's, for messages: "cpu (AVX-512)"
  std::uint64_t test_sets = 0;              ///< how many have taken the place of data->test since

  const AugmentPlan* augment_plan() const { return augment ? &*augment : nullptr; }
  /// Mixes of a rank's neighbouring grains of a step. The sampler's epoch is set.
  MixedShare mixed_share(const DistributedSampler& sampler, std::int64_t epoch, std::int64_t step_in_epoch,
                         std::span<const Grain> grains) const;
};

/// How training data is sharded: which samples a rank computes, of so many that have a share. Borrows the labels of
/// classes that are balanced.
DistributedSampler::Options sampler_options(const TrainingOptions& options, const Dataset& data, int rank,
                                            int ranks);
inline DistributedSampler::Options sampler_options(const TrainingSetup& setup, const Communicator& comm) {
  return sampler_options(setup.options, setup.data->train, comm.rank(), comm.size());
}

// In which pieces gradients are summed (bucket_choice.cpp).

/// Buckets of at least so many bytes.
BucketPlan plan_buckets_of_size(const Network& network, const StepOptions& step, std::size_t bucket_bytes);
/// For CPUs: the plan that hides most, by rank 0's arithmetic speed and the group's all-reduce latency. They are measured
/// (some ten milliseconds) and shared, so that all ranks plan alike. One bucket for a rank alone. Collective.
BucketPlan plan_buckets_by_latency(const Network& network, const StepOptions& step, Communicator& comm);

/// The units of gradients as they are before the first step.
GradientUnits make_gradient_units(const ParameterLayout& layout, std::int64_t global_grains);

/// Inputs of an arena on a host or a device, for a whole network or a part of it. The references are borrowed while
/// the arena is made.
struct ArenaPart {
  const TrainingOptions& options;
  const ParameterLayout& network;  ///< the whole network's
  const ParameterLayout& layout;   ///< the part's
  std::vector<HeldTensor> held;    ///< the part's trained tensors in its order, then those that are only kept
  BucketPlan plan;                 ///< the part's
  std::int64_t steps_per_epoch = 0, global_grains = 0;
  bool is_stage = false;  ///< a pipeline's: the host looks at each step
};

/// For the arena of a rank that has the whole network. @param global_grains  of a full batch
ArenaPart whole_network(const TrainingSetup& setup, std::int64_t steps_per_epoch, std::int64_t global_grains);

}  // namespace lockstep
