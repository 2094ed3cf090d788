// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Bars, one-line answers and JSON.
#include "trainer/prediction/prediction_report.hpp"

#include "common/text/json_text.hpp"
#include "common/text/text_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string bar(double share, bool unicode) {
  constexpr int kWidth = 40;
  std::string text;
  for (int i = 0; i < static_cast<int>(std::lround(share * kWidth)); ++i) text += unicode ? "█" : "#";
  return text;
}

const std::string& name_of(int index, const ReportStyle& style) {
  return style.class_names[static_cast<std::size_t>(index)];
}

/// Columns of the names before the bars.
int width_of_names(const ReportStyle& style) {
  constexpr int kNarrowest = 12, kWidest = 30;
  int width = kNarrowest;
  for (const std::string& name : style.class_names) width = std::max(width, display_width(name));
  return std::min(width, kWidest);
}

/// Class indices that are shown.
std::vector<int> shown(const Prediction& prediction, const ReportStyle& style, bool in_label_order) {
  std::vector<int> classes = prediction.ranking();
  if (style.top > 0) {
    classes.resize(std::min(classes.size(), static_cast<std::size_t>(style.top)));
  } else if (in_label_order) {
    std::sort(classes.begin(), classes.end());
  }
  return classes;
}

/// In ASCII, with nothing in it that a terminal could obey; what is no UTF-8, in a file name, becomes U+FFFD.
std::string one_line(const Json& json) {
  std::string line = json_text_in_ascii(json);
  for (std::size_t at = line.find('\x7f'); at != line.npos; at = line.find('\x7f', at))
    line.replace(at, 1, "\\u007f");
  return line + "\n";
}

}  // namespace

std::string bars_of(const Prediction& prediction, const ReportStyle& style) {
  const std::string done =
      prediction.done.empty() ? "" : fmt::format("  ({})", fmt::join(prediction.done, ", "));
  std::string text =
      fmt::format("{}: {}{}\n", prediction.picture, name_of(prediction.ranking().front(), style), done);
  for (const std::string& warning : prediction.warnings) text += fmt::format("  not sure: {}\n", warning);
  ReportStyle with_bars = style;
  if (style.top == 0 && style.class_names.size() > kMostBars) with_bars.top = kMostBars;
  for (const int c : shown(prediction, with_bars, true)) {
    const float probability = prediction.probabilities[static_cast<std::size_t>(c)];
    const std::string line = fmt::format("  {:>{}} {:>6.2f} % {}", name_of(c, style), width_of_names(style),
                                         100 * probability, bar(probability, style.unicode));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string line_of(const Prediction& prediction, const ReportStyle& style) {
  std::string line = prediction.picture + ":";
  std::vector<int> classes = prediction.ranking();
  classes.resize(std::min(classes.size(), static_cast<std::size_t>(std::max(1, style.top))));
  for (const int c : classes) {
    line += fmt::format(" {} {:.2f} %", name_of(c, style),
                        100 * prediction.probabilities[static_cast<std::size_t>(c)]);
  }
  if (!prediction.warnings.empty())
    line += fmt::format("  not sure: {}", fmt::join(prediction.warnings, ", "));
  return line + "\n";
}

std::string json_of(const Prediction& prediction, const ReportStyle& style) {
  Json top = Json::array();
  for (const int c : shown(prediction, style, false))
    top.push_back({{"class", name_of(c, style)},
                   {"probability", prediction.probabilities[static_cast<std::size_t>(c)]}});
  const int best = prediction.ranking().front();
  return one_line({{"picture", prediction.picture},
                   {"class", name_of(best, style)},
                   {"probability", prediction.probabilities[static_cast<std::size_t>(best)]},
                   {"top", top},
                   {"done", prediction.done},
                   {"warnings", prediction.warnings}});
}

void PredictionSummary::add(const Prediction& prediction) {
  ++counts_[static_cast<std::size_t>(prediction.ranking().front())];
  if (!prediction.warnings.empty()) ++unsure_;
}

std::int64_t PredictionSummary::pictures() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

std::string PredictionSummary::to_text(const std::string& name, const ReportStyle& style) const {
  const auto all = static_cast<double>(std::max<std::int64_t>(pictures(), 1));
  std::string text = fmt::format("{}: {}, not sure of {}\n", name, counted(pictures(), "picture"), unsure_);
  for (std::size_t c = 0; c < counts_.size(); ++c) {
    const double share = static_cast<double>(counts_[c]) / all;
    const std::string line =
        fmt::format("  {:>{}} {:>7} {:>6.2f} % {}", style.class_names[c], width_of_names(style), counts_[c],
                    100 * share, bar(share, style.unicode));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string PredictionSummary::to_json(const std::string& name, const ReportStyle& style) const {
  Json counts = Json::object();
  for (std::size_t c = 0; c < counts_.size(); ++c) counts[style.class_names[c]] = counts_[c];
  return one_line({{"file", name}, {"pictures", pictures()}, {"not_sure", unsure_}, {"counts", counts}});
}

}  // namespace lockstep
