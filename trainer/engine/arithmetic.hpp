// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which arithmetic computes a run's steps: steps of one can be proved by the same one alone. The numbers stand in
/// trails and keep their meaning; a new order of sums or new cuts get a new number.
#pragma once

#include "kernels/numerics/arithmetic_version.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/device_choice.hpp"

#include <cstdint>
#include <string>

namespace lockstep {

enum class Arithmetic : std::uint32_t {
  kVendor = 0,                      ///< that of cuDNN and cuBLAS
  kCanonical = kArithmeticVersion,  ///< the one of every device (docs/arithmetic.md)
};

/// Of the ranks of a job on this device.
Arithmetic arithmetic_of(const ParallelSection& parallel, const DeviceChoice& device);

/// "version 2"; of a number that this program does not know, that.
std::string describe(Arithmetic arithmetic);
/// What to say to a command that takes --device and --kernels.
std::string how_to_have(Arithmetic arithmetic);

}  // namespace lockstep
