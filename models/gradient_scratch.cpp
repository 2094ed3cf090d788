// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// GradientScratch: a layer's terms, where there are several, and their sum.
#include "models/gradient_scratch.hpp"

#include "models/layer.hpp"

#include <algorithm>

namespace lockstep {

GradientTerms GradientScratch::backward_weights(const Layer& layer, const LayerPass& pass,
                                                const LayerTensors& tensors) {
  layer.backward_weights(pass, begin(layer, pass.grain, tensors));
  return finish(layer, pass, tensors);
}

LayerTensors GradientScratch::begin(const Layer& layer, int grain, const LayerTensors& tensors) {
  const auto count = static_cast<std::size_t>(layer.gradient_terms(grain));
  if (count == 1) return tensors;
  const std::size_t size = layer.parameter_size();
  if (terms_.size() < size * count) terms_ = AlignedBuffer<float>(size * count);
  LayerTensors of_terms = tensors;
  of_terms.gradients = terms_.data();
  of_terms.term_stride = size;
  return of_terms;
}

GradientTerms GradientScratch::finish(const Layer& layer, const LayerPass& pass,
                                      const LayerTensors& tensors) {
  const int count = layer.gradient_terms(pass.grain);
  if (count == 1) return {.first = tensors.gradients};
  const std::size_t size = layer.parameter_size();
  const GradientTerms terms{.first = terms_.data(), .count = count, .stride = size};
  std::copy_n(terms.first, size, tensors.gradients);
  for (int t = 1; t < count; ++t) pass.ops.accumulate(size, terms.term(t), tensors.gradients);
  return terms;
}

}  // namespace lockstep
