// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The control groups that bound the memory of this process.
#pragma once

#include <filesystem>
#include <vector>

namespace lockstep {

struct MemoryCgroup {
  std::filesystem::path mount;  ///< directory of its controller's files
  std::filesystem::path path;   ///< its own, below that; inside a container it may not be there
  bool is_version_2 = false;
};

/// Reads /proc/self/cgroup: "0::/user.slice" of version 2, "9:memory:/slurm/job_3" of version 1.
std::vector<MemoryCgroup> memory_cgroups(const std::filesystem::path& root);

}  // namespace lockstep
