// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A pool of one shape by cuDNN.
#pragma once

#include "kernels/vendor/owners.hpp"
#include "kernels/vendor/stream_context.hpp"

namespace lockstep::vendor {

/// Calls are queued on the context's stream.
class Pool {
 public:
  Pool(const Pool2dShape& shape, cudnnPoolingMode_t mode);
  void forward(StreamContext& context, const float* x, float* y) const;
  /// @param x, y  of the forward call. An average pool does not read them: any memory of their size will do.
  void backward(StreamContext& context, const float* x, const float* y, const float* dy, float* dx) const;

 private:
  TensorDescriptor x_, y_;
  PoolingDescriptor pool_;
};

}  // namespace lockstep::vendor
