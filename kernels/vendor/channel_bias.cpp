// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Adding a bias to every channel, and its gradient.
#include "kernels/vendor/channel_bias.hpp"

namespace lockstep::vendor {

ChannelBias::ChannelBias(int batch, const ImageShape& output)
    : y_size_(static_cast<std::size_t>(batch) * static_cast<std::size_t>(output.features())),
      y_(describe_tensor(batch, output)),
      b_(describe_tensor(1, {output.channels, 1, 1})) {}

void ChannelBias::add(StreamContext& context, const float* b, float* y) const {
  LOCKSTEP_CUDNN(cudnnAddTensor(context.cudnn(), &kOne, b_.get(), b, &kOne, y_.get(), y));
}

void ChannelBias::gradient(StreamContext& context, const float* dy, float* db) const {
  LOCKSTEP_CUDNN(cudnnConvolutionBackwardBias(
      context.cudnn(), &kOne, y_.get(), context.aligned(Scratch::kDy, dy, y_size_), &kZero, b_.get(), db));
}

}  // namespace lockstep::vendor
