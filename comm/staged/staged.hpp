// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums device memory by way of the host. It serves ranks that share a GPU, machines without NCCL, and the emulated
/// device.
#pragma once

#include "comm/device/device_all_reduce.hpp"

#include <memory>

namespace lockstep {

/// Copies to pinned memory, sums with comm.host_all_reduce() and copies back. Large buffers go in pieces of
/// 1 MiB, so that one piece is copied while another one is summed. Borrows both; grows its pinned buffer as
/// needed. Not a collective call.
std::unique_ptr<DeviceAllReduce> make_staged_all_reduce(Communicator& comm, Device& device);

}  // namespace lockstep
