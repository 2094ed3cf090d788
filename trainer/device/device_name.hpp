// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Names of devices, as jobs, commands and programs give them.
#pragma once

#include "common/env.hpp"

#include <optional>
#include <string_view>

namespace lockstep {

enum class DeviceKind { kAuto, kCpu, kCuda, kEmulated };

struct DeviceName {
  DeviceKind kind = DeviceKind::kAuto;
  std::optional<int> index = {};  ///< N of cuda:N
};

/// Accepted names, for messages.
inline constexpr std::string_view kDeviceNames = "auto, cpu, cuda, cuda:N or emulated";

/// nullopt if the text is none of them.
inline std::optional<DeviceName> parse_device_name(std::string_view text) {
  if (text == "auto") return DeviceName{DeviceKind::kAuto};
  if (text == "cpu") return DeviceName{DeviceKind::kCpu};
  if (text == "cuda") return DeviceName{DeviceKind::kCuda};
  if (text == "emulated") return DeviceName{DeviceKind::kEmulated};
  constexpr std::string_view kPrefix = "cuda:";
  constexpr int kMostDevices = 1000;
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const auto index = parse_whole<int>(text.substr(kPrefix.size()));
  if (!index || *index < 0 || *index >= kMostDevices) return std::nullopt;
  return DeviceName{DeviceKind::kCuda, index};
}

}  // namespace lockstep
