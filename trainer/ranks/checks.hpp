// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Known faults in starting ranks, and how each of them shows in the ranks' views.
#pragma once

#include "comm/launcher.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// View of one rank: itself and its host, as sent to the others before a run.

/// Device of a rank.
struct RankDevice {
  std::string kind;         ///< "cpu", "cuda", "emulated"
  std::string description;  ///< "cpu (AVX-512)", "NVIDIA H100 80GB HBM3"
  std::string uuid, pci_bus;
  std::string driver = {};  ///< "driver 13.0, runtime 13.0"
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
  std::vector<int> cores;  ///< that this process may use
  int launcher_cores = 0;  ///< how many its launcher may use; 0: not known
  int cpus_per_task = 0;   ///< as Slurm says for this step; 0: it says nothing
  // Memory.
  std::uint64_t free_bytes = 0;
  std::string free_limited_by;
  std::int64_t oom_kills = 0;  ///< counted by its cgroup since that was made
  double clock_seconds = 0;    ///< since 1970, when all ranks looked
  // The run directory.
  bool sees_run_directory = true;     ///< finds rank 0's mark in it
  std::uint64_t disk_free_bytes = 0;  ///< for the run directory, of rank 0
  // Everything that people set, by name, secrets masked.
  std::map<std::string, std::string> settings;
  std::map<std::string, std::string> versions;  ///< "lockstep", "MPI", "PMIx of the launcher"
};

/// One thing that is wrong.
struct Finding {
  std::string what;  ///< with ranks and hosts
  std::string fix;   ///< one line
};

using Views = std::span<const RankView>;

/// Requirement of a check, without which it says nothing.
enum class Needs { kNothing, kSlurm, kSrun, kGpus, kHosts };

struct Check {
  const char* id;         ///< "shared-directory": is part of --json, stays
  const char* healthy;    ///< sentence when nothing is found
  bool before_every_run;  ///< cheap, and about what hurts a run at once
  std::vector<Finding> (*find)(Views ranks);
  Needs needs = Needs::kNothing;
};

/// Names the missing requirement in words: "GPUs"; "" if these ranks have it.
std::string missing(Needs needs, Views ranks);

/// All of them, in the order in which they are shown. A new one is a function and a line in checks.cpp.
std::span<const Check> checks();

// How a view looks as JSON, which other ranks read: the names are those of the fields. Part of what
// 'lockstep doctor --json' promises.

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankDevice, kind, description, uuid, pci_bus, driver)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankView, rank, local_rank, local_size, world_size, launched, launcher,
                                   host, pid, device, threads, cores, launcher_cores, cpus_per_task,
                                   free_bytes, free_limited_by, oom_kills, clock_seconds, sees_run_directory,
                                   disk_free_bytes, settings, versions)

// View of the machine without asking other ranks: the seam between the doctor and the world.

struct Surroundings {
  std::filesystem::path root = "/";  ///< parent of proc, sys, etc and dev
  Environment environment;           ///< getenv

  static const Surroundings& real();
};

/// View of this rank without the parts that its communicator and device supply.
RankView look_around(const Surroundings& world);

/// Model of the first processor in /proc/cpuinfo; on Arm it has no name, and this is the machine's kind.
std::string model_of_processor(const std::filesystem::path& root);

/// Seconds of processor time that this thread has used.
double thread_seconds();

/// The directory, or the first one above it that is there; absolute.
std::filesystem::path existing_directory(const std::filesystem::path& path);
/// Free bytes for a writer to `directory`, or to its nearest existing parent. The largest possible number if
/// the system does not say.
std::uint64_t disk_free(const std::filesystem::path& directory);

// Settings in the environment that change how ranks start and talk, fit to be shown to others.

/// Settings of Open MPI (not mpirun's own), MPICH, NCCL, UCX, CUDA, OpenMP, Slurm's step, and ours. A value is
/// masked where its name tells of a secret (token, key, password), and so is the part of each URL before its @.
/// @param environment  NAME=VALUE, ended by null, as environ
std::map<std::string, std::string> visible_settings(const char* const* environment);

}  // namespace lockstep
