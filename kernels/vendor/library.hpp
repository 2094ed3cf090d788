// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The layers in cuDNN's and cuBLAS's terms, made when they are first used and kept, and a context for each
/// stream.
#pragma once

#include "kernels/vendor/conv2d.hpp"
#include "kernels/vendor/linear.hpp"
#include "kernels/vendor/pool.hpp"
#include "kernels/vendor/stream_context.hpp"

#include <array>
#include <map>

namespace lockstep::vendor {

class Library {
 public:
  /// Borrows the device.
  /// @throws DeviceError if the libraries cannot be used on it
  Library(Device& device, VendorAlgorithms algorithms);

  /// What the stream's work is queued with. Makes the device the calling thread's current one.
  StreamContext& on(Stream& stream);
  /// The same for work that needs nothing of the libraries: no context is made.
  cudaStream_t handle_of(Stream& stream);

  Conv2d& layer(const Conv2dShape& shape);
  Linear& layer(const LinearShape& shape);
  Pool& pool(const Pool2dShape& shape, cudnnPoolingMode_t mode);

 private:
  Device& device_;
  VendorAlgorithms algorithms_;
  std::map<cudaStream_t, StreamContext> contexts_;
  std::map<std::array<int, 9>, Conv2d> convolutions_;
  std::map<std::array<int, 3>, Linear> linears_;
  std::map<std::array<int, 8>, Pool> pools_;
};

}  // namespace lockstep::vendor
