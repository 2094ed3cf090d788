// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One case of `bench kernels` with its memory, ready to be queued natively and by the vendor.
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/vendor/vendor.hpp"
#include "models/layer.hpp"
#include "trainer/tools/bench_memory.hpp"
#include "trainer/tools/kernel_cases.hpp"

#include <variant>

namespace lockstep::bench {

/// Who is measured. Vendors may be null.
struct ComparedOps {
  DeviceOps& native;
  VendorOps* vendor = nullptr;   ///< for whole ops
  VendorOps* fastest = nullptr;  ///< for the library's calls alone
};

/// What is queued for each column of the table; empty: there is no such rival, as for ops of which the vendor
/// has none. A call works on the inputs and outputs of set `call % sets`; weights and sums are the same for
/// all.
struct KernelComparison {
  QueueCall native, vendor, library;
  QueueCall restore;  ///< queued before each call because the op destroys its input; timed on its own, too
};

/// @param sets  at least 1
KernelComparison make_comparison(const KernelCase& kernel, int grain, int sets, const ComparedOps& compared,
                                 BenchMemory& memory);

// The libraries' own calls of a layer, without bias and epilogue, where they have some.

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
