// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What follows a convolution or linear layer within the same kernel, and how a gradient goes back through
/// it.
#pragma once

#include <cstdint>

namespace lockstep {

enum class EpilogueKind : std::uint8_t { kRelu, kDropout, kMaxPool, kAvgPool };

/// One layer of an epilogue.
struct EpilogueStep {
  EpilogueKind kind = EpilogueKind::kRelu;
  // Of dropout; kernels/numerics/random.hpp says which random number decides a unit.
  bool whole_channels = false;  ///< dropout2d: a unit is a channel; otherwise every element is one
  std::uint32_t layer = 0;      ///< DropoutKey::layer
  float probability = 0;        ///< of dropping a unit, in (0, 1)
};

/// relu and dropout in any order and number, around at most one pool, whose window and stride are 2 and whose
/// padding is 0. Runs on [channels, height, width] numbers of each sample; an empty one changes nothing.
///
/// The derivative of an output with respect to each number of its window is either 0 or factor(): one byte
/// for each output, the *mask*, says which. Bit (row * pool + column) is set where the gradient passes.
/// Windows that would overrun are dropped, and so is the gradient of what lies in them alone.
struct Epilogue {
  static constexpr int kMaxSteps = 6;
  EpilogueStep steps[kMaxSteps];
  int count = 0;
  int pool = 1;  ///< 1: no pool among the steps; 2
  std::uint64_t seed = 0;
  std::uint32_t first_sample = 0;  ///< position of column 0 in the global batch

  constexpr int out(int size) const { return size / pool; }
  /// The product of 1 / (1 - p) of the dropouts and of 1 / 4 for an average pool.
  constexpr float factor() const {
    float product = 1;
    for (int i = 0; i < count; ++i) {
      if (steps[i].kind == EpilogueKind::kDropout) product *= 1 / (1 - steps[i].probability);
      if (steps[i].kind == EpilogueKind::kAvgPool) product *= 0.25F;
    }
    return product;
  }
};

/// The way back through an epilogue, as part of the kernel that computes the gradient of its output:
/// dx[c][h][w] = mask bit ? dy[c][h / pool][w / pool] * factor : 0, and 0 in dropped windows.
struct EpilogueBackward {
  int channels = 0, height = 0, width = 0;  ///< of dx: what the epilogue started from
  int pool = 1;
  float factor = 1;
  const std::uint8_t* mask = nullptr;  ///< [channels, height / pool, width / pool, batch]

  constexpr int pooled_height() const { return height / pool; }
  constexpr int pooled_width() const { return width / pool; }
};

}  // namespace lockstep
