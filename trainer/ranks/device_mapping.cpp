// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Local rank to index, and ranks that turn out to hold one GPU.
#include "trainer/ranks/device_mapping.hpp"

#include "comm/gather.hpp"
#include "common/error.hpp"
#include "common/host_name.hpp"
#include "common/text/text_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lockstep {
namespace {

[[noreturn]] void throw_too_few(int local_size, int visible) {
  throw DeviceError(
      fmt::format("{} on this host see {}: start at most {} a host (mpirun --map-by ppr:{}:node, srun "
                  "--ntasks-per-node={}), or give each rank a GPU of its own (srun --gpus-per-task=1)",
                  counted(local_size, "rank"), counted(visible, "GPU"), visible, visible, visible));
}

/// "0, 1 and 4"
std::string listed(const std::vector<int>& ranks) {
  const std::span<const int> all_but_last(ranks.data(), ranks.size() - 1);
  return fmt::format("{} and {}", fmt::join(all_but_last, ", "), ranks.back());
}

bool on_same_machine(const RankGpu& a, const RankGpu& b) {
  const bool known = !a.boot_id.empty() && !b.boot_id.empty();
  return known ? a.boot_id == b.boot_id : a.host == b.host;
}

bool on_same_gpu(const RankGpu& a, const RankGpu& b) {
  return on_same_machine(a, b) && (a.uuid == b.uuid || (!a.pci_bus.empty() && a.pci_bus == b.pci_bus));
}

}  // namespace

int choose_gpu(int local_rank, int local_size, int visible, std::optional<int> requested) {
  LOCKSTEP_CHECK(visible >= 1 && local_rank >= 0 && local_rank < local_size);
  if (requested) {
    if (*requested < visible) return *requested;
    throw DeviceError(
        fmt::format("parallel.device=cuda:{}: this process sees {}, and they count from 0; use "
                    "parallel.device=cuda, or see CUDA_VISIBLE_DEVICES and 'lockstep devices'",
                    *requested, counted(visible, "GPU")));
  }
  if (local_size <= visible) return local_rank;
  if (visible == 1) return 0;
  throw_too_few(local_size, visible);
}

std::vector<SharedGpu> find_shared_gpus(std::span<const RankGpu> by_rank) {
  std::vector<SharedGpu> used;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    auto gpu = std::find_if(used.begin(), used.end(),
                            [&](const SharedGpu& u) { return on_same_gpu(u.gpu, by_rank[rank]); });
    if (gpu == used.end()) gpu = used.insert(gpu, {by_rank[rank], {}});
    gpu->ranks.push_back(static_cast<int>(rank));
    gpu->in_slices |= gpu->gpu.uuid != by_rank[rank].uuid;
  }
  std::erase_if(used, [](const SharedGpu& gpu) { return gpu.ranks.size() < 2; });
  return used;
}

std::string describe(const SharedGpu& shared) {
  if (shared.in_slices) {
    return fmt::format("ranks {} have slices (MIG) of the GPU at {} on {}", listed(shared.ranks),
                       shared.gpu.pci_bus, shared.gpu.host);
  }
  return fmt::format("ranks {} share {} on {}", listed(shared.ranks), shared.gpu.uuid, shared.gpu.host);
}

std::vector<RankGpu> gather_gpus(Communicator& comm, const DeviceProperties& mine) {
  const auto hosts = gather_hosts(comm);
  const auto uuids = gather_text(comm, mine.uuid);
  const auto buses = gather_text(comm, mine.pci_bus);
  const auto boots = gather_text(comm, host_boot_id());
  std::vector<RankGpu> by_rank;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    by_rank.push_back({hosts[rank], uuids[rank], buses[rank], boots[rank]});
  return by_rank;
}

}  // namespace lockstep
