// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The bias of a convolution or linear layer by cuDNN.
#pragma once

#include "kernels/vendor/owners.hpp"
#include "kernels/vendor/stream_context.hpp"

#include <cstddef>

namespace lockstep::vendor {

class ChannelBias {
 public:
  ChannelBias(int batch, const ImageShape& output);
  /// y[n][k][p][q] += b[k]; b is_aligned()
  void add(StreamContext& context, const float* b, float* y) const;
  /// db[k] = sum of dy[n][k][p][q], overwritten, always in the same order.
  void gradient(StreamContext& context, const float* dy, float* db) const;

 private:
  std::size_t y_size_;
  TensorDescriptor y_, b_;
};

}  // namespace lockstep::vendor
