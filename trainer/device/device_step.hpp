// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One training step on a GPU as work queued on streams: captured in a graph or not, the same calls.
#pragma once

#include "models/device_execution.hpp"
#include "trainer/config/job.hpp"
#include "trainer/device/device_data.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/device/reduction.hpp"
#include "trainer/job_setup.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace lockstep {

/// A rank's share of a global batch: neighbouring grains.
struct BatchShare {
  int columns = 0;         ///< samples; 0: this rank has no grain in this batch
  std::int64_t first = 0;  ///< position of column 0 in the global batch
  /// Samples of the global batch. A rank can have the same columns in a full batch and in an epoch's last one
  /// while others have not; with this, all ranks agree on which shares are alike.
  std::int64_t batch = 0;
  friend bool operator==(const BatchShare&, const BatchShare&) = default;
};

/// Holds weights, momentum, sums and activations in device memory. What changes from step to step (position,
/// learning rate, stop request) is read from the StepState there, so a queued step has the same arguments
/// each time.
class DeviceStep {
 public:
  /// @param max_columns    of a share
  /// @param global_batch   samples of a full batch, all ranks together
  /// @param global_grains  grains of it
  DeviceStep(const Job& job, const JobSetup& setup, int max_columns, std::int64_t global_batch,
             std::int64_t global_grains);

  /// Gathers the batch, runs forward and backward; with a reduction on streams, that too.
  void queue_gradients(const BatchShare& share);
  /// Moves the weights and advances the state.
  void queue_update();
  Reduction& reduction() { return reduction_; }
  Stream& stream() { return *main_; }

  /// The order of the training samples in the epoch under way; waits until it is there.
  void set_order(std::span<const std::int32_t> order);
  void queue_state_to_device(const StepState& state);
  /// After the stream has come this far, state() is what the device had.
  void queue_state_to_host();
  const StepState& state() const { return host_state_[0]; }

  float* weights() { return weights_.data(); }
  float* momentum() { return momentum_.data(); }

 private:
  void queue_loss_and_backward(float* logits, const DevicePass& pass);

  const Gpu& gpu_;
  int grain_;
  std::uint64_t seed_;
  int classes_;
  std::int64_t global_batch_;
  double loss_limit_;
  float gradient_limit_;
  SgdParams sgd_;
  std::unique_ptr<Stream> main_, side_;
  DeviceData data_;
  DeviceExecution execution_;
  std::size_t parameters_;
  DeviceBuffer<float> weights_, momentum_;
  DeviceBuffer<std::int64_t> sums_;  ///< [kCounterSlots + parameters]
  DeviceBuffer<std::int32_t> order_;
  DeviceBuffer<StepState> state_;
  PinnedBuffer<StepState> host_state_;
  Reduction reduction_;
};

}  // namespace lockstep
