// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Predictions as a person or a program reads them.
#pragma once

#include "trainer/prediction/prediction.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// More classes than this do not get a bar each: the likeliest do, unless style.top says how many.
inline constexpr int kMostBars = 20;

struct ReportStyle {
  std::vector<std::string> class_names;
  int top = 0;           ///< only so many classes, likeliest first; 0: all, in label order
  bool unicode = false;  ///< bars of blocks rather than of #
};

/// A line with the answer, one for each warning, and a bar for each class.
std::string bars_of(const Prediction& prediction, const ReportStyle& style);

/// One line: the likeliest classes (style.top, at least one) and the warnings.
std::string line_of(const Prediction& prediction, const ReportStyle& style);

/// One line of JSON: {"picture", "class", "probability", "top": [{"class", "probability"}...], "done": [...],
/// "warnings": [...]}; top holds style.top classes, or all, likeliest first.
std::string json_of(const Prediction& prediction, const ReportStyle& style);

/// Counts what was predicted for many pictures.
class PredictionSummary {
 public:
  explicit PredictionSummary(std::size_t classes) : counts_(classes, 0) {}

  void add(const Prediction& prediction);
  /// A line for each class: how many, and their share.
  std::string to_text(const std::string& name, const ReportStyle& style) const;
  /// One object: {"pictures", "unsure", "counts": {class: n}}.
  std::string to_json(const std::string& name, const ReportStyle& style) const;

 private:
  std::int64_t pictures() const;

  std::vector<std::int64_t> counts_;
  std::int64_t unsure_ = 0;
};

}  // namespace lockstep
