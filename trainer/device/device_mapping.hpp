// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which rank takes which GPU when a job starts, and which ranks have taken the same one.
#pragma once

#include "comm/communicator.hpp"
#include "kernels/device/device.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// The index of the GPU that a rank takes: the one the job names; else its local rank, where there are as
/// many as ranks on this host; else the only one that it sees, which the launcher gave to it alone or which
/// it shares. It never wraps around: that would put two ranks on one GPU and leave that unsaid.
/// @param visible    how many GPUs this process sees, at least one
/// @param requested  of parallel.device=cuda:N
/// @throws DeviceError  with the launcher's option that helps
int choose_gpu(int local_rank, int local_size, int visible, std::optional<int> requested);

/// Where a rank's GPU is. A UUID names one physical GPU (or a slice of it), whatever the indices.
struct RankGpu {
  std::string host, uuid;
  friend bool operator==(const RankGpu&, const RankGpu&) = default;
};

/// A GPU that several ranks use.
struct SharedGpu {
  RankGpu gpu;
  std::vector<int> ranks;  ///< ascending, at least two
  friend bool operator==(const SharedGpu&, const SharedGpu&) = default;
};

/// @param by_rank  of every rank
/// @returns ordered by their lowest rank
std::vector<SharedGpu> find_shared_gpus(std::span<const RankGpu> by_rank);

/// "ranks 0 and 1 share GPU-8f0c... on node7"
std::string describe(const SharedGpu& shared);

/// The GPUs of all ranks, by rank. Collective.
std::vector<RankGpu> gather_gpus(Communicator& comm, const DeviceFacts& mine);

}  // namespace lockstep
