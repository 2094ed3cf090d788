// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each rank computes the share of the next one again, before the weights move. Every processor comes to the same bits,
/// so where two differ one of them is wrong, and all ranks together say which.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/sum_check.hpp"
#include "trainer/engine/wrong_rank.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

/// What one rank came to when it computed a share: a fingerprint of each tensor's sums.
struct ShareResult {
  int rank = 0;  ///< who computed it
  SumFingerprints sums;
};

/// Who was wrong about one share.
struct ReplayVerdict {
  std::vector<int> wrong;  ///< ranks; several: it cannot be told which of them
  bool is_certain = false;
  std::size_t tensor = 0;  ///< the first one whose sums differ
};

/// The results of most say what is right. On two ranks one that contradicts itself is the wrong one; if both insist, it
/// cannot be told.
/// @param results  at least two ranks', of some several
ReplayVerdict judge_share(std::span<const ShareResult> results);

/// What a rank does for a replay.
struct ReplayWork {
  /// Computes the share of a rank in this step; nothing leaves, and nothing moves.
  std::function<SumFingerprints(int rank)> compute_share;
  /// Fingerprints of this rank's weights, by tensor.
  std::function<SumFingerprints()> weights;
  /// Of the samples of a rank's share, as this rank has them in memory.
  std::function<std::uint64_t(int rank)> samples;
};

/// Collective. @param own  of the share that this rank has computed in this step
/// @throws WrongRankError  on all ranks: names the rank that is wrong, its host and device, the
///                      tensor, and whether its weights, its data or its processor is at fault
void replay_next_rank(Communicator& comm, const SumFingerprints& own, const ReplayWork& work,
                      std::int64_t step, const TrainedHere& here);

}  // namespace lockstep
