// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The undisturbed run, and how another one differs from it.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::chaos {

/// Which records of a run were never damaged.
struct WholeRecords {
  bool metrics = true, trail = true;
};

/// What must be equal, byte for byte, however often a run was disturbed.
class Result {
 public:
  /// Reads a finished run of so many steps. @throws Violation if a part is missing or no JSON
  Result(const std::string& run_dir, std::int64_t steps);

  /// One line for each difference: which file, where first. Empty: equal.
  /// Of records that were damaged on the way only what is left must be the same.
  std::vector<std::string> differences_from(const Result& reference, WholeRecords whole) const;

  /// Directories in RUN/checkpoints, in order.
  const std::vector<std::string>& checkpoints() const { return checkpoints_; }

 private:
  std::vector<std::string> checkpoints_;
  std::string weights_, optimizer_;                   ///< bytes of the last checkpoint's files
  std::string trail_;                                 ///< bytes of trail.bin
  std::vector<nlohmann::json> metrics_, kept_aside_;  ///< without times and rank facts
};

}  // namespace lockstep::chaos
