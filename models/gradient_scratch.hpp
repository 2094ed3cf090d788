// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Room for the terms of one layer's gradients, which an execution has in work.
#pragma once

#include "common/aligned_buffer.hpp"
#include "kernels/gradient_terms.hpp"

namespace lockstep {

class Layer;
struct LayerPass;
struct LayerTensors;

class GradientScratch {
 public:
  /// The layer's backward_weights: tensors.gradients become the fp32 sum of the terms.
  /// @returns the terms, valid until the next call: the gradients themselves, where they are one term
  GradientTerms backward_weights(const Layer& layer, const LayerPass& pass, const LayerTensors& tensors);

  // The same in several calls of the layer's backward_weights, of some channels each.
  /// @returns what the layer must be called with
  LayerTensors begin(const Layer& layer, int grain, const LayerTensors& tensors);
  /// @param tensors  as given to begin()
  GradientTerms finish(const Layer& layer, const LayerPass& pass, const LayerTensors& tensors);

 private:
  AlignedBuffer<float> terms_;
};

}  // namespace lockstep
