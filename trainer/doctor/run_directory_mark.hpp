// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A file that is put where a run directory is or will be, to see who else sees it.
#pragma once

#include "trainer/config/job.hpp"

#include <filesystem>
#include <string>

namespace lockstep {

/// Of a job whose directory is yet to be chosen: where they all are.
std::string run_directory(const Job& job);

/// Since 1970.
double now_seconds();

class RunDirectoryMark {
 public:
  /// @param name  that no other mark has
  RunDirectoryMark(const std::string& directory, const std::string& name);
  ~RunDirectoryMark();
  RunDirectoryMark(const RunDirectoryMark&) = delete;
  RunDirectoryMark& operator=(const RunDirectoryMark&) = delete;
  /// Empty where it could not be written.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace lockstep
