// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the gradients of GPUs reach the other ranks: over NCCL, over host memory, or not at all.
#pragma once

#include "comm/communicator.hpp"
#include "comm/device_all_reduce.hpp"
#include "trainer/ranks/device_mapping.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lockstep {

enum class AllReducePath {
  kNone,    ///< one rank alone; or a CPU, whose gradients are on the host anyway (comm/gradient_reducer.hpp)
  kStaged,  ///< comm/staged
  kNccl,    ///< comm/nccl
};

/// All that the decision depends on; the same on every rank.
struct AllReduceSituation {
  std::string backend;      ///< parallel.backend: "auto", "mpi", "nccl", "thread"
  std::string device_kind;  ///< "cpu", "cuda", "emulated"
  int world_size = 1;
  std::vector<SharedGpu> shared_gpus;
  std::string nccl_problem;  ///< why a rank cannot load NCCL; empty: all can, or nobody has tried
};

struct AllReduceDecision {
  AllReducePath path = AllReducePath::kNone;
  std::string reason;  ///< why not NCCL, where a reader may wonder
};

/// @throws ConfigError  backend nccl without GPUs
/// @throws DeviceError  backend nccl where NCCL cannot be loaded or ranks share a GPU: names both and the fix
AllReduceDecision choose_all_reduce(const AllReduceSituation& situation);

/// What to tell who starts ranks that may use `usable` of a machine's `all` cores, where NCCL's threads share
/// them; empty: nothing. Open MPI binds each of one or two ranks to one core, threads included.
std::string binding_advice(int usable, int all);

struct AllReduceSetup {
  std::unique_ptr<DeviceAllReduce> all_reduce;  ///< null: AllReducePath::kNone
  /// "NCCL 2.28.9"; "mpi through pinned memory: ranks 0 and 1 share GPU-8f0c... on node7"
  std::string description;
};

/// Decides, alike on all ranks, and makes it. Collective. Borrows both.
/// @throws AgreedError  with the code of what choose_all_reduce() throws
/// @throws PeerLostError, NcclError  ranks that cannot find each other over NCCL
AllReduceSetup set_up_all_reduce(Communicator& comm, Device& device, const std::string& backend);

}  // namespace lockstep
