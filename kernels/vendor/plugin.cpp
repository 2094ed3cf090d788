// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The one function of lockstep_vendor.so.
#include "common/error.hpp"
#include "kernels/vendor/vendor.hpp"

LOCKSTEP_PLUGIN_TAKES_SPELLING

lockstep::VendorOps* lockstep_make_vendor_ops(lockstep::Device& device,
                                              lockstep::VendorAlgorithms algorithms) {
  return lockstep::vendor::make_ops(device, algorithms).release();
}
