// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Collectives of device memory by way of the host, where staged_all_reduce.hpp sums.
#pragma once

#include "comm/device_collectives.hpp"

#include <memory>

namespace lockstep {

/// Copies to pinned memory, does there what comm/collectives.hpp does, and copies back; each call waits. Borrows both;
/// grows its pinned buffers as needed. Not a collective call.
std::unique_ptr<DeviceCollectives> make_staged_collectives(Communicator& comm, Device& device);

}  // namespace lockstep
