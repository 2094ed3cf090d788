// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Request of `lockstep prove`, the plan of its replay, and its result.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/checkpoint/state.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
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

/// "step 7", "steps 7 to 12"
std::string describe(const StepRange& range);
/// "steps 1 to 6, 9 and 12 to 40"; "none"
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
  int bits = 32;  ///< of a word
};

struct WordBit {
  std::size_t word = 0;  ///< counted from FingerprintedWords::first
  int bit = 0;
  friend bool operator==(const WordBit&, const WordBit&) = default;
};

/// The bit whose flip makes the fingerprint larger by `difference`, mod 2^64. Other changes look like one with a
/// probability of about words * 2 * bits / 2^64.
std::optional<WordBit> find_flipped_bit(std::uint64_t difference, const FingerprintedWords& words);

// Result of a proof.

/// One bit that is not as it should be.
struct FlippedBit {
  std::vector<std::int64_t> index;  ///< of the element in its parameter
  int bit = 0;                      ///< 0: the lowest
  friend bool operator==(const FlippedBit&, const FlippedBit&) = default;
};

/// The rank of the run whose numbers were wrong.
struct WrongRank {
  int number = 0;
  RankPlace place;
};

/// A place where the run is not what it says.
struct Discrepancy {
  std::int64_t step = 0;
  /// "gradient", "weights", "optimizer", "ranks"; of files "trail", "checkpoint", "manifest", "metrics", "job"
  std::string what;
  std::string parameter = {};      ///< empty: none in particular
  std::optional<int> bucket = {};  ///< of the run's plan, from 1, in the order in which they leave
  std::optional<FlippedBit> flipped = {};
  std::string text = {};               ///< what differs, in a sentence
  std::string cause = {};              ///< the likely one, in a sentence
  bool first_replayed = false;         ///< it is the first step after a checkpoint
  std::optional<WrongRank> rank = {};  ///< nothing: it cannot be told
};

struct ProofResult;
/// Adds a finding of no parameter in particular.
void refute(ProofResult& verdict, std::int64_t step, const char* what, std::string text, std::string cause);

struct NotProved {
  StepRange steps;
  std::string why;
};

/// Result of one rank's work, or of all.
struct ProofResult {
  std::vector<StepRange> asked, proved;
  std::vector<Discrepancy> findings;  ///< by step
  std::vector<NotProved> not_proved;
  std::int64_t replayed = 0;      ///< steps computed here
  bool lacks_arithmetic = false;  ///< a reason for an open part

  bool refuted() const { return !findings.empty(); }
  bool complete() const { return without(merged(asked), merged(proved)).empty(); }
  /// 0 all that was asked for is proved, 1 refuted; 69 or 66: something is missing for the rest.
  int exit_code() const;
};

/// Facts for the first line.
struct ProofCircumstances {
  std::string run, device;
  int ranks = 1;
  double seconds = 0;
};

/// Messages between ranks.
std::string to_message(const ProofResult& verdict);
ProofResult from_message(const std::string& message);
/// Adds the result of another rank. Ranges are merged, findings sorted by step.
void add(ProofResult& verdict, const ProofResult& more);

/// Lines for people.
std::string to_text(const ProofResult& verdict, const ProofCircumstances& circumstances);
/// Grows by new keys; a key that changes its meaning raises it.
inline constexpr int kProofFormat = 1;
/// One object for programs.
nlohmann::ordered_json report_json(const ProofResult& verdict, const ProofCircumstances& circumstances);

// Claims of a run's files other than weights and trail: lines of metrics.jsonl, labels and sums of manifests.
// A replay computes each of these numbers again.

/// A line that a replay can compute again: "start" (of step 0), "step", "loss", "epoch",
/// "evaluation" or "end".
struct ClaimedLine {
  std::int64_t step = 0, number = 0;  ///< number: of the line in the file, from 1
  std::string event;
  std::size_t begin = 0, size = 0;  ///< its bytes in the file
};

/// metrics.jsonl of a run. A last line that is not whole is left out: a crash leaves one.
class MetricsClaims {
 public:
  /// No file, so nothing is claimed.
  MetricsClaims() = default;
  /// Any text may come.
  explicit MetricsClaims(std::string text);

  const std::string& text() const { return text_; }
  /// By step.
  const std::vector<ClaimedLine>& lines() const { return lines_; }
  std::span<const ClaimedLine> of_step(std::int64_t step) const;
  /// The next step after this one that a line is of; INT64_MAX: none.
  std::int64_t next_step(std::int64_t step) const;
  nlohmann::json event(const ClaimedLine& line) const;
  /// The last step up to which a start of the run has told that lines are lost; 0: none.
  std::int64_t lost_up_to() const { return lost_up_to_; }

  struct Problem {
    std::int64_t step = 0;
    std::string text;
  };
  /// Lines that are no events, or that are out of order.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  void add(std::int64_t number, std::size_t begin, std::size_t size);

  std::string text_;
  std::vector<ClaimedLine> lines_;
  std::vector<Problem> problems_;
  std::int64_t last_step_ = 0, lost_up_to_ = 0;
};

/// @throws DataError  it is too large; IoError
MetricsClaims read_claims(Env& env, const std::string& run_dir);

/// "loss is 0.5, and came to 0.25", for each shared key that differs.
/// @param leave_out  keys that are not compared: times, and what depends on the place
std::vector<std::string> differing_numbers(const nlohmann::json& said, const nlohmann::ordered_json& computed,
                                           const std::set<std::string>& leave_out);

/// Compares the facts of manifests, apart from the tensors, that both have. Trail and metrics are not
/// compared, nor are keys for people.
std::vector<std::string> differing_facts(const CheckpointFacts& said, const CheckpointFacts& computed);

}  // namespace lockstep
