// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A layer whose passes need sums over the whole global batch, and what it can do beside the others. Such a layer
/// cuts the list: before either of its passes begins, every grain of every rank must have come so far and
/// added its terms.
#pragma once

#include "common/buffers.hpp"
#include "models/network.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

struct DeviceLayerPass;
struct DeviceLayerTensors;
struct LayerPass;
struct LayerTensors;
struct StepState;

/// Words are int64 of which sums are made by adding them up one by one, over grains, threads and ranks.
/// Statistics are what a rank makes of the sums, the same on all ranks; all grains read them in the passes. On a CPU
/// forward ends with LayerTensors::steps, and add_backward_sums begins with them.
class BatchLayer {
 public:
  virtual ~BatchLayer() = default;

  // For each direction.
  virtual std::size_t words() const = 0;
  virtual std::size_t statistics_bytes() const = 0;
  /// A global batch of fewer samples says nothing.
  virtual std::int64_t least_samples() const = 0;

  /// Accumulates the terms of a grain. The tensors are those of the pass that follows, without what it
  /// writes.
  virtual void add_forward_sums(const LayerPass& pass, const LayerTensors& tensors,
                                std::int64_t* words) const = 0;
  virtual void add_backward_sums(const LayerPass& pass, const LayerTensors& tensors,
                                 std::int64_t* words) const = 0;
  /// @param words    summed over the global batch of `samples`
  virtual void finish_forward_sums(const std::int64_t* words, std::int64_t samples,
                                   std::byte* statistics) const = 0;
  virtual void finish_backward_sums(const std::int64_t* words, std::int64_t samples,
                                    std::byte* statistics) const = 0;
  /// Once the step is taken: what the layer keeps of it.
  /// @param kept  this layer's kept tensors
  virtual void move_kept(const std::byte* statistics, float* kept) const = 0;

  // Passes on a device, queued, for all grains of a rank together.

  virtual void device_forward_sums(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                                   std::int64_t* words) const = 0;
  virtual void device_backward_sums(const DeviceLayerPass& pass, const DeviceLayerTensors& tensors,
                                    std::int64_t* words) const = 0;
  virtual void finish_device_forward_sums(const DeviceLayerPass& pass, const std::int64_t* words,
                                          std::int64_t samples, std::byte* statistics) const = 0;
  virtual void finish_device_backward_sums(const DeviceLayerPass& pass, const std::int64_t* words,
                                           std::int64_t samples, std::byte* statistics) const = 0;
  /// Before forward in evaluation: statistics of what is kept.
  virtual void device_use_kept(const DeviceLayerPass& pass, const float* kept,
                               std::byte* statistics) const = 0;
  /// After the update of a step; the state says whether the step was done.
  virtual void device_move_kept(const DeviceLayerPass& pass, const std::byte* statistics,
                                const StepState* state, float* kept) const = 0;
};

/// A layer that cuts the list.
struct Cut {
  std::size_t layer = 0;  ///< its place among all layers
  const BatchLayer* over_batch = nullptr;
};

/// In forward order; none for a network whose grains know nothing of each other.
std::vector<Cut> cuts_of(const Network& network);
/// The most words of a direction that any of them has.
std::size_t most_words(const std::vector<Cut>& cuts);
/// Those at which backward stops, which ends at the first layer with parameters; in forward order.
std::vector<Cut> backward_cuts_of(const Network& network);

/// Memory for the statistics of all cuts.
class BatchStatistics {
 public:
  explicit BatchStatistics(const Network& network);

  /// Null for a layer that is no cut.
  std::byte* of(std::size_t layer);

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  std::vector<std::size_t> offsets_;  ///< one for each layer
  AlignedBuffer<std::byte> memory_;
};

}  // namespace lockstep
