// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The order of the classes, and the doubt where none is likely.
#include "trainer/tools/prediction.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep {

std::vector<int> Prediction::ranking() const {
  std::vector<int> classes(scores.size());
  std::iota(classes.begin(), classes.end(), 0);
  std::ranges::stable_sort(classes, [&](int a, int b) { return at(scores, a) > at(scores, b); });
  return classes;
}

void warn_if_unsure(Prediction& prediction, const ReportStyle& style) {
  const std::vector<float>& scores = prediction.scores;
  const std::vector<int> ranking = prediction.ranking();
  const bool is_alone = ranking.size() == 1;  // a sample may have no label
  const int best = ranking.front(), rival = is_alone ? best : ranking[1];
  const float score = at(scores, best), of_rival = is_alone ? 0 : at(scores, rival);
  const bool is_sure =
      are_probabilities(style.loss) ? score >= kSureProbability : score - of_rival >= kSureLead;
  if (!is_sure)
    prediction.warnings.push_back(fmt::format("{} or {}?", at(style.class_names, best),
                                              is_alone ? "not" : at(style.class_names, rival)));
}

// Bars, one-line answers and JSON.

namespace {

using Json = nlohmann::ordered_json;

std::string bar(double share, bool unicode) {
  constexpr int kWidth = 40;
  const auto width = std::lround(std::clamp(share, 0.0, 1.0) * kWidth);
  return unicode ? fmt::format("{:█>{}}", "", width) : fmt::format("{:#>{}}", "", width);
}

/// Key of one class's score, in JSON and CSV.
const char* key_of_score(LossKind loss) {
  return are_probabilities(loss) ? "probability" : "output";
}

const std::string& name_of(int index, const ReportStyle& style) {
  return at(style.class_names, index);
}

/// Columns of the names before the bars.
int width_of_names(const ReportStyle& style) {
  constexpr int kNarrowest = 12, kWidest = 30;
  int width = kNarrowest;
  for (const std::string& name : style.class_names) width = std::max(width, display_width(name));
  return std::min(width, kWidest);
}

/// Indices of the `top` likeliest classes, likeliest first; 0: of all.
std::vector<int> likeliest(const Prediction& prediction, int top) {
  std::vector<int> classes = prediction.ranking();
  if (top > 0) classes.resize(std::min(classes.size(), static_cast<std::size_t>(top)));
  return classes;
}

/// Makes a line of ASCII without terminal control characters; bytes of a file name that are not UTF-8 become U+FFFD.
std::string one_line(const Json& json) {
  return json_text_in_ascii(json) + "\n";
}

/// "set/t10k-images-idx3-ubyte[12] (cats/7.png)", on one line whatever the names are.
std::string picture_and_original(const Prediction& prediction) {
  const std::string picture = printable_line(prediction.picture);
  if (prediction.original.empty()) return picture;
  return fmt::format("{} ({})", picture, printable_line(prediction.original));
}

}  // namespace

std::string bars_of(const Prediction& prediction, const ReportStyle& style) {
  const std::string done =
      prediction.done.empty() ? "" : fmt::format("  ({})", fmt::join(prediction.done, ", "));
  std::string text = fmt::format("{}: {}{}\n", picture_and_original(prediction),
                                 name_of(prediction.ranking().front(), style), done);
  for (const std::string& warning : prediction.warnings) text += fmt::format("  not sure: {}\n", warning);
  if (style.loss == LossKind::kBinaryCrossEntropy)
    text += "  of each class by itself (binary_cross_entropy):\n";
  if (!are_probabilities(style.loss))
    text += "  outputs, no probabilities: 1 is the class, 0 another (mse):\n";
  const int top = style.top == 0 && style.class_names.size() > kMostBars ? kMostBars : style.top;
  std::vector<int> classes = likeliest(prediction, top);
  if (top == 0) std::ranges::sort(classes);
  for (const int c : classes) {
    const float score = at(prediction.scores, c);
    text += without_spaces_behind(fmt::format("  {:>{}} {:>8} {}", name_of(c, style), width_of_names(style),
                                              score_text(style.loss, score), bar(score, style.unicode))) +
            "\n";
  }
  return text;
}

std::string line_of(const Prediction& prediction, const ReportStyle& style) {
  std::string line = picture_and_original(prediction) + ":";
  for (const int c : likeliest(prediction, std::max(1, style.top)))
    line += fmt::format(" {} {}", name_of(c, style), score_text(style.loss, at(prediction.scores, c)));
  if (!prediction.warnings.empty())
    line += fmt::format("  not sure: {}", fmt::join(prediction.warnings, ", "));
  return line + "\n";
}

std::string json_of(const Prediction& prediction, const ReportStyle& style) {
  Json top = Json::array();
  for (const int c : likeliest(prediction, style.top))
    top.push_back({{"class", name_of(c, style)}, {key_of_score(style.loss), at(prediction.scores, c)}});
  const int best = prediction.ranking().front();
  Json json = {{"format", kPredictionFormat}, {"picture", prediction.picture}};
  if (!prediction.original.empty()) json["original"] = prediction.original;
  json.update({{"scores", name_of_scores(style.loss)},
               {"class", name_of(best, style)},
               {key_of_score(style.loss), at(prediction.scores, best)},
               {"top", top},
               {"done", prediction.done},
               {"warnings", prediction.warnings}});
  return one_line(json);
}

