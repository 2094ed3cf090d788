// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Predictions of a network about a picture, with their probabilities.
#pragma once

#include "data/pictures/picture.hpp"
#include "models/execution.hpp"
#include "models/network.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/training/evaluator.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct Prediction {
  std::string picture;                 ///< its name
  std::string original = {};           ///< source picture of an image of a converted set; empty: not known
  std::vector<float> scores;           ///< one for each class (score_classes())
  std::vector<std::string> done = {};  ///< to the picture
  std::vector<std::string> warnings = {};  ///< empty: the answer can be relied on as far as the network can

  /// Class indices, likeliest first.
  std::vector<int> ranking() const;
};

// Predictions as a person or a program reads them.

/// More classes than this do not get a bar each: the likeliest do, unless style.top says how many.
inline constexpr int kMostBars = 20;

struct ReportStyle {
  std::vector<std::string> class_names;
  int top = 0;                              ///< only so many classes, likeliest first; 0: all, in label order
  bool unicode = false;                     ///< bars of blocks rather than of #
  LossKind loss = LossKind::kCrossEntropy;  ///< says what scores are
  const char* thing = "picture";            ///< that is predicted: what summaries count
};

/// Adds a warning where the likeliest class is less likely than kSureProbability. On MNIST's test images Net with 98.5 %
/// is right in 99.5 of 100 cases above it, and in 74 below. Of outputs that are no probabilities, the largest has to
/// lead the next by kSureLead.
inline constexpr float kSureProbability = 0.9F, kSureLead = 0.5F;
void warn_if_unsure(Prediction& prediction, const ReportStyle& style);

/// A line with the answer, one for each warning, and a bar for each class.
std::string bars_of(const Prediction& prediction, const ReportStyle& style);

/// One line: the likeliest classes (style.top, at least one) and the warnings.
std::string line_of(const Prediction& prediction, const ReportStyle& style);

/// Grows by new keys; a key that changes its meaning raises it.
inline constexpr int kPredictionFormat = 1;

/// Formats a prediction as one line of JSON. It is {"format", "picture", "original" where it is known, "scores",
/// "class", "probability", "top": [{"class", "probability"}...], "done": [...], "warnings": [...]}; top holds
/// style.top classes, or all, likeliest first. "output" in place of "probability" where scores are none.
std::string json_of(const Prediction& prediction, const ReportStyle& style);

/// A line of CSV: picture, class, probability or output, warnings; and the line above them.
std::string csv_of(const Prediction& prediction, const ReportStyle& style);
std::string csv_head(LossKind loss);

/// Counts what was predicted for many pictures.
class PredictionSummary {
 public:
  explicit PredictionSummary(std::size_t classes) : counts_(classes, 0) {}

  void add(const Prediction& prediction);
  /// A line for each class: how many, and their share.
  std::string to_text(const std::string& name, const ReportStyle& style) const;
  /// One object: {"format", "file", "pictures", "not_sure", "counts": {class: n}}.
  std::string to_json(const std::string& name, const ReportStyle& style) const;

 private:
  std::vector<std::int64_t> counts_;
  std::int64_t pictures_ = 0, unsure_ = 0;
};

// A trained network as `lockstep predict` uses it, on one core.

class Predictor {
 public:
  /// @param model  must outlive this
  explicit Predictor(const SavedModel& model) : model_(model), execution_(model.network, kBatch) {}

  static constexpr int kBatch = 64;
  /// The score of each class, for each picture. At most kBatch, which have the shape that the network was trained on.
  std::vector<std::vector<float>> predict(std::span<const Picture> pictures);
  /// Predicts rows of a table; the network was trained on one.
  /// @param rows  [row][features] as their file has them, at most kBatch
  /// @throws DataError  a number that is too large for the run's mean and standard deviation
  std::vector<std::vector<float>> predict_rows(std::vector<float> rows);

 private:
  GatherShape gather_shape(std::size_t samples) const;
  /// From the input of the execution.
  std::vector<std::vector<float>> scores_of(const GatherShape& input);

  const SavedModel& model_;
  Execution execution_;
};

}  // namespace lockstep
