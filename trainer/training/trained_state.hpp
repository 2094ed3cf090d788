// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// State that training changes: weights, optimiser state, the units of their gradients.
#pragma once

#include "comm/reduce/gradient_units.hpp"
#include "common/buffers.hpp"
#include "trainer/training/options.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A named buffer of the optimiser, in arena order.
struct OptimizerBufferView {
  std::string name;
  std::span<float> values;
};

/// Buffers on the host, for a CPU to work on or for the way to and from a device. All zeros at the start.
class OptimizerBuffers {
 public:
  OptimizerBuffers(const std::vector<std::string>& names, std::size_t parameters);

  std::vector<OptimizerBufferView> views();
  std::size_t count() const { return names_.size(); }
  std::span<float> values(std::size_t i) { return values_[i].span(); }
  /// As cpu::update takes them.
  float* const* pointers() const { return pointers_.data(); }

 private:
  std::vector<std::string> names_;
  std::vector<AlignedBuffer<float>> values_;
  std::vector<float*> pointers_;
};

/// The numbers that a checkpoint is of: the host's weights, what the optimiser remembers, units.
struct TrainedState {
  std::span<float> weights;
  std::vector<OptimizerBufferView> optimizer;
  GradientUnits& units;
};

/// How many buffers an optimiser and averages of weights have, for those who count memory.
std::size_t optimizer_buffers(const UpdateOptions& options);

}  // namespace lockstep
