// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What one rank sees of itself and its host, as it travels to the others before a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep {

/// An IPv4 address of a network interface that is up and no loopback.
struct Interface {
  std::string name;
  std::string address;  ///< "10.0.0.3"
  int prefix = 0;       ///< bits of the network's part
};

/// Where a rank computes.
struct RankDevice {
  std::string kind;         ///< "cpu", "cuda", "emulated"
  std::string description;  ///< "cpu (AVX-512)", "NVIDIA H100 80GB HBM3"
  std::string uuid, pci_bus;
};

struct RankView {
  // The launch.
  int rank = 0, local_rank = 0, local_size = 1;
  int world_size = 1;    ///< as MPI has it
  int launched = 1;      ///< as the launcher has it; 1 where it says nothing
  std::string launcher;  ///< "mpirun", "srun", "PMI", ""
  std::string host;
  int pid = 0;
  // Computing.
  RankDevice device;
  int threads = 1;
  std::vector<int> cores;   ///< that this process may use
  int launcher_cores = 0;   ///< how many its launcher may use; 0: not known
  int cpus_per_task = 0;    ///< what Slurm says of this step; 0: nothing
  bool translated = false;  ///< an IOMMU translates what the GPU reads of other devices
  // Memory.
  std::uint64_t free_bytes = 0;
  std::string free_limited_by;
  std::uint64_t shm_bytes = 0;       ///< all of /dev/shm; 0: not known
  std::int64_t oom_kills = 0;        ///< of its cgroup, since that was made
  std::string neighbour_read_error;  ///< why it cannot read memory of the next rank here; empty: it can
  // The network.
  std::vector<Interface> interfaces;
  std::string own_address;   ///< what /etc/hosts says of its name; empty: nothing
  double clock_seconds = 0;  ///< since 1970, when all ranks looked
  // The run directory.
  bool sees_run_directory = true;     ///< the same one as rank 0
  std::uint64_t disk_free_bytes = 0;  ///< for the run directory, of rank 0
  // Everything that people set, by name, secrets masked (settings.hpp).
  std::map<std::string, std::string> settings;
  std::map<std::string, std::string> versions;  ///< "lockstep", "MPI", "PMIx of the launcher"
};

/// As text that the other ranks read; and back. @throws nlohmann::json::exception
std::string to_message(const RankView& view);
RankView rank_view_of(const std::string& message);

}  // namespace lockstep
