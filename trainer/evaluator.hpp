// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loss and accuracy over a whole data set, spread over all ranks, every sample counted exactly once.
#pragma once

#include "comm/communicator.hpp"
#include "data/batch.hpp"
#include "trainer/lane.hpp"
#include "trainer/worker_pool.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct Evaluation {
  std::int64_t samples = 0;
  std::int64_t correct = 0;
  double loss = 0;  ///< mean over samples, in nats

  double accuracy() const {
    return samples == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(samples);
  }
};

/// Evaluates `weights` on `data`. The set is cut into grains that do not depend on the number of ranks, sums
/// are exact integers, so the result is the same to the last bit on any number of ranks and threads.
/// Collective.
Evaluation evaluate(Communicator& comm, WorkerPool& pool, std::vector<Lane>& lanes, const Dataset& data,
                    int grain, std::span<const float> weights);

}  // namespace lockstep
