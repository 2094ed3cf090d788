// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A linear layer of one shape by cuBLAS.
#pragma once

#include "kernels/vendor/channel_bias.hpp"

namespace lockstep::vendor {

/// x [N,I]  w [O,I]  y [N,O]. Calls are queued on the context's stream.
class Linear {
 public:
  explicit Linear(const LinearShape& shape);

  std::size_t weight_size() const { return shape_.weight_size(); }
  int batch() const { return shape_.batch; }
  ImageShape input() const { return {shape_.in_features, 1, 1}; }
  ImageShape output() const { return {shape_.out_features, 1, 1}; }
  const ChannelBias& bias() const { return bias_; }

  /// y = w x for each sample
  void forward(StreamContext& context, const float* x, const float* w, float* y) const;
  void backward_data(StreamContext& context, const float* dy, const float* w, float* dx) const;
  void backward_weights(StreamContext& context, const float* x, const float* dy, float* dw) const;

 private:
  LinearShape shape_;
  ChannelBias bias_;
};

}  // namespace lockstep::vendor
