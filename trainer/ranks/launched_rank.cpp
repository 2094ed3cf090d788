// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/ranks/launched_rank.hpp"

#include "comm/mpi/mpi_runtime.hpp"

#include <cstdlib>
#include <initializer_list>
#include <string>

namespace lockstep {
namespace {

const char* variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody changes the environment
}

/// argv[1..], as Open MPI joins them.
std::string joined(int argc, const char* const* argv) {
  std::string text;
  for (int i = 1; i < argc; ++i) text += (i == 1 ? "" : " ") + std::string(argv[i]);
  return text;
}

/// Open MPI names the program without its directory.
std::string without_directory(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool has_value(const char* name, const std::string& value) {
  const char* now = variable(name);
  return now != nullptr && now == value;
}

}  // namespace

int launched_rank() {
  return launcher_rank(variable);
}

int launched_ranks() {
  return launcher_world_size(variable);
}

bool speaks_for_all() {
  return launched_rank() == 0;
}

bool repeats_rank_0(int argc, const char* const* argv) {
  return launched_rank() != 0 && has_value("OMPI_NUM_APP_CTX", "1") &&
         has_value("OMPI_COMMAND", without_directory(argv[0])) && has_value("OMPI_ARGV", joined(argc, argv));
}

}  // namespace lockstep
