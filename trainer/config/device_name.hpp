// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The values of parallel.device.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

enum class DeviceKind { kAuto, kCpu, kCuda, kEmulated };

struct DeviceName {
  DeviceKind kind = DeviceKind::kAuto;
  std::optional<int> index;  ///< of cuda:N
};

/// What all of them look like, for messages.
inline constexpr std::string_view kDeviceNames = "auto, cpu, cuda, cuda:N or emulated";

/// nullopt if the text is none of them.
std::optional<DeviceName> parse_device_name(std::string_view text);

/// " (did you mean 'cuda:1'?)" for "gpu:1" and the like, or a misspelt name; "" for others.
std::string device_hint(const std::string& text);

}  // namespace lockstep
