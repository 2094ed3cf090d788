// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// TrainingLoss: numbers of the options become those of the kernels, each rounded once.
#include "trainer/training/training_loss.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

/// samples / (classes * samples of the class), as scikit-learn's "balanced".
std::vector<double> balanced_weights(const Dataset& train) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(train.classes));
  for (const std::int32_t label : train.labels) ++at(counts, label);
  std::vector<double> weights;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    if (counts[c] == 0)
      throw OptionError(
          "train.class_weights",
          fmt::format("balanced, but no training sample is of class {}; give a list with a weight for "
                      "each of the {}",
                      c, counted(counts.size(), "class")));
    weights.push_back(static_cast<double>(train.size()) /
                      (static_cast<double>(counts.size()) * static_cast<double>(counts[c])));
  }
  return weights;
}

std::vector<double> weights_of(const TrainingOptions& options, const Dataset& train) {
  const ClassWeights& given = options.loss.class_weights;
  if (given.balanced) return balanced_weights(train);
  const auto classes = static_cast<std::size_t>(train.classes);
  if (given.numbers.empty() || given.numbers.size() == classes) return given.numbers;
  throw OptionError("train.class_weights",
                    fmt::format("{} for {}; give one for each, in the order of the labels",
                                counted(given.numbers.size(), "number"), counted(classes, "class")));
}

/// Refuses options that are for one label a sample, where samples have several.
void check_label_sets(const TrainingOptions& options, const Dataset& train) {
  check_loss_of_labels(options.loss.loss, train);
  if (!train.has_label_sets()) return;
  if (options.loss.label_smoothing > 0)
    throw OptionError(
        "train.label_smoothing",
        fmt::format("samples of {} have several labels, and it is for one; leave it out", train.name));
  if (options.batch.balance_classes)
    throw OptionError("data.balance_classes",
                      fmt::format("samples of {} have several labels, so no class has samples of its own; "
                                  "leave it out",
                                  train.name));
}

}  // namespace

void check_loss_of_labels(LossKind loss, const Dataset& data) {
  if (!data.has_label_sets() || loss == LossKind::kBinaryCrossEntropy) return;
  throw ConfigError(fmt::format(
      "samples of {} have several labels, and train.loss {} is for one; train with binary_cross_entropy",
      data.name, spelt(loss)));
}

TrainingLoss::TrainingLoss(const TrainingOptions& options, const Dataset& train)
    : rule_(evaluation_rule(options.loss.loss, train, options.loss.own)),
      smoothing_(options.loss.label_smoothing),
      balanced_(options.loss.class_weights.balanced),
      mixed_(options.mixes),
      labels_(train.labels) {
  check_label_sets(options, train);
  rule_.label_share = static_cast<float>(1 - smoothing_);
  rule_.spread = static_cast<float>(smoothing_ / train.classes);
  for (const double weight : weights_of(options, train)) weights_.push_back(static_cast<float>(weight));
  rule_.weight_sum = static_cast<float>(std::accumulate(weights_.begin(), weights_.end(), 0.0));
}

LossRule TrainingLoss::rule(float scale) const {
  LossRule rule = rule_;
  if (has_class_weights()) rule.class_weights = weights_.data();
  rule.scale = scale;
  return rule;
}

float TrainingLoss::scale_of(std::span<const std::int32_t> samples) const {
  if (!has_class_weights() || mixed_) return 1;
  double sum = 0;
  for (const std::int32_t sample : samples)
    sum += static_cast<double>(at(weights_, labels_[static_cast<std::size_t>(sample)]));
  return sum == 0 ? 0 : static_cast<float>(static_cast<double>(samples.size()) / sum);
}

float TrainingLoss::scale_of(const DistributedSampler& sampler, std::int64_t step_in_epoch) const {
  if (!has_class_weights() || mixed_) return 1;
  const Grain batch{.first = 0, .samples = static_cast<int>(sampler.batch_samples(step_in_epoch))};
  return scale_of(sampler.indices(step_in_epoch, batch));
}

std::string TrainingLoss::describe() const {
  constexpr std::size_t kMostNamed = 20;
  if (rule_.is_plain() && !has_class_weights() && !mixed_) return "";
  std::vector<std::string> parts = {std::string(spelt(rule_.kind))};
  if (smoothing_ > 0) parts.push_back(fmt::format("label smoothing {}", smoothing_));
  if (has_class_weights()) {
    const auto [least, most] = std::ranges::minmax_element(weights_);
    const std::string numbers = weights_.size() <= kMostNamed
                                    ? fmt::format("{:.4g}", fmt::join(weights_, ", "))
                                    : fmt::format("from {:.4g} to {:.4g}", *least, *most);
    parts.push_back(fmt::format("class weights{} {}", balanced_ ? " (balanced)" : "", numbers));
  }
  if (mixed_) parts.emplace_back("mixed labels");
  const bool differs = smoothing_ > 0 || has_class_weights() || mixed_;
  return fmt::format("loss: {}{}", fmt::join(parts, ", "),
                     differs ? "; test and validation loss are without that" : "");
}

}  // namespace lockstep
