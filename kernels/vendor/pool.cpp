// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Max and average pools in both directions.
#include "kernels/vendor/pool.hpp"

namespace lockstep::vendor {

Pool::Pool(const Pool2dShape& shape, cudnnPoolingMode_t mode)
    : x_(describe_tensor(shape.batch, {shape.channels, shape.in_height, shape.in_width})),
      y_(describe_tensor(shape.batch, {shape.channels, shape.out_height(), shape.out_width()})),
      pool_(describe_pool(shape, mode)) {}

void Pool::forward(StreamContext& context, const float* x, float* y) const {
  LOCKSTEP_CUDNN(cudnnPoolingForward(context.cudnn(), pool_.get(), &kOne, x_.get(), x, &kZero, y_.get(), y));
}

void Pool::backward(StreamContext& context, const float* x, const float* y, const float* dy,
                    float* dx) const {
  LOCKSTEP_CUDNN(cudnnPoolingBackward(context.cudnn(), pool_.get(), &kOne, y_.get(), y, y_.get(), dy,
                                      x_.get(), x, &kZero, x_.get(), dx));
}

}  // namespace lockstep::vendor
