// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/chaos/scratch.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <vector>

namespace lockstep::chaos {
namespace {

constexpr const char* kKept = "kept";

/// The process is in the name: others may have to remove it.
std::string name_for(pid_t process) {
  return "lockstep-chaos-" + std::to_string(process) + "-";
}

std::string make_unique_directory(const std::filesystem::path& parent) {
  std::string path = parent / (name_for(getpid()) + "XXXXXX");
  if (mkdtemp(path.data()) != nullptr) return path;
  throw std::system_error(errno, std::generic_category(), path + ": cannot be created");
}

/// In memory where the system has a place for that.
std::filesystem::path memory_directory() {
  const char* memory = "/dev/shm";
  return access(memory, W_OK) == 0 ? std::filesystem::path(memory) : std::filesystem::temp_directory_path();
}

bool is_kept(const std::filesystem::path& directory) {
  std::error_code ignored;
  return std::filesystem::exists(directory / kKept, ignored);
}

}  // namespace

Scratch::Scratch()
    : files_(make_unique_directory(std::filesystem::temp_directory_path())),
      shared_memory_(make_unique_directory(memory_directory())) {}

Scratch::~Scratch() {
  std::error_code ignored;
  if (!is_kept(files_)) std::filesystem::remove_all(files_, ignored);
  std::filesystem::remove_all(shared_memory_, ignored);
}

void Scratch::keep() {
  std::ofstream(files_ + "/" + kKept) << "something went wrong here\n";
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

std::vector<std::string> scratch_of(pid_t process) {
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& parent : {std::filesystem::temp_directory_path(), memory_directory()}) {
    for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
      if (entry.path().filename().string().starts_with(name_for(process)) && !is_kept(entry.path()))
        found.push_back(entry.path());
    }
  }
  return found;
}

}  // namespace lockstep::chaos
