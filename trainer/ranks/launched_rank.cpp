// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Open MPI's own variables tell whether all ranks have one command line.
#include "trainer/ranks/launched_rank.hpp"

#include "comm/launcher.hpp"

#include <cstdlib>
#include <string>

namespace lockstep {
namespace {

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
  const char* now = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): it does not change
  return now != nullptr && now == value;
}

}  // namespace

int launched_rank() {
  return this_launch().rank;
}

int launched_ranks() {
  return this_launch().world_size;
}

bool speaks_for_all() {
  return launched_rank() == 0;
}

bool repeats_rank_0(int argc, const char* const* argv) {
  return launched_rank() != 0 && has_value("OMPI_NUM_APP_CTX", "1") &&
         has_value("OMPI_COMMAND", without_directory(argv[0])) && has_value("OMPI_ARGV", joined(argc, argv));
}

}  // namespace lockstep
