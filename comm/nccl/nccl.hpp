// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce and messages of device memory over NCCL. They are in lockstep_nccl.so, which is loaded
/// when it is asked for: the program runs where there is no NCCL.
#pragma once

#include "comm/device/device_all_reduce.hpp"

#include <memory>

namespace lockstep {

/// Loads the library and NCCL with it. Says nothing yet about GPUs or the network.
/// @throws DeviceError  cause and fix, if it is not there or cannot be loaded
void load_nccl();

/// True if the loaded NCCL lets ranks share a GPU: from 2.30 on, where NCCL_MULTI_RANK_GPU_ENABLE=1 is set.
/// @throws DeviceError  see load_nccl()
bool nccl_shares_gpus();

/// Gives NCCL what the environment leaves open. To be called before there are threads.
///
/// NCCL_GRAPH_REGISTER=0, since graphs with small and large collectives and registered buffers can hang
/// silently (NVIDIA/nccl issue 2389). Ours hold a large one and its counters.
void set_nccl_defaults();

/// Queues on streams. A collective call over `comm`, by which the ranks find each other; every rank on a separate
/// GPU, which is `device`. Borrows both. Signal handlers stay as they were.
///
/// While a rank waits, nothing blocks: creation and every all-reduce end after comm.timeout() with
/// PeerLostError. Outside a graph, an all-reduce costs its caller some 30 us, since NCCL starts a thread for
/// it.
/// @throws DeviceError    see load_nccl()
/// @throws NcclError      (an Error) what NCCL says, with the exit code that fits
/// @throws PeerLostError  not all ranks came
std::unique_ptr<DeviceAllReduce> make_nccl_all_reduce(Communicator& comm, Device& device);

/// A link between the two ranks of `comm`; on a separate NCCL communicator. A collective call.
std::unique_ptr<DeviceLink> make_nccl_link(Communicator& comm, Device& device, LinkEnd end);

}  // namespace lockstep

// Functions that lockstep_nccl.so exports.

/// See nccl_shares_gpus().
extern "C" bool lockstep_nccl_shares_gpus();
/// See make_nccl_all_reduce() and make_nccl_link(); the caller owns what they return.
extern "C" lockstep::DeviceAllReduce* lockstep_make_nccl_all_reduce(lockstep::Communicator& comm,
                                                                    lockstep::Device& device);
extern "C" lockstep::DeviceLink* lockstep_make_nccl_link(lockstep::Communicator& comm,
                                                         lockstep::Device& device, lockstep::LinkEnd end);
