// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/scratch.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace lockstep::chaos {
namespace {

std::string make_unique_directory(const std::filesystem::path& parent) {
  std::string path = parent / "lockstep-chaos-XXXXXX";
  if (mkdtemp(path.data()) != nullptr) return path;
  throw std::system_error(errno, std::generic_category(), path + ": cannot be created");
}

/// In memory where the system has a place for that.
std::filesystem::path memory_directory() {
  const char* memory = "/dev/shm";
  return access(memory, W_OK) == 0 ? std::filesystem::path(memory) : std::filesystem::temp_directory_path();
}

}  // namespace

Scratch::Scratch()
    : files_(make_unique_directory(std::filesystem::temp_directory_path())),
      shared_memory_(make_unique_directory(memory_directory())) {}

Scratch::~Scratch() {
  std::error_code ignored;
  if (!kept_) std::filesystem::remove_all(files_, ignored);
  std::filesystem::remove_all(shared_memory_, ignored);
}

LifeDirectories Scratch::make(const std::string& name) const {
  LifeDirectories directories{files_ + "/" + name, shared_memory_ + "/" + name};
  std::filesystem::create_directories(directories.temporary());
  std::filesystem::create_directories(directories.shared_memory);
  return directories;
}

void Scratch::remove(const LifeDirectories& directories) const {
  std::error_code ignored;
  std::filesystem::remove_all(directories.home, ignored);
  std::filesystem::remove_all(directories.shared_memory, ignored);
}

}  // namespace lockstep::chaos
