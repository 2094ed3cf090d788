// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads cuda:N and the plain names.
#include "trainer/config/device_name.hpp"

#include <charconv>

namespace lockstep {

std::optional<DeviceName> parse_device_name(std::string_view text) {
  if (text == "auto") return DeviceName{DeviceKind::kAuto, {}};
  if (text == "cpu") return DeviceName{DeviceKind::kCpu, {}};
  if (text == "cuda") return DeviceName{DeviceKind::kCuda, {}};
  if (text == "emulated") return DeviceName{DeviceKind::kEmulated, {}};
  constexpr std::string_view kPrefix = "cuda:";
  constexpr int kMostDevices = 1000;
  if (!text.starts_with(kPrefix)) return std::nullopt;
  int index = -1;
  const auto [end, error] = std::from_chars(text.data() + kPrefix.size(), text.data() + text.size(), index);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || index < 0 || index >= kMostDevices) return std::nullopt;
  return DeviceName{DeviceKind::kCuda, index};
}

}  // namespace lockstep
