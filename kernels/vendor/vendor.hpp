// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops of a GPU by cuDNN and cuBLAS: what the hand-written kernels are measured against. They live in
/// lockstep_vendor.so, which is loaded when it is asked for. No CUDA header is needed.
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_ops.hpp"

#include <memory>

namespace lockstep {

/// Choice of a library's algorithms for convolutions. All compute in fp32 without TF32.
enum class VendorAlgorithms {
  /// The library's first choice among those that add plain products in an order that never changes.
  /// Shape and GPU decide, nothing is timed.
  kReproducible,
  /// The fastest one when tried: Winograd, FFT, atomic additions. For benchmarks.
  kFastest,
};

/// Tensors are [sample][channel][row][column]; masks and argmax likewise.
///
/// By the libraries: convolutions, matrix products, biases, average pools. By the hand-written kernels, in
/// this layout: gather, epilogues, max pools (cuDNN keeps no argmax), loss, exact sums, update. Gradients of
/// parameters are computed grain by grain, each added to the exact sums once.
///
/// The first call for each shape on each stream allocates, so it cannot be captured in a graph. Every stream
/// has separate memory; streams may run side by side.
class VendorOps : public virtual DeviceOps {
 public:
  bool batch_innermost() const override { return false; }

  // A library's call alone, for benchmarks: no bias, no epilogue, no grains, no exact sums. (Data gradients
  // without expansion and average pools are that anyway.) Queued, outputs overwritten, as all ops.
  virtual void conv2d_forward_alone(Stream&, const Conv2dShape&, const float* x, const float* w,
                                    float* y) = 0;
  virtual void conv2d_backward_weights_alone(Stream&, const Conv2dShape&, const float* x, const float* dy,
                                             float* dw) = 0;
  virtual void linear_forward_alone(Stream&, const LinearShape&, const float* x, const float* w,
                                    float* y) = 0;
  virtual void linear_backward_weights_alone(Stream&, const LinearShape&, const float* x, const float* dy,
                                             float* dw) = 0;
  virtual void max_pool_forward_alone(Stream&, const Pool2dShape&, const float* x, float* y) = 0;
  virtual void max_pool_backward_alone(Stream&, const Pool2dShape&, const float* x, const float* y,
                                       const float* dy, float* dx) = 0;
  /// probabilities [batch, classes]
  virtual void softmax_alone(Stream&, const LossShape&, const float* logits, float* probabilities) = 0;
};

/// Loads the libraries. Borrows the device.
/// @throws DeviceError  one line with what to do. The device is no GPU, or the plugin, cuDNN or cuBLAS is
///                      missing or cannot be used
std::unique_ptr<VendorOps> make_vendor_ops(Device& device,
                                           VendorAlgorithms algorithms = VendorAlgorithms::kReproducible);

}  // namespace lockstep

/// The function that lockstep_vendor.so exports. The caller owns the result.
extern "C" lockstep::VendorOps* lockstep_make_vendor_ops(lockstep::Device& device,
                                                         lockstep::VendorAlgorithms algorithms);
