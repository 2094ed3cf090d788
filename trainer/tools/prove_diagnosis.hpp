// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a step that came to something else than its trail says, to what differs and why that may be.
#pragma once

#include "models/arena.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/checkpoint/trail_format.hpp"
#include "trainer/tools/prove_result.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Of the run, what a diagnosis speaks of.
struct DiagnosisFacts {
  const TrailHead& trail;
  const ParameterLayout& parameters;
  std::vector<std::size_t> bucket_sizes;  ///< as a checkpoint says them; may be empty
};

/// A step as it was replayed here.
struct ReplayedStep {
  std::int64_t step = 0;
  std::span<const std::uint64_t> fingerprints;
  std::uint64_t apart = 0;      ///< of the ranks here
  bool first_replayed = false;  ///< what it was computed from here is what the starting point holds
  std::string start;            ///< "the checkpoint of step 40", "the seed"
};

/// Nothing: the step is as the trail says.
/// @param ranks  that took it, if that is known: one whose copy of weights, buffers or sums was wrong is named
std::optional<Discrepancy> diagnose_step(const DiagnosisFacts& facts, const TrailRecord& recorded,
                                         const ReplayedStep& here,
                                         const std::optional<RecordedRanks>& ranks = {});

/// Whether all ranks went into the step with the right state and came out with the same wrong sums: then it takes the
/// shares of them all to say whose was wrong.
bool is_of_a_share(const Discrepancy& finding, const TrailRecord& recorded);

/// Modulo 2^64, how far the recorded sums of gradients are from those here.
std::uint64_t sums_apart(const TrailHead& head, const TrailRecord& recorded,
                         std::span<const std::uint64_t> here);

/// Names the rank whose share was wrong.
/// @param apart  sums_apart()   @param weighted  of the shares as they are computed here, as RankSums has them
void name_wrong_share(Discrepancy& finding, const RecordedRanks& ranks, std::uint64_t apart,
                      std::uint64_t weighted);

/// The state here after a step against the checkpoint of that step. Nothing: they are the same bits.
std::optional<Discrepancy> diagnose_state(const DiagnosisFacts& facts, const CheckpointState& checkpoint,
                                          std::span<const float> weights,
                                          const std::vector<std::span<const float>>& optimizer);

/// The bucket, from 1, in which an element of the arena left. Nothing: the sizes are not known, or do not fit.
/// @param sizes  of the buckets in elements, in the order in which they leave; the arena's end leaves first
std::optional<int> bucket_of(std::span<const std::size_t> sizes, std::size_t element, std::size_t parameters);

}  // namespace lockstep
