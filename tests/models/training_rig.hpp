// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A small network with made-up weights and samples, for tests that run passes.
#pragma once

#include "kernels/cpu/ops.hpp"
#include "models/batch_layer.hpp"
#include "models/execution.hpp"
#include "models/network.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

/// Numbers in [-1, 1), the same for the same seed.
std::vector<float> draw(std::size_t count, std::uint64_t seed);

/// One network, one execution, and a batch of samples [sample][features] with labels.
class TrainingRig {
 public:
  /// @param layers  the YAML after "layers:"
  TrainingRig(const std::string& layers, const ImageShape& input, int classes, int samples,
              Precision precision = Precision::kFp32);

  const Network& network() const { return network_; }
  Execution& execution() { return execution_; }
  AlignedBuffer<float>& weights() { return weights_; }
  /// Columns for that many samples: the next multiple of cpu::kLanes.
  int columns(int samples) const;

  /// Puts samples [first, first + count) into the execution's input; padding columns get `padding`.
  void load(int first, int count, float padding = 0);
  /// Loads and runs these samples, which are the whole global batch for layers that look at it. Loss sum of
  /// the real ones. Keeps the gradient of the logits for backward().
  double forward(int first, int count, float padding = 0);
  /// GradientReady, with the gradients as they are at that moment.
  using OnReady = std::function<void(std::size_t offset, std::size_t size, const float* gradients)>;
  /// After forward(): the gradient sums, arena order.
  std::vector<float> backward(const OnReady& on_ready = {});

 private:
  Network network_;
  BatchStatistics statistics_;
  Execution execution_;
  AlignedBuffer<float> weights_;
  std::vector<float> samples_;
  std::vector<std::int32_t> labels_;
  float* dlogits_ = nullptr;
  std::int64_t batch_samples_ = 0;
};

}  // namespace lockstep::test
