// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which one a device and its kernels have, and what people are told of each.
#include "trainer/engine/arithmetic.hpp"

#include <fmt/format.h>

namespace lockstep {

Arithmetic arithmetic_of(const ParallelSection& parallel, const DeviceChoice& device) {
  const bool vendor = device.gpu != nullptr && parallel.kernels == Kernels::kVendor;
  return vendor ? Arithmetic::kVendor : Arithmetic::kCanonical;
}

std::string describe(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kVendor:
      return "that of cuDNN and cuBLAS";
    case Arithmetic::kCanonical:
      return fmt::format("version {}", kArithmeticVersion);
  }
  return fmt::format("version {}, which this program does not know", static_cast<std::uint32_t>(arithmetic));
}

std::string how_to_have(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kVendor:
      return "--device cuda --kernels vendor, on such a GPU";
    case Arithmetic::kCanonical:
      return "the kernels of this program: leave out --kernels vendor";
  }
  return "the version that made it";
}

}  // namespace lockstep
