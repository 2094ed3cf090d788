// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What lockstep_nccl.so exports.
#pragma once

#include "comm/device_all_reduce.hpp"

/// See make_nccl_all_reduce(); the caller owns what it returns.
extern "C" lockstep::DeviceAllReduce* lockstep_make_nccl_all_reduce(lockstep::Communicator& comm,
                                                                    lockstep::Device& device);
