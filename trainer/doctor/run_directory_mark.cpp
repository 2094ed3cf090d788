// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// In the directory itself, or in the first one above it that is there.
#include "trainer/doctor/run_directory_mark.hpp"

#include "common/host_name.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

fs::path existing(fs::path path) {
  std::error_code ignored;
  path = fs::absolute(path, ignored).lexically_normal();
  while (!fs::is_directory(path, ignored) && path != path.parent_path()) path = path.parent_path();
  return path;
}

}  // namespace

std::string run_directory(const Job& job) {
  return job.run.dir == "auto" ? "runs" : job.run.dir;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

RunDirectoryMark::RunDirectoryMark(const std::string& directory, const std::string& name)
    : path_(
          (existing(directory) / fmt::format(".lockstep-{}-{}-{}", name, host_name(), ::getpid())).string()) {
  if (!std::ofstream(path_).put('\n')) path_.clear();
}

RunDirectoryMark::~RunDirectoryMark() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);
}

}  // namespace lockstep
