// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A StepState in device memory, and what the host writes and reads of it.
#pragma once

#include "kernels/device/device.hpp"
#include "kernels/device/step_state.hpp"

namespace lockstep {

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
  /// What was copied last.
  const StepState& host() const { return host_[0]; }

 private:
  DeviceBuffer<StepState> device_;
  PinnedBuffer<StepState> host_;
};

}  // namespace lockstep
