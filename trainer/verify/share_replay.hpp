// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks compute the share of others again, before the weights move. Every processor computes the same bits, so where two
/// differ one of them is wrong, and all together say which. Who computes a share is a *team*: one rank, or the ranks of a
/// pipeline. Each team computes the share of the next one.
#pragma once

#include "comm/communicator.hpp"
#include "comm/reduce/sum_check.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "models/arena.hpp"
#include "trainer/training/options.hpp"
#include "trainer/training/teams.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Steps from one replay to the next, by parallel.replay_every_steps; 0: there are none.
/// @param teams  one alone replays nothing
std::int64_t steps_between_replays(const StepOptions& options, int teams, bool on_gpu);

/// A team's result for one share.
struct ShareResult {
  int team = 0;  ///< that computed it
  SumFingerprints sums;
};

/// A team that was wrong about a share.
struct WrongTeam {
  int team;
  std::size_t place;  ///< its first fingerprint that differs; where it is not certain, that of all
  friend bool operator==(const WrongTeam&, const WrongTeam&) = default;
};

/// Teams that were wrong about one share.
struct ReplayVerdict {
  std::vector<WrongTeam> wrong;
  bool is_certain;  ///< false: it cannot be told which of them
};

/// The results of most say what is right. Of two teams one that contradicts itself is the wrong one; if both insist, it
/// cannot be told.
/// @param results  of at least two teams, of some several
ReplayVerdict judge_share(std::span<const ShareResult> results);

/// Names the fingerprints in the row of a step (trainer/training/fingerprints.hpp).
/// @param holders  Teams::holders
std::vector<ComparedPart> parts_of_row(const ParameterLayout& network,
                                       const std::vector<std::string>& buffers,
                                       const std::vector<int>& holders);

/// Compares the row of a step, or one that fingerprints_of_state() made, over those that hold copies. It takes eight
/// bytes a rank where all are equal. Collective.
/// @param whole   all ranks
/// @param copies  those that should hold the same; all ranks are in one such group
/// @param parts   what the fingerprints are of
/// @param step    for the message, as `device`, which is this rank's
/// @throws WrongRankError  on all ranks
void expect_equal_copies(Communicator& whole, Communicator& copies, const SumFingerprints& own,
                         const std::vector<ComparedPart>& parts, std::int64_t step,
                         const std::string& device);

/// A rank's work for a replay. Each call is collective in its team, whose ranks get the same.
struct ReplayWork {
  /// In the order in which numbers follow from each other: the first one that is wrong tells where it began.
  std::vector<ComparedPart> share_parts, state_parts, sample_parts;
  /// Computes the share of a team in this step; nothing leaves the team, and nothing moves.
  std::function<SumFingerprints(int team)> compute_share;
  std::function<SumFingerprints()> state;
  /// Fingerprints of a share's samples, as this team has them in memory.
  std::function<SumFingerprints(int team)> samples;
};

/// Fingerprints of a share's samples, as they are in memory: one of pictures or features, one of labels.
SumFingerprints fingerprints_of_samples(const Dataset& data, const DistributedSampler& sampler,
                                        std::int64_t step_in_epoch, int share);

/// Collective.
/// @param whole  all ranks: teams of equal size, one after the other
/// @param teams  of this rank and those at its place in the other teams
/// @param own    of the share that this team has computed in this step
/// @throws WrongRankError  on all ranks: names the rank that is wrong, its host and device, what it computed, and
///                      whether its state, its data, its processor or a link is at fault
void replay_next_share(Communicator& whole, Communicator& teams, const SumFingerprints& own,
                       const ReplayWork& work, std::int64_t step, const std::string& device);

}  // namespace lockstep
