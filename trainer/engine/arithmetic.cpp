// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/engine/arithmetic.hpp"

#include <fmt/format.h>

namespace lockstep {

Arithmetic arithmetic_of(const ParallelSection& parallel, const DeviceChoice& device) {
  if (device.gpu == nullptr) return Arithmetic::kCpu;
  return parallel.kernels == "vendor" ? Arithmetic::kVendor : Arithmetic::kDevice;
}

std::string describe(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kCpu:
      return "the CPU's";
    case Arithmetic::kDevice:
      return "that of the GPU kernels";
    case Arithmetic::kVendor:
      return "that of cuDNN and cuBLAS";
  }
  return fmt::format("number {}, which this version does not know", static_cast<std::uint32_t>(arithmetic));
}

std::string how_to_have(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kCpu:
      return "--device cpu";
    case Arithmetic::kDevice:
      return "--device emulated, or cuda where there is a GPU";
    case Arithmetic::kVendor:
      return "--device cuda --kernels vendor, on such a GPU";
  }
  return "the version that made it";
}

}  // namespace lockstep
