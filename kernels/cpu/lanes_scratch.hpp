// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Scratch memory of the CPU kernels.
#pragma once

#include "common/buffers.hpp"

#include <cstddef>

namespace lockstep::cpu {

/// A buffer that grows and is never given back. Kernels keep one for each purpose, as a thread_local.
class Scratch {
 public:
  /// At least `size` floats on a 64-byte line, valid until the next call; their contents are unspecified.
  float* floats(std::size_t size) {
    if (buffer_.size() < size) buffer_ = AlignedBuffer<float>(size);
    return buffer_.data();
  }

 private:
  AlignedBuffer<float> buffer_;
};

}  // namespace lockstep::cpu
