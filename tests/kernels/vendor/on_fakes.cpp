// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The emulator and fake libraries.
#include "kernels/vendor/vendor.hpp"
#include "tests/kernels/vendor/vendor_rig.hpp"

namespace lockstep::test {

std::unique_ptr<VendorOps> vendor_ops_under_test(Device& device, VendorAlgorithms algorithms) {
  return std::unique_ptr<VendorOps>(lockstep_make_vendor_ops(device, algorithms));
}

std::vector<int> batches_under_test() {
  return {1, 5};
}

}  // namespace lockstep::test
