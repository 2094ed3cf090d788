// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A job's options for GPUs: which kernels, how steps are queued, how a set comes to them.
#pragma once

#include "common/spelling.hpp"

namespace lockstep {

enum class Kernels { kNative, kVendor };
enum class GraphUse { kOn, kOff };
/// How a set comes to a device. The weights are the same.
enum class OnDevice {
  kAuto,    ///< whole, where that leaves a tenth of the free memory
  kWhole,   ///< copied at the start
  kStream,  ///< its samples ahead of the step that needs them (trainer/device/device_data.hpp)
};

template <>
inline constexpr Spellings<Kernels> kSpellings<Kernels>{
    {{"native", Kernels::kNative}, {"vendor", Kernels::kVendor}}};
template <>
inline constexpr Spellings<GraphUse> kSpellings<GraphUse>{{{"on", GraphUse::kOn}, {"off", GraphUse::kOff}}};
template <>
inline constexpr Spellings<OnDevice, 3> kSpellings<OnDevice>{
    {{"auto", OnDevice::kAuto}, {"whole", OnDevice::kWhole}, {"stream", OnDevice::kStream}}};

}  // namespace lockstep
