// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What can be seen of the machine without asking other ranks: the seam between the doctor and the world.
#pragma once

#include "comm/launcher.hpp"
#include "trainer/ranks/checks.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct Surroundings {
  std::filesystem::path root = "/";  ///< where /proc, /sys, /etc and /dev lie
  Environment environment;           ///< getenv
  std::function<std::vector<Interface>()> interfaces;
  /// Reads a byte of another process here. @returns why not; empty: it was read
  std::function<std::string(int pid, std::uint64_t address)> read_memory_of;

  static const Surroundings& real();
};

/// What a rank sees by itself: everything but what comes from its communicator and device.
RankView look_around(const Surroundings& world);

/// Of the first processor that /proc/cpuinfo names; on Arm it names none, and this is the machine's kind.
std::string model_of_processor(const std::filesystem::path& root);

/// Bytes that are free for a writer to `directory`, or to the first folder above it that is there; the
/// most that there can be where the system does not say.
std::uint64_t disk_free(const std::filesystem::path& directory);

// What people have set in the environment that changes how ranks start and talk, fit to be shown to others.

/// Of Open MPI (not what mpirun itself sets), MPICH, NCCL, UCX, CUDA, OpenMP, Slurm's step, and ours. A value is
/// masked where its name tells of a secret (token, key, password), and so is what a URL says before its @.
/// @param environment  NAME=VALUE, ended by null, as environ
std::map<std::string, std::string> visible_settings(const char* const* environment);

/// "***" in place of a secret.
std::string masked(std::string_view name, std::string_view value);

}  // namespace lockstep
