// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The libraries' own calls of a layer, without bias and epilogue, where they have some.
#pragma once

#include "kernels/vendor/vendor.hpp"
#include "models/layer.hpp"

#include <variant>

namespace lockstep::bench {

template <typename... Arguments>
void forward_alone(VendorOps& ops, Stream& stream, const Conv2dShape& shape, Arguments... arguments) {
  ops.conv2d_forward_alone(stream, shape, arguments...);
}
template <typename... Arguments>
void forward_alone(VendorOps& ops, Stream& stream, const LinearShape& shape, Arguments... arguments) {
  ops.linear_forward_alone(stream, shape, arguments...);
}
template <typename... Arguments>
void backward_weights_alone(VendorOps& ops, Stream& stream, const Conv2dShape& shape,
                            Arguments... arguments) {
  ops.conv2d_backward_weights_alone(stream, shape, arguments...);
}
template <typename... Arguments>
void backward_weights_alone(VendorOps& ops, Stream& stream, const LinearShape& shape,
                            Arguments... arguments) {
  ops.linear_backward_weights_alone(stream, shape, arguments...);
}

/// Calls use(shape), for so many samples, if the libraries have calls of their own for this kind of layer.
template <typename Use>
void with_library_shape(const Layer& layer, int batch, const Use& use) {
  std::visit(
      [&](auto op) {
        if constexpr (
            requires { &op.out_features; } || requires { &op.out_channels; }) {
          op.batch = batch;
          use(op);
        }
      },
      layer.op());
}

}  // namespace lockstep::bench
