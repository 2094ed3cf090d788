// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a rank trains on a GPU, of a whole network or of a part of it: weights, what the optimiser remembers of
/// them, and their gradients as exact sums.
#pragma once

#include "comm/device_gradient_reducer.hpp"
#include "comm/gradient_units.hpp"
#include "models/device_execution.hpp"
#include "trainer/engine/device/device_fingerprints.hpp"
#include "trainer/engine/device/device_state.hpp"
#include "trainer/engine/weight_update.hpp"
#include "trainer/ranks/gpu.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

class DeviceArena {
 public:
  /// How the sums of ranks become one.
  struct Reduction {
    DeviceAllReduce* all_reduce = nullptr;  ///< null: this rank has all of it
    const BucketPlan& plan;
    Determinism determinism;
  };

  /// Borrows all references but the layout, the units and the plan, and the all-reduce. At least one parameter.
  /// @param stream  on which everything is queued
  DeviceArena(const Gpu& gpu, Stream& stream, const ParameterLayout& layout, const WeightUpdate& update,
              GradientUnits units, DeviceState& state, const Reduction& reduction);

  /// From now on update() also takes the fingerprints of a step.
  /// @param steps  of the longest series
  void keep_fingerprints(const FingerprintLayout& layout, const std::vector<HeldTensor>& held,
                         std::int64_t steps);
  DeviceFingerprints* fingerprints() { return fingerprints_ ? &*fingerprints_ : nullptr; }

  float* weights() { return weights_.data(); }
  /// The i-th of what the optimiser remembers, [parameters].
  float* buffer(std::size_t i) { return buffers_[i].data(); }
  /// Device memory [kCounterSlots]; they travel with the sums.
  std::int64_t* counters() { return sums_.data(); }
  /// Where passes add the gradients of all parameters; borrowed, until use_units().
  DeviceGradient gradient(int grain);
  DeviceGradientReducer& reducer() { return reducer_; }
  const DeviceGradientReducer& reducer() const { return reducer_; }

  /// The units of the sums; after a change, use_units() makes all that is queued from then on use them.
  GradientUnits& units() { return units_; }
  const GradientUnits& units() const { return units_; }
  void use_units();

  /// Drops what gradients left in the sums.
  void queue_zero_sums();
  /// Moves the weights and advances the state; the sums are complete.
  void queue_update();

  // For the few steps that need them; these wait for the stream.
  /// What this rank refused since the sums were last zeroed by queue_zero_sums().
  std::vector<TensorRefusals> own_refusals();
  /// Of each tensor, over all ranks once the step is reduced: see GradientUnits::refine().
  std::vector<double> largest_sums();

 private:
  void make_optimizer_memory();
  std::vector<double> largest_fp32_sums();

  const Gpu& gpu_;
  Stream& stream_;
  const WeightUpdate& update_;
  DeviceState& state_;
  GradientUnits units_;
  std::vector<ExactFormat> formats_;  ///< of the units in use
  std::size_t parameters_;
  DeviceBuffer<float> weights_;
  std::vector<DeviceBuffer<float>> buffers_;
  DeviceBuffer<UpdateTensor> ranges_;  ///< empty where the update tells no ranges apart
  DeviceBuffer<std::int32_t> range_of_;
  DeviceBuffer<TensorFactors> factors_;
  DeviceBuffer<std::int64_t> sums_;       ///< [kCounterSlots + parameters]
  DeviceBuffer<std::int64_t> refusals_;   ///< [tensors][kRefusalKinds]
  DeviceBuffer<std::int16_t> exponents_;  ///< [parameters]; empty while all units are the first ones
  DeviceGradientReducer reducer_;
  std::optional<DeviceFingerprints> fingerprints_;  ///< for the trail
};

}  // namespace lockstep
