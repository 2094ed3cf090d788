// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Where a step goes, and what would help: `lockstep bench step --explain`.
#pragma once

#include "common/timeline.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::bench {

struct LayerTime {
  std::string name;
  double forward = 0, backward = 0;  ///< seconds a step
};

/// Of traced steps of one rank. Seconds are those of a step.
struct StepShares {
  std::int64_t steps = 0;
  double seconds = 0;  ///< of a whole one
  /// What each kind of work took by itself, without what it contains: the mean of the threads.
  std::array<double, kWorks> own{};
  /// All-reduces of gradients: while one was under way, and the part of it in which the rank did not wait.
  double under_way = 0, hidden = 0;
  std::vector<LayerTime> layers;  ///< the slowest first

  double of(Work work) const { return own[static_cast<std::size_t>(work)]; }
  /// In none of the kinds of work that have a name for people.
  double rest() const;
};

/// @param threads  that compute
StepShares shares_of(const Timeline& timeline, int threads);

/// What the shares do not say.
struct StepSurroundings {
  int ranks = 1, threads = 1;
  std::int64_t grains = 1;  ///< of a step, on this rank
  std::size_t buckets = 1;
  int cores = 1;                 ///< that this process may use
  bool oversubscribed = false;   ///< more ranks on this host than cores
  double exposed = 0, skew = 0;  ///< shares of a step: as `bench step` measures them
  double share_of_peak = 0;
};

/// What would help most, a sentence each, the most first; never none.
std::vector<std::string> advice_for(const StepShares& shares, const StepSurroundings& around);

/// Lines of at most 80 columns.
std::string explanation_text(const StepShares& shares, const StepSurroundings& around);
nlohmann::ordered_json explanation_json(const StepShares& shares, const StepSurroundings& around);

}  // namespace lockstep::bench
