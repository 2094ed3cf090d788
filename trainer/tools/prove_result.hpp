// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Result of `lockstep prove`: for people, for programs, and as a message between ranks.
#pragma once

#include "common/json_text.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/tools/prove_steps.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// One bit that is not as it should be.
struct FlippedBit {
  std::vector<std::size_t> index;  ///< the element's, in its parameter
  int bit = 0;                     ///< 0: the lowest
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
  std::optional<int> bucket = {};  ///< number in the run's plan, from 1, in the order in which they leave
  std::optional<FlippedBit> flipped = {};
  std::string text = {};               ///< sentence that says what differs
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

// As ranks send it to each other.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepRange, first, last)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FlippedBit, index, bit)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WrongRank, number, place)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Discrepancy, step, what, parameter, bucket, flipped, text, cause,
                                   first_replayed, rank)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NotProved, steps, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProofResult, asked, proved, findings, not_proved, replayed,
                                   lacks_arithmetic)

/// Adds the result of another rank. Ranges are merged, findings sorted by step.
void add(ProofResult& verdict, const ProofResult& more);

/// Lines for people.
std::string to_text(const ProofResult& verdict, const ProofCircumstances& circumstances);
/// Grows by new keys; a key that changes its meaning raises it.
inline constexpr int kProofFormat = 1;
/// One object for programs.
nlohmann::ordered_json report_json(const ProofResult& verdict, const ProofCircumstances& circumstances);

}  // namespace lockstep
