// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Right and wrong answers of a network by class, and its most confident mistakes.
#pragma once

#include "comm/communicator.hpp"
#include "data/dataset.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/training/evaluator.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// So many mistakes are kept: a square of pictures.
inline constexpr std::size_t kMistakesKept = 36;

struct Mistake {
  std::int64_t sample = 0;  ///< its place in the set
  int label = 0, answer = 0;
  std::vector<float> scores;  ///< one for each class (score_classes())
  std::string picture = {};   ///< that the sample was made of; empty: not known

  float sureness() const { return scores[static_cast<std::size_t>(answer)]; }
};

struct ClassEvaluation {
  int classes = 0;
  LossKind loss = LossKind::kCrossEntropy;  ///< says what scores are
  /// [label][classes + 1]: how many samples of that label got that answer; the last column: outputs that are NaN.
  std::vector<std::int64_t> counts;
  std::vector<Mistake> mistakes =
      {};                    ///< surest first, among equals the earlier sample; at most kMistakesKept
  bool interrupted = false;  ///< it was left before its end: the numbers are worth nothing

  std::int64_t count(int label, int answer) const;
  std::int64_t samples(int label) const;   ///< that have this label
  std::int64_t answers(int answer) const;  ///< that got this answer
  std::int64_t samples() const;
  std::int64_t correct() const;
  /// Share of the samples with this answer that are of this class. Nothing: there are none.
  std::optional<double> precision(int of) const;
  /// Share of the samples of this class that got this answer. Nothing: there are none.
  std::optional<double> recall(int of) const;
  /// The other class that samples of this one are most often mistaken for. Nothing: none is.
  std::optional<int> most_taken_for(int label) const;
};

/// An answer is the class with the largest output, the first among equals, as everywhere. On the processor; grains are
/// cut as by evaluate(), so that each sample's numbers have the same bits for any share.
/// @throws MemoryError  counts of so many classes do not fit, with what is made of them
ClassEvaluation evaluate_classes(const SavedModel& model, const Dataset& data, int threads,
                                 RankShare share = {}, const LeaveEvaluation& leave = never_leave);

/// Sums the shares of all ranks, the same on each. Collective.
ClassEvaluation over_all(Communicator& comm, const ClassEvaluation& mine);

// As a person or a program reads it.

/// Adds to each mistake its place in its file and its picture's name, from a list
/// (data/sets/names.hpp). Call it once. @returns the fault of the list; empty: none, or there is no
/// list
std::string locate_mistakes(ClassEvaluation& found, const TrainTestData& data, const Dataset& part);

/// A table of the classes, the confusion matrix unless it is too wide, and the first of the mistakes.
std::string classes_text(const ClassEvaluation& evaluation, const std::vector<std::string>& class_names);

/// Classes with samples, correct, precision, recall and F1; "confusion" as counts (a row a label); "mistakes".
nlohmann::ordered_json classes_json(const ClassEvaluation& evaluation,
                                    const std::vector<std::string>& class_names);

}  // namespace lockstep
