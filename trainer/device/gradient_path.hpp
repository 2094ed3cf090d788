// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Paths of GPUs' gradients to the other ranks. They lead over NCCL, over host memory, or nowhere. And the ranks that
/// have taken the same GPU.
#pragma once

#include "comm/backend.hpp"
#include "comm/communicator.hpp"
#include "comm/device/device_all_reduce.hpp"
#include "kernels/device.hpp"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Host and place of a rank's GPU. A UUID names one physical GPU or a slice of it (MIG), whatever the indices; all
/// slices of a GPU have its place on the PCI bus.
struct RankGpu {
  std::string host, uuid, pci_bus;
  /// The machine's boot: containers of one may differ in host name, and machines may share one. Empty: unknown.
  std::string boot_id = {};
  friend bool operator==(const RankGpu&, const RankGpu&) = default;
};

/// A physical GPU that several ranks use, whole or in slices. For NCCL slices are one GPU: it distinguishes GPUs by
/// host and PCI bus and refuses two ranks on one.
struct SharedGpu {
  RankGpu gpu;             ///< the lowest rank's
  std::vector<int> ranks;  ///< ascending, at least two
  bool in_slices = false;  ///< not all have the same UUID
  friend bool operator==(const SharedGpu&, const SharedGpu&) = default;
};

/// @param by_rank  of every rank
/// @returns ordered by their lowest rank
std::vector<SharedGpu> find_shared_gpus(std::span<const RankGpu> by_rank);

/// "ranks 0 and 1 share GPU-8f0c... on node7"; "ranks 0 and 1 have slices (MIG) of the GPU at 0000:65:00.0 on
/// node7"
std::string describe(const SharedGpu& shared);

/// The GPUs of all ranks, by rank. Collective.
std::vector<RankGpu> gather_gpus(Communicator& comm, const DeviceProperties& mine);

/// All that the decision depends on; the same on every rank.
struct AllReduceSituation {
  std::optional<GradientPath> wanted;  ///< by the backend's name; nothing: the best that works
  std::string device_kind;             ///< "cpu", "cuda", "emulated"
  int world_size = 1;
  std::vector<SharedGpu> shared_gpus = {};
  bool may_share_gpus = false;  ///< the wanted path can do with that here, for tests
  /// Why a rank cannot load what a path needs; empty: all can. Not there: not tried.
  std::map<GradientPath, std::string> problems = {};
};

struct AllReduceDecision {
  GradientPath path = GradientPath::kNone;
  std::string reason;  ///< why not a better one, where a reader may wonder
};

/// @throws ConfigError  the wanted path cannot sum the memory of this kind of device
/// @throws DeviceError  it cannot be loaded, or ranks share a GPU where it needs whole ones: names both and
///                      the fix
AllReduceDecision choose_all_reduce(const AllReduceSituation& situation);

/// Advice to a user who starts ranks that may use `usable` of a machine's `all` cores. It is given where a path's own
/// threads share them; empty: nothing. Open MPI binds each of one or two ranks to one core, threads included.
std::string binding_advice(int usable, int all);

struct AllReduceSetup {
  std::unique_ptr<DeviceAllReduce> all_reduce = {};  ///< null: GradientPath::kNone
  /// "NCCL 2.28.9"; "mpi through pinned memory: ranks 0 and 1 share GPU-8f0c... on node7"
  std::string description = {};
  std::string backend;  ///< "nccl"; or the control plane's, which carries the sums: "mpi", "thread"
  GradientPath path = GradientPath::kNone;
};

/// Decides, alike on all ranks, and makes it. Collective. Borrows both.
/// @throws AgreedError  with the code of what choose_all_reduce() throws
/// @throws PeerLostError, NcclError  ranks that cannot find each other over NCCL
AllReduceSetup set_up_all_reduce(Communicator& comm, Device& device, std::optional<GradientPath> wanted);

}  // namespace lockstep
