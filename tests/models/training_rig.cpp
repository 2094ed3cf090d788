// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// TrainingRig: random weights and samples, and one pass at a time.
#include "tests/models/training_rig.hpp"

#include "kernels/numerics/random.hpp"

#include <algorithm>

namespace lockstep::test {
namespace {

constexpr std::uint64_t kSeed = 7;

int rounded_up(int samples) {
  return (samples + cpu::kLanes - 1) / cpu::kLanes * cpu::kLanes;
}

}  // namespace

std::vector<float> draw(std::size_t count, std::uint64_t seed) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t stream = random_stream(RandomUse::kData, 0);
    numbers[i] = 2 * uniform01(philox(seed, {{static_cast<std::uint32_t>(i), 0, stream, 0}}).value[0]) - 1;
  }
  return numbers;
}

TrainingRig::TrainingRig(const std::string& layers, const ImageShape& input, int classes, int samples,
                         Precision precision)
    : network_(Network::parse("layers:\n" + layers, "rig.yaml", input, classes, UnreadLayers::kRefused,
                              precision)),
      statistics_(network_),
      execution_(network_, rounded_up(samples)),
      weights_(network_.parameters().weights_size()),
      samples_(draw(std::size_t{1} * static_cast<std::size_t>(samples * input.features()), kSeed)) {
  network_.initialise(kSeed, weights_.span());
  for (int i = 0; i < samples; ++i) labels_.push_back(i * 5 % classes);
}

int TrainingRig::columns(int samples) const {
  return rounded_up(samples);
}

void TrainingRig::load(int first, int count, float padding) {
  const int features = network_.input_shape().features(), batch = columns(count);
  std::fill_n(execution_.input(), features * batch, padding);
  for (int f = 0; f < features; ++f) {
    for (int n = 0; n < count; ++n) {
      execution_.input()[f * batch + n] = samples_[static_cast<std::size_t>((first + n) * features + f)];
    }
  }
}

double TrainingRig::forward(int first, int count, float padding) {
  load(first, count, padding);
  const PassKey key{kSeed, 3, static_cast<std::uint32_t>(first)};
  execution_.begin_training({.weights = weights_.data(),
                             .batch = columns(count),
                             .samples = count,
                             .key = key,
                             .statistics = &statistics_});
  batch_samples_ = count;
  const std::vector<Cut> cuts = cuts_of(network_);
  for (const Cut& cut : cuts) {
    std::vector<std::int64_t> words(cut.over_batch->words());
    execution_.forward_to_cut(words.data());
    cut.over_batch->finish_forward_sums(words.data(), count, statistics_.of(cut.layer));
  }
  execution_.forward_to_cut(nullptr);
  dlogits_ = execution_.logits();
  LossSums sums;
  cpu::loss_and_gradient({columns(count), count, network_.classes()}, dlogits_, labels_.data() + first,
                         dlogits_, &sums);
  return sums.loss;
}

std::vector<float> TrainingRig::backward(const OnReady& on_ready) {
  std::vector<float> gradients(network_.parameters().size, -999.0F);
  const GradientReady ready = [&](std::size_t offset, std::size_t size, const GradientTerms& /*terms*/) {
    if (on_ready) on_ready(offset, size, gradients.data());
  };
  const BetweenLayers nothing;
  const BackwardTarget target{gradients.data(), ready, nothing};
  execution_.begin_backward(dlogits_);
  std::vector<Cut> cuts = backward_cuts_of(network_);
  for (; !cuts.empty(); cuts.pop_back()) {
    const Cut& cut = cuts.back();
    std::vector<std::int64_t> words(cut.over_batch->words());
    execution_.backward_to_cut(target, words.data());
    cut.over_batch->finish_backward_sums(words.data(), batch_samples_, statistics_.of(cut.layer));
  }
  execution_.backward_to_cut(target, nullptr);
  return gradients;
}

}  // namespace lockstep::test
