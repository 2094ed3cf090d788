// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The ops of a device by cuDNN and cuBLAS: the oracle of the native kernels, and their rival in benchmarks.
#pragma once

#include "kernels/vendor/vendor.hpp"

#include <memory>

namespace lockstep::vendor {

/// What the plugin's function returns: lockstep::make_vendor_ops() without loading anything.
std::unique_ptr<VendorOps> make_ops(Device& device, VendorAlgorithms algorithms);

}  // namespace lockstep::vendor
