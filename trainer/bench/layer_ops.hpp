// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops of convolutions and of linear layers under one name each; the shape says which. Arguments as in
/// DeviceOps and VendorOps.
#pragma once

#include "kernels/device/device_ops.hpp"
#include "kernels/vendor/vendor.hpp"

namespace lockstep::bench {

template <typename... Arguments>
void forward(DeviceOps& ops, Stream& stream, const Conv2dShape& shape, Arguments... arguments) {
  ops.conv2d_forward(stream, shape, arguments...);
}
template <typename... Arguments>
void forward(DeviceOps& ops, Stream& stream, const LinearShape& shape, Arguments... arguments) {
  ops.linear_forward(stream, shape, arguments...);
}
template <typename... Arguments>
void forward_alone(VendorOps& ops, Stream& stream, const Conv2dShape& shape, Arguments... arguments) {
  ops.conv2d_forward_alone(stream, shape, arguments...);
}
template <typename... Arguments>
void forward_alone(VendorOps& ops, Stream& stream, const LinearShape& shape, Arguments... arguments) {
  ops.linear_forward_alone(stream, shape, arguments...);
}
template <typename... Arguments>
void backward_data(DeviceOps& ops, Stream& stream, const Conv2dShape& shape, Arguments... arguments) {
  ops.conv2d_backward_data(stream, shape, arguments...);
}
template <typename... Arguments>
void backward_data(DeviceOps& ops, Stream& stream, const LinearShape& shape, Arguments... arguments) {
  ops.linear_backward_data(stream, shape, arguments...);
}
template <typename... Arguments>
void backward_weights(DeviceOps& ops, Stream& stream, const Conv2dShape& shape, Arguments... arguments) {
  ops.conv2d_backward_weights(stream, shape, arguments...);
}
template <typename... Arguments>
void backward_weights(DeviceOps& ops, Stream& stream, const LinearShape& shape, Arguments... arguments) {
  ops.linear_backward_weights(stream, shape, arguments...);
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

}  // namespace lockstep::bench
