// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One training step: the heart of the program. Everything around it (epochs, logs, checkpoints) is
/// training_run.
#pragma once

#include "comm/communicator.hpp"
#include "comm/gradient_reducer.hpp"
#include "data/batch.hpp"
#include "data/sampler.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/job_setup.hpp"
#include "trainer/lane.hpp"
#include "trainer/optimizer.hpp"
#include "trainer/worker_pool.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// Where a step stands in the run. Everything random in it follows from this and the seed.
struct StepPosition {
  std::int64_t epoch = 0;          ///< from 0
  std::int64_t step_in_epoch = 0;  ///< from 0
  std::int64_t global_step = 0;    ///< optimiser steps taken before this one
};

/// Seconds spent since the engine was made or reset_times() was called.
struct StepTimes {
  double total = 0;
  double input = 0;    ///< gather and normalise, of the busiest thread
  double exposed = 0;  ///< waiting for communication after backward had ended
  double optimizer = 0;
};

/// How the job's training data is sharded: which samples this rank computes.
DistributedSampler::Options sampler_options(const Job& job, const Dataset& data, const Communicator& comm);

/// Trains one rank's share of each global batch. Holds the weights. Collective: all ranks step together.
class StepEngine {
 public:
  /// Borrows all references.
  StepEngine(const Job& job, const JobSetup& setup, Communicator& comm);

  /// Computes this rank's grains, sums gradients over all ranks while backward runs, moves the weights.
  /// When the totals say not_finite, the weights were left as they were.
  StepTotals step(const StepPosition& position, bool stop_requested);

  const DistributedSampler& sampler() const { return sampler_; }
  std::span<float> weights() { return weights_.span(); }
  std::span<float> momentum() { return optimizer_.momentum(); }
  WorkerPool& pool() { return pool_; }
  std::vector<Lane>& lanes() { return lanes_; }
  StepTimes times() const;
  void reset_times();

 private:
  void compute(const StepPosition& position, const std::vector<Grain>& grains);
  void compute_grain(Lane& lane, const StepPosition& position, const Grain& grain);
  /// The samples at the same place in the next step's batch.
  void prefetch_next(const StepPosition& position, const Grain& grain);

  const Network& network_;
  std::uint64_t seed_;
  DistributedSampler sampler_;
  BatchLoader loader_;
  WorkerPool pool_;
  std::vector<Lane> lanes_;
  AlignedBuffer<float> weights_, gradient_;  ///< arena order
  Optimizer optimizer_;
  GradientReducer reducer_;
  StepTimes times_;
};

}  // namespace lockstep
