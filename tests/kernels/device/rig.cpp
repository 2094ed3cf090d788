// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/kernels/device/rig.hpp"

namespace lockstep::test {

DeviceRig::DeviceRig()
    : device_(platform_under_test().make_device(0)),
      ops_(platform_under_test().make_ops(*device_)),
      stream_(device_->make_stream()) {}

}  // namespace lockstep::test
