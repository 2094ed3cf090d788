// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Comparing a job with the one that wrote a checkpoint.
#include "trainer/checkpoint/resume.hpp"

#include "kernels/runtime/error.hpp"

#include <fmt/format.h>

#include <vector>

namespace lockstep {

void require_same_job(const std::map<std::string, std::string>& stored,
                      const std::map<std::string, std::string>& now, const std::string& checkpoint) {
  std::vector<std::string> differences;
  for (const auto& [key, value] : stored) {
    const auto found = now.find(key);
    if (found == now.end())
      differences.push_back(fmt::format("{} (was {}, now not given)", key, value));
    else if (found->second != value)
      differences.push_back(fmt::format("{} (was {}, now {})", key, value, found->second));
  }
  for (const auto& [key, value] : now)
    if (!stored.contains(key)) differences.push_back(fmt::format("{} (was not given, now {})", key, value));
  if (differences.empty()) return;
  throw ConfigError(fmt::format(
      "{}: was written by a job that trains other weights; what differs: {}. Set these back, choose another "
      "run.dir, or start afresh with run.resume=never",
      checkpoint, fmt::join(differences, ", ")));
}

}  // namespace lockstep
