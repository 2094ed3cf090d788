// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How much memory a process may still take, asked before it takes much: afterwards Linux kills it without a
/// word.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep {

struct FreeMemory {
  std::uint64_t bytes = 0;
  std::string limited_by;  ///< "this machine", "the memory limit of its container or Slurm job", "ulimit -v"
};

/// The least of what the machine has available (swap included), what the cgroups of this process leave, and
/// what ulimit -v and -d leave to each process. Bounds that cannot be read do not count.
/// @param processes  alike, that share the machine
/// @param root       where /proc and /sys lie, for tests
FreeMemory free_memory(int processes = 1, const std::filesystem::path& root = "/");

/// @param bytes  of all these processes together
/// @param what   "the activations of net, 64 samples at a time"
/// @param help   what makes it smaller
/// @throws MemoryError  there is not that much left: what, how much, how much there is, and the help
void require_memory(std::uint64_t bytes, const std::string& what, const std::string& help, int processes = 1);

/// The most that this process has had in memory at once, its libraries included (its peak resident set size).
std::uint64_t peak_resident_bytes();

/// "7.3 GiB", "12 MiB", "640 B"; "more than 64 bits can count" of kTooLarge.
std::string format_memory(std::uint64_t bytes);

}  // namespace lockstep
