// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// State that a rank trains on a GPU, of a whole network or of a part of it. That is weights, optimiser state, and
/// gradients as exact sums.
#pragma once

#include "comm/device/device_gradient_reducer.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "kernels/device.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/device_fingerprints.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/device_update.hpp"
#include "kernels/step_state.hpp"
#include "models/arena.hpp"
#include "models/device/device_execution.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/training/setup.hpp"
#include "trainer/training/weight_update.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

// A StepState in device memory, and what the host writes and reads of it.

class DeviceState {
 public:
  explicit DeviceState(Device& device) : device_(device, 1), host_(device, 1) {}

  /// Device memory.
  StepState* data() const { return device_.data(); }
  // Queued on the stream; until it has come that far, neither may be called again.
  void queue_to_device(Stream& stream, const StepState& state) {
    host_[0] = state;
    stream.copy_to_device(device_.data(), host_.data(), device_.bytes());
  }
  void queue_to_host(Stream& stream) { stream.copy_to_host(host_.data(), device_.data(), device_.bytes()); }
  /// The state that was copied last.
  const StepState& host() const { return host_[0]; }

 private:
  DeviceBuffer<StepState> device_;
  PinnedBuffer<StepState> host_;
};

// The fingerprints of the steps of a series (trainer/training/fingerprints.hpp). They are computed in device memory,
// for the most part by the update, and fetched together.

/// Bytes that they take of the device. @param steps  of the longest series
std::uint64_t device_fingerprint_bytes(const ParameterLayout& parameters, std::size_t optimizer_buffers,
                                       std::int64_t steps);

class DeviceFingerprints {
 public:
  /// @param layout   of the whole network
  /// @param held     the tensors of the update, which follow one another, then those that are only kept
  /// @param weights  in device memory; what is kept is after the parameters
  /// @param averages  the last ones of the buffers, which no update reads; in device memory
  /// @param state    likewise
  /// @param steps    of the longest series
  DeviceFingerprints(Device& device, Stream& stream, const FingerprintLayout& layout,
                     const std::vector<HeldTensor>& held, const float* weights,
                     const std::vector<const float*>& averages, const StepState* state, std::int64_t steps);

  // All are queued.
  void zero(Stream& stream) { stream.fill_zero(rows_.data(), rows_.bytes()); }
  /// Adds what the update of a step does not read; before it; may be captured.
  void add_kept(DeviceOps& ops, Stream& stream);
  void fetch(Stream& stream) { stream.copy_to_host(host_rows_.data(), rows_.data(), rows_.bytes()); }

  /// For the updates.
  StepFingerprints of_update() const;

  /// After the stream has reached fetch(): appends the rows of the first steps of the series.
  void append(std::int64_t steps, std::vector<std::uint64_t>& rows) const;

 private:
  std::size_t slots_;
  DeviceBuffer<FingerprintTensor> tensors_;
  DeviceBuffer<std::int32_t> tensor_of_;
  DeviceBuffer<KeptPart> kept_;
  DeviceBuffer<std::int64_t> rows_;  ///< [steps][slots]
  PinnedBuffer<std::int64_t> host_rows_;
  const StepState* state_;
};

class DeviceArena {
 public:
  /// Borrows all references but the part. At least one parameter.
  /// @param stream      on which everything is queued
  /// @param all_reduce  over the ranks that train the same; null: there is one
  /// @param steps       of the longest series
  DeviceArena(const ArenaPart& part, const Gpu& gpu, Stream& stream, DeviceState& state,
              DeviceAllReduce* all_reduce, std::int64_t steps);

  const WeightUpdate& weight_update() const { return update_; }

  float* weights() { return weights_.data(); }
  /// Its weights and what the optimiser remembers are copies on the host.
  TrainedState state() { return {host_weights_.span(), host_buffers_.views(), units_}; }
  void queue_state_to_host();
  void queue_state_to_device();
  /// Device memory [kCounterSlots]; they travel with the sums.
  std::int64_t* counters() { return sums_.data(); }
  /// Sums to which passes add the gradients of all parameters; borrowed, until use_units().
  DeviceGradient gradient(int grain);
  DeviceGradientReducer& reducer() { return reducer_; }
  const DeviceGradientReducer& reducer() const { return reducer_; }

  /// The units of the sums; after a change, use_units() makes all that is queued from then on use them.
  GradientUnits& units() { return units_; }
  void use_units();

  /// Drops what gradients left in the sums.
  void queue_zero_sums();
  /// Zeroes the rows of the series that begins, if fingerprints are kept. The other fetches those of the one that has
  /// ended.
  void queue_zero_rows() {
    if (fingerprints_) fingerprints_->zero(stream_);
  }
  void queue_rows_to_host() {
    if (fingerprints_) fingerprints_->fetch(stream_);
  }
  /// Once the stream has come that far.
  void append_rows(std::int64_t steps, std::vector<std::uint64_t>& rows) const {
    if (fingerprints_) fingerprints_->append(steps, rows);
  }
  /// If the gradient is clipped by its norm: measures it, as far as this arena has it. The sums are complete.
  void queue_gradient_norm();
  /// For a part of the network: gets its tensors' sums of squares, which waits for the stream. Then queues the clip
  /// factor for the whole network's norm. The latter may not be called again before the stream has come that far.
  std::vector<double> gradient_squares();
  void queue_clip_factor(double norm);
  /// Moves the weights and advances the state; the sums are complete.
  void queue_update();
  /// Behind the last step of an epoch: the averages that the update leaves alone. @param step  taken before that one
  void queue_averages(std::int64_t step);

  // For the few steps that need them; these wait for the stream.
  /// Refusals of this rank since the sums were last zeroed by queue_zero_sums().
  std::vector<TensorRefusals> own_refusals();
  /// Largest sums of each tensor, over all ranks once the step is reduced: see GradientUnits::refine().
  std::vector<double> largest_sums();

 private:
  void make_optimizer_memory();
  void make_clip_memory();
  UpdateArgs update_args() const;
  /// @param state  as AverageArgs has it
  void queue_average(std::size_t i, float share, const StepState* state);
  std::vector<double> largest_fp32_sums();

  const Gpu& gpu_;
  Stream& stream_;
  WeightUpdate update_;
  DeviceState& state_;
  GradientUnits units_;
  std::vector<ExactFormat> formats_;  ///< for the units in use
  std::size_t parameters_;
  AlignedBuffer<float> host_weights_;
  OptimizerBuffers host_buffers_;
  DeviceBuffer<float> weights_;
  std::vector<DeviceBuffer<float>> buffers_;
  DeviceBuffer<UpdateTensor> ranges_;  ///< empty where the update treats all ranges alike
  DeviceBuffer<std::int32_t> range_of_;
  DeviceBuffer<TensorFactors> factors_;
  // Clipping the gradient by its norm needs these; otherwise they are empty.
  DeviceBuffer<UpdateTensor> measured_;  ///< all tensors; those that are frozen, of no elements
  DeviceBuffer<double> squares_;
  DeviceBuffer<float> clip_factor_;
  PinnedBuffer<float> host_clip_factor_;
  DeviceBuffer<std::int64_t> sums_;       ///< [kCounterSlots + parameters]
  DeviceBuffer<std::int64_t> refusals_;   ///< [tensors][kRefusalKinds]
  DeviceBuffer<std::int16_t> exponents_;  ///< [parameters]; empty while all units are the first ones
  DeviceGradientReducer reducer_;
  std::optional<DeviceFingerprints> fingerprints_;  ///< for the trail
};

}  // namespace lockstep
