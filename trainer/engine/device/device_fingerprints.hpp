// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The fingerprints of the steps of a series (trainer/engine/step_fingerprints.hpp), computed in device memory and
/// fetched together.
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

/// Where the buffers of the steps lie, in device memory.
struct FingerprintedBuffers {
  const std::int64_t* sums = nullptr;   ///< [parameters held]
  const float* weights = nullptr;       ///< with what is kept behind the parameters
  std::vector<const float*> optimizer;  ///< each [parameters held]
  const StepState* state = nullptr;
};

/// What they take of the device. @param steps  of the longest series
std::uint64_t device_fingerprint_bytes(const ParameterLayout& parameters, std::size_t optimizer_buffers,
                                       std::int64_t steps);

class DeviceFingerprints {
 public:
  /// @param layout  of the whole network
  /// @param held    the tensors in the buffers
  /// @param steps   of the longest series
  DeviceFingerprints(Device& device, Stream& stream, const FingerprintLayout& layout,
                     const std::vector<HeldTensor>& held, const FingerprintedBuffers& buffers,
                     std::int64_t steps);

  // All are queued.
  void zero(Stream& stream) { stream.fill_zero(rows_.data(), rows_.bytes()); }
  /// Before the update of a step; may be captured.
  void add_step(DeviceOps& ops, Stream& stream);
  void fetch(Stream& stream) { stream.copy_to_host(host_rows_.data(), rows_.data(), rows_.bytes()); }

  /// After the stream has come to fetch(): appends the rows of the first steps of the series.
  void append(std::int64_t steps, std::vector<std::uint64_t>& rows) const;

 private:
  std::size_t slots_;
  DeviceBuffer<FingerprintPart> parts_;
  DeviceBuffer<std::int64_t> rows_;  ///< [steps][slots]
  PinnedBuffer<std::int64_t> host_rows_;
  const StepState* state_;
};

}  // namespace lockstep
