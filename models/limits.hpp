// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The largest networks there are: bounds that keep every size within int and every offset within what one
/// MPI call can send. docs/models.md states them, and so does each error.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

inline constexpr int kMaxKernel = 1024;
inline constexpr int kMaxPoolKernel = 15;  ///< the position in a window fits in a byte, as max_pool stores it
inline constexpr int kMaxOutputs = 1 << 20;
inline constexpr int kMaxClasses = kMaxOutputs;
inline constexpr std::uint64_t kMaxFeatures = 1 << 24;       ///< of the input or of one layer, for one sample
inline constexpr std::uint64_t kMaxParameters = 2147483647;  ///< of one network
inline constexpr std::size_t kMaxLayers = 1024;

// On a GPU a kernel numbers elements with 31 bits, and the blocks of a grid with 16: see check_device_limits.
inline constexpr std::uint64_t kMaxDeviceElements =
    2147483647;                                             ///< of a tensor, all samples of a rank together
inline constexpr int kMaxDeviceSide = 65535;                ///< channels and height of a convolution
inline constexpr std::int64_t kMaxDeviceSamples = 2097120;  ///< of a rank in one step

}  // namespace lockstep
