// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Buffers by name, and how many there are.
#include "trainer/training/trained_state.hpp"

#include "trainer/training/optimizers/optimizers.hpp"
#include "trainer/training/weight_averages.hpp"

namespace lockstep {

OptimizerBuffers::OptimizerBuffers(const std::vector<std::string>& names, std::size_t parameters)
    : names_(names) {
  for (std::size_t i = 0; i < names.size(); ++i) values_.emplace_back(parameters);
  for (AlignedBuffer<float>& values : values_) pointers_.push_back(values.data());
}

std::vector<OptimizerBufferView> OptimizerBuffers::views() {
  std::vector<OptimizerBufferView> views;
  for (std::size_t i = 0; i < names_.size(); ++i) views.push_back({names_[i], values_[i].span()});
  return views;
}

std::size_t optimizer_buffers(const UpdateOptions& options) {
  return find_optimizer(options.optimizer).buffers(options.optimizer).size() +
         WeightAverages(options, 1).count();
}

}  // namespace lockstep
