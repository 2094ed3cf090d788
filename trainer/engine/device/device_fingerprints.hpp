// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The fingerprints of the steps of a series (trainer/engine/step_fingerprints.hpp), computed in device memory, for the
/// most part by the update, and fetched together.
#pragma once

#include "kernels/device/device.hpp"
#include "kernels/device/device_ops.hpp"
#include "models/arena.hpp"
#include "trainer/engine/step_fingerprints.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// What they take of the device. @param steps  of the longest series
std::uint64_t device_fingerprint_bytes(const ParameterLayout& parameters, std::size_t optimizer_buffers,
                                       std::int64_t steps);

class DeviceFingerprints {
 public:
  /// @param layout   of the whole network
  /// @param held     the tensors of the update, which follow one another, then those that are only kept
  /// @param weights  in device memory; what is kept is behind the parameters
  /// @param state    likewise
  /// @param steps    of the longest series
  DeviceFingerprints(Device& device, Stream& stream, const FingerprintLayout& layout,
                     const std::vector<HeldTensor>& held, const float* weights, const StepState* state,
                     std::int64_t steps);

  // All are queued.
  void zero(Stream& stream) { stream.fill_zero(rows_.data(), rows_.bytes()); }
  /// Of what the update of a step does not read; before it; may be captured.
  void add_kept(DeviceOps& ops, Stream& stream);
  void fetch(Stream& stream) { stream.copy_to_host(host_rows_.data(), rows_.data(), rows_.bytes()); }

  /// For the updates.
  StepFingerprints of_update() const;

  /// After the stream has come to fetch(): appends the rows of the first steps of the series.
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

}  // namespace lockstep