std::string csv_head(LossKind loss) {
  return fmt::format("picture,class,{},not_sure\n", key_of_score(loss));
}

std::string csv_of(const Prediction& prediction, const ReportStyle& style) {
  const auto quoted = [](const std::string& text) {
    std::string field = "\"";
    for (const char c : without_formula(printable_line(text)))
      field += c == '"' ? std::string("\"\"") : std::string(1, c);
    return field + "\"";
  };
  const int best = prediction.ranking().front();
  return fmt::format("{},{},{},{}\n", quoted(prediction.picture), quoted(name_of(best, style)),
                     at(prediction.scores, best),
                     quoted(fmt::format("{}", fmt::join(prediction.warnings, ", "))));
}

void PredictionSummary::add(const Prediction& prediction) {
  ++pictures_;
  ++at(counts_, prediction.ranking().front());
  if (!prediction.warnings.empty()) ++unsure_;
}

std::string PredictionSummary::to_text(const std::string& name, const ReportStyle& style) const {
  const auto all = static_cast<double>(std::max<std::int64_t>(pictures_, 1));
  std::string text =
      fmt::format("{}: {}, not sure of {}\n", printable_line(name), counted(pictures_, style.thing), unsure_);
  for (std::size_t c = 0; c < counts_.size(); ++c) {
    const double share = static_cast<double>(counts_[c]) / all;
    text += without_spaces_behind(fmt::format("  {:>{}} {:>7} {:>6} % {}", style.class_names[c],
                                              width_of_names(style), counts_[c], percent_text(share),
                                              bar(share, style.unicode))) +
            "\n";
  }
  return text;
}

std::string PredictionSummary::to_json(const std::string& name, const ReportStyle& style) const {
  Json counts = Json::object();
  for (std::size_t c = 0; c < counts_.size(); ++c) counts[style.class_names[c]] = counts_[c];
  return one_line({{"format", kPredictionFormat},
                   {"file", name},
                   {"pictures", pictures_},
                   {"not_sure", unsure_},
                   {"counts", counts}});
}

// Predictor: gathers pictures into batches and passes them forward.

GatherShape Predictor::gather_shape(std::size_t samples) const {
  LOCKSTEP_CHECK(samples <= kBatch);
  const int multiple = cpu::kLanes, count = static_cast<int>(samples);
  const ImageShape& shape = model_.network.input_shape();
  return {.batch = (count + multiple - 1) / multiple * multiple,
          .samples = count,
          .features = shape.features(),
          .channels = shape.channels};
}

std::vector<std::vector<float>> Predictor::predict_rows(std::vector<float> rows) {
  const ImageShape& shape = model_.network.input_shape();
  const DatasetOptions& data = model_.data.options;
  normalise_features(rows, shape, {.mean = data.mean, .std = data.std}, "a row to predict");
  const GatherShape input = gather_shape(rows.size() / static_cast<std::size_t>(shape.features()));
  std::vector<std::int32_t> index(static_cast<std::size_t>(input.samples));
  std::iota(index.begin(), index.end(), 0);
  cpu::gather_features(input, rows.data(), index.data(), execution_.input());
  return scores_of(input);
}

std::vector<std::vector<float>> Predictor::predict(std::span<const Picture> pictures) {
  std::vector<const std::uint8_t*> images;
  for (const Picture& picture : pictures) {
    LOCKSTEP_CHECK(picture.shape() == model_.network.input_shape());
    images.push_back(picture.pixels.data());
  }
  const DatasetOptions& data = model_.data.options;
  const GatherShape input = gather_shape(pictures.size());
  const ChannelScales scales = scales_of({.mean = data.mean, .std = data.std}, input.channels);
  cpu::gather_images(input, images.data(), scales.scale.data(), scales.shift.data(), execution_.input());
  return scores_of(input);
}

std::vector<std::vector<float>> Predictor::scores_of(const GatherShape& input) {
  const int batch = input.batch, samples = input.samples;
  float* logits = execution_.forward_evaluation(model_.weights.data(), batch);
  const int classes = model_.network.classes();
  score_classes(model_.loss, {.batch = batch, .samples = samples, .classes = classes}, logits, logits);
  std::vector<std::vector<float>> scores;
  for (int s = 0; s < samples; ++s) {
    std::vector<float>& of_sample = scores.emplace_back();
    for (int c = 0; c < classes; ++c) of_sample.push_back(logits[c * batch + s]);
    if (std::ranges::all_of(of_sample, [](float score) { return std::isfinite(score); })) continue;
    throw InternalError(
        fmt::format("{}: the network's outputs for a picture are NaN or infinite, since its weights are too "
                    "large; use an earlier checkpoint, or train again with a smaller train.optimizer.lr",
                    model_.checkpoint));
  }
  return scores;
}

}  // namespace lockstep
