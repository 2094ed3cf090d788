// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads cuda:N and the plain names.
#include "trainer/config/device_name.hpp"

#include "common/yaml/strict_yaml.hpp"

#include <fmt/format.h>

#include <array>
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

std::string device_hint(const std::string& text) {
  for (const std::string_view gpu : {"gpu", "GPU", "nvidia", "cuda"}) {
    if (!text.starts_with(gpu)) continue;
    std::string index = text.substr(gpu.size());
    if (index.starts_with(':')) index.erase(0, 1);
    const std::string meant = index.empty() ? "cuda" : "cuda:" + index;
    if (parse_device_name(meant)) return fmt::format(" (did you mean '{}'?)", meant);
  }
  constexpr std::array<std::string_view, 4> kNames = {"auto", "cpu", "cuda", "emulated"};
  return did_you_mean(text, kNames);
}

}  // namespace lockstep
