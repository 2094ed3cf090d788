// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Operations that follow a convolution or linear layer within its kernel, and how a gradient goes back through
/// them.
#pragma once

#include "kernels/numerics/random.hpp"  // LOCKSTEP_HOST_DEVICE

#include <cstdint>

namespace lockstep {

enum class EpilogueKind : std::uint8_t { kRelu, kDropout, kMaxPool, kAvgPool };

/// One layer of an epilogue.
struct EpilogueStep {
  EpilogueKind kind = EpilogueKind::kRelu;
  // Dropout's settings; kernels/numerics/random.hpp says which random number decides a unit.
  bool whole_channels = false;  ///< dropout2d: a unit is a channel; otherwise every element is one
  std::uint32_t layer = 0;      ///< DropoutKey::layer
  float probability = 0;        ///< probability of dropping a unit, in (0, 1)
};

/// Factors of a gradient that passes an epilogue, multiplied one after the other. Layers would do so, too, and each
/// rounds.
struct EpilogueFactors {
  static constexpr int kMost = 2;
  float first = 1;   ///< the factor of the last step that scales
  float second = 1;  ///< the factor of the step before it

  LOCKSTEP_HOST_DEVICE constexpr float times(float gradient) const { return gradient * first * second; }
};

/// relu and dropout in any order and number, around at most one pool. The pool's window and stride are 2 and its
/// padding is 0. Runs on [channels, height, width] numbers of each sample; an empty one changes nothing.
///
/// The derivative of an output with respect to each number of its window is 0 or that of factors(). One byte
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
  /// Factors of the steps that scale: 1 / (1 - p) of dropout, 1 / 4 of an average pool. At most two.
  constexpr EpilogueFactors factors() const {
    float of_steps[kMaxSteps] = {1, 1};
    int found = 0;
    for (int i = count; i-- > 0;) {
      if (scales(steps[i].kind)) of_steps[found++] = factor_of(steps[i]);
    }
    return {of_steps[0], of_steps[1]};
  }

  static constexpr bool scales(EpilogueKind kind) {
    return kind == EpilogueKind::kDropout || kind == EpilogueKind::kAvgPool;
  }
  static constexpr float factor_of(const EpilogueStep& step) {
    return step.kind == EpilogueKind::kDropout ? 1 / (1 - step.probability) : 0.25F;
  }
};

/// The backward pass of an epilogue, as part of the kernel that computes the gradient of its output.
/// dx[c][h][w] = mask bit ? dy[c][h / pool][w / pool] * factors : 0, and 0 in dropped windows.
struct EpilogueBackward {
  int channels = 0, height = 0, width = 0;  ///< shape of dx: the epilogue's input
  int pool = 1;
  EpilogueFactors factors;
  const std::uint8_t* mask = nullptr;  ///< [channels, height / pool, width / pool, batch]

  constexpr int pooled_height() const { return height / pool; }
  constexpr int pooled_width() const { return width / pool; }
};

}  // namespace lockstep
