// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What lockstep_nccl.so exports.
#pragma once

#include "comm/device_all_reduce.hpp"
#include "comm/device_collectives.hpp"
#include "comm/device_link.hpp"

/// See nccl_shares_gpus().
extern "C" bool lockstep_nccl_shares_gpus();
/// See make_nccl_all_reduce(), make_nccl_collectives() and make_nccl_link(); the caller owns what they return.
extern "C" lockstep::DeviceAllReduce* lockstep_make_nccl_all_reduce(lockstep::Communicator& comm,
                                                                    lockstep::Device& device);
extern "C" lockstep::DeviceCollectives* lockstep_make_nccl_collectives(lockstep::Communicator& comm,
                                                                       lockstep::Device& device);
extern "C" lockstep::DeviceLink* lockstep_make_nccl_link(lockstep::Communicator& comm,
                                                         lockstep::Device& device, lockstep::LinkEnd end);
