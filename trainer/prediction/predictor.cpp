// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Predictor: gathers pictures into batches and passes them forward.
#include "trainer/prediction/predictor.hpp"

#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep {

Predictor::Predictor(const SavedModel& model)
    : model_(model), ops_(cpu::make_ops()), execution_(model.network, *ops_, kBatch) {}

std::vector<std::vector<float>> Predictor::predict(std::span<const Picture> pictures) {
  std::vector<std::vector<float>> probabilities;
  for (std::size_t begin = 0; begin < pictures.size(); begin += kBatch)
    predict_batch(pictures.subspan(begin, std::min<std::size_t>(kBatch, pictures.size() - begin)),
                  probabilities);
  return probabilities;
}

void Predictor::predict_batch(std::span<const Picture> pictures,
                              std::vector<std::vector<float>>& probabilities) {
  const int samples = static_cast<int>(pictures.size()), multiple = ops_->batch_multiple();
  const int batch = (samples + multiple - 1) / multiple * multiple;
  std::vector<std::uint8_t> pixels;
  for (const Picture& picture : pictures) LOCKSTEP_CHECK(picture.shape() == model_.network.input_shape());
  for (const Picture& picture : pictures)
    pixels.insert(pixels.end(), picture.pixels.begin(), picture.pixels.end());
  std::vector<std::int32_t> order(pictures.size());
  std::iota(order.begin(), order.end(), 0);
  const DatasetOptions& data = model_.data.options;
  const ImageShape& shape = model_.network.input_shape();
  const ChannelScales scales = scales_of({.mean = data.mean, .std = data.std}, shape.channels);
  const GatherShape gather{
      .batch = batch, .samples = samples, .features = shape.features(), .channels = shape.channels};
  ops_->gather_images(gather, pixels.data(), order.data(), scales.scale.data(), scales.shift.data(),
                      execution_.input());
  float* logits = execution_.forward_evaluation(model_.weights.data(), batch);
  const int classes = model_.network.classes();
  ops_->log_softmax({.batch = batch, .samples = samples, .classes = classes}, logits, logits);
  for (int s = 0; s < samples; ++s) {
    std::vector<float>& of_sample = probabilities.emplace_back();
    for (int c = 0; c < classes; ++c) of_sample.push_back(std::exp(logits[c * batch + s]));
    if (std::ranges::all_of(of_sample, [](float p) { return std::isfinite(p); })) continue;
    throw InternalError(
        fmt::format("{}: the network's outputs for a picture are NaN or infinite, since its weights are too "
                    "large; use an "
                    "earlier checkpoint, or train again with a smaller train.optimizer.lr",
                    model_.checkpoint));
  }
}

}  // namespace lockstep
