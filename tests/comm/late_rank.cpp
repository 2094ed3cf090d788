// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// late_rank WHERE, under mpirun. MPI's start and end with a deadline of three seconds, to which the last
/// rank does not come. WHERE is init, init-stopped, finalize or nowhere.
#include "comm/launcher.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "comm/mpi/rank_watch.hpp"
#include "tests/support/prelude.hpp"

#include <unistd.h>

namespace {

constexpr std::chrono::seconds kShort{3};   ///< limit for a meeting that one rank misses and no other
constexpr std::chrono::seconds kLong{100};  ///< limit for one that all reach, however slow the machine is

/// Hangs as a rank in code of its own. The tests' deadline ends it.
void stay_away() {
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string where = argc > 1 ? argv[1] : "nowhere";
  const int ranks = lockstep::this_launch().world_size;
  const bool last = lockstep::this_launch().rank == ranks - 1;
  if (last && where == "init") stay_away();
  if (last && where == "init-stopped") std::raise(SIGSTOP);

  lockstep::RankWatch watch(ranks);
  watch.expect("MPI_Init", where.starts_with("init") ? kShort : kLong);
  const lockstep::MpiRuntime runtime(nullptr, nullptr);
  const auto comm = lockstep::make_mpi_communicator(runtime, kLong);
  watch.met();
  if (last && where == "finalize") stay_away();
  watch.expect("MPI_Finalize", where == "finalize" ? kShort : kLong);
  return 0;
}
