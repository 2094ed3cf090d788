// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Steps of a proof: those asked for, the plan of their replay, and the one bit that makes a difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

// Ranges of steps, and which of them are asked for.

/// Steps from first to last, counted from 1, both included.
struct StepRange {
  std::int64_t first = 1, last = 0;

  bool empty() const { return last < first; }
  std::int64_t count() const { return empty() ? 0 : last - first + 1; }
  bool contains(std::int64_t step) const { return first <= step && step <= last; }
  friend bool operator==(const StepRange&, const StepRange&) = default;
};

/// "7", "7..12", "7..", "..12"; an open end is 0. @throws UsageError  anything else
StepRange parse_steps(const std::string& text);

/// "step 7", "steps 1 to 6, 9 and 12 to 40"; "none"
std::string describe(const std::vector<StepRange>& ranges);

/// Sorted and without gaps or overlaps that need not be.
std::vector<StepRange> merged(std::vector<StepRange> ranges);
/// Subtracts the ranges `b` from `a`; both merged.
std::vector<StepRange> without(const std::vector<StepRange>& a, const std::vector<StepRange>& b);
/// So many steps of a range at random, fewer than it has. The results of a run are always checked.
/// @param always  those of them that lie in the range take the place of others; where these are more, so many
std::vector<StepRange> sample_steps(const StepRange& all, std::int64_t count, std::uint64_t seed,
                                    const std::set<std::int64_t>& always);
std::int64_t count_steps(const std::vector<StepRange>& ranges);

// Plan of the replay: steps, and where they start from.

/// A state of the run that is at hand: a checkpoint, or what it began with.
struct StartPoint {
  std::int64_t step = 0;   ///< steps taken
  std::string checkpoint;  ///< its directory; empty: the beginning
};

/// Steps that are replayed in one go.
struct Interval {
  StartPoint start;
  std::int64_t last = 0;
  std::string end;  ///< the checkpoint of that step, if there is a good one

  StepRange steps() const { return {start.step + 1, last}; }
};

/// Every step of `wanted` that can be reached, each from the nearest start before it.
/// @param starts     by step
/// @param reachable  steps that can be replayed here; merged
std::vector<Interval> plan_intervals(const std::vector<StartPoint>& starts,
                                     const std::vector<StepRange>& reachable,
                                     const std::vector<StepRange>& wanted);

/// Assigns intervals to so many workers, so that the longest work is short.
std::vector<std::size_t> share_intervals(const std::vector<Interval>& intervals, std::size_t workers);

// From two fingerprints that differ to the one bit that makes the difference, if it is one.

/// Words of a buffer among which is looked.
struct FingerprintedWords {
  std::uint32_t buffer = 0;  ///< kernels/numerics/fingerprint.hpp
  std::size_t first = 0, size = 0;
  int bits = 32;  ///< per word
};

struct WordBit {
  std::size_t word = 0;  ///< counted from FingerprintedWords::first
  int bit = 0;
  friend bool operator==(const WordBit&, const WordBit&) = default;
};

/// The bit whose flip makes the fingerprint larger by `difference`, mod 2^64. Other changes look like one with a
/// probability of about words * 2 * bits / 2^64.
std::optional<WordBit> find_flipped_bit(std::uint64_t difference, const FingerprintedWords& words);

}  // namespace lockstep
