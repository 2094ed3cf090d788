// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Claims of a run's files other than weights and trail: lines of metrics.jsonl, labels and sums of manifests. A replay
/// computes each of these numbers again.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/state.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

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

/// Keys of an event that are measured and not computed.
inline const std::set<std::string> kTimes = {"seconds", "train_seconds"};
/// Keys of the event "start" that do not follow from job and data. A model's name may be that of its file.
inline const std::set<std::string> kOfThePlace = {"model",       "version",     "world",   "hosts",
                                                  "threads",     "device",      "backend", "strategy",
                                                  "data_origin", "test_samples"};
/// Keys of events that tell of the test set.
inline const std::set<std::string> kOfTheTestSet = {"test_loss",        "test_accuracy", "test_samples",
                                                    "ema_test_loss",    "swa_test_loss", "ema_test_accuracy",
                                                    "swa_test_accuracy"};
/// differing_numbers() of an event, and "a run of this job writes no published_hash here" for keys that it alone has.
/// Keys that are measured, or unknown, are passed over.
std::vector<std::string> differing_event(const nlohmann::json& said, const nlohmann::ordered_json& computed,
                                         const std::set<std::string>& leave_out);

/// Compares the facts of manifests, apart from the tensors, that both have. Trail and metrics are not
/// compared, nor are keys for people.
std::vector<std::string> differing_facts(const CheckpointFacts& said, const CheckpointFacts& computed);

}  // namespace lockstep
