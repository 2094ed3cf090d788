// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The way into lockstep_vendor.so.
#include "common/error.hpp"
#include "common/installed.hpp"
#include "kernels/vendor/vendor.hpp"

namespace lockstep {

std::unique_ptr<VendorOps> make_vendor_ops(Device& device, VendorAlgorithms algorithms) {
  if (device.kind() != "cuda") {
    throw DeviceError(advice("{kernels}vendor needs a GPU, and this device is ") +
                      std::string(device.kind()) + advice(": use {kernels}native"));
  }
  static const Plugin plugin = {
      .name = "lockstep_vendor", .needs = "cuDNN 9 and cuBLAS", .otherwise = advice("use {kernels}native")};
  const auto make = plugin_function<decltype(lockstep_make_vendor_ops)>(plugin, "lockstep_make_vendor_ops");
  return std::unique_ptr<VendorOps>(make(device, algorithms));
}

}  // namespace lockstep
