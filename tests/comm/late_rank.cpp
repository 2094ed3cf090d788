// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// late_rank WHERE, under mpirun. MPI's start or end (WHERE is init or finalize) with a deadline of three seconds, to
/// which the last rank does not come, and at the start not the one before it either, which is stopped.
#include "comm/launcher.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "comm/mpi/rank_watch.hpp"
#include "tests/support/prelude.hpp"

#include <unistd.h>

namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kShort{3};  ///< limit for a meeting that one rank misses
constexpr Seconds kNone{std::numeric_limits<double>::infinity()};  ///< for one that all reach

/// Hangs as a rank in code of its own. The tests' deadline ends it.
void stay_away() {
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const bool at_start = argc > 1 && std::string_view(argv[1]) == "init";
  const lockstep::Launch launch = lockstep::this_launch();
  const bool last = launch.rank == launch.world_size - 1;
  if (at_start && last) stay_away();
  if (at_start && launch.rank == launch.world_size - 2) std::raise(SIGSTOP);

  lockstep::RankWatch watch(launch.world_size);
  watch.expect("MPI_Init", at_start ? kShort : kNone);
  const lockstep::MpiRuntime runtime(nullptr, nullptr);
  const auto comm = lockstep::make_mpi_communicator(runtime, kNone);
  watch.met();
  if (last) stay_away();
  watch.expect("MPI_Finalize", kShort);
  return 0;
}
