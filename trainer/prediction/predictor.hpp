// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A trained network as `lockstep predict` uses it, on one core.
#pragma once

#include "data/picture.hpp"
#include "kernels/cpu/cpu_ops.hpp"
#include "models/network.hpp"
#include "trainer/run/saved_model.hpp"

#include <memory>
#include <span>
#include <vector>

namespace lockstep {

class Predictor {
 public:
  /// @param model  must outlive this
  explicit Predictor(const SavedModel& model);

  /// Probability of each class, for each picture. Pictures have the shape that the network was trained on.
  std::vector<std::vector<float>> predict(std::span<const Picture> pictures);

 private:
  /// At most kBatch at a time.
  void predict_batch(std::span<const Picture> pictures, std::vector<std::vector<float>>& probabilities);

  static constexpr int kBatch = 64;
  const SavedModel& model_;
  std::unique_ptr<Ops> ops_;
  Execution execution_;
};

}  // namespace lockstep
