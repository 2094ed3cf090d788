// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One function for each control plane; a rank alone is a group of one thread.
#include "trainer/ranks/rank_runner.hpp"

#include "comm/backend.hpp"
#include "comm/launcher.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "comm/mpi/rank_watch.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "comm/watch/watchdog.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "trainer/ranks/equal_ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>

namespace lockstep {

namespace {

/// Runs `body`; an agreed error ends here with its speaker's line, any other leaves.
int run_body(Communicator& comm, const std::function<int(Communicator&)>& body) {
  try {
    return body(comm);
  } catch (const AgreedError& error) {
    if (comm.rank() == error.speaker()) print_error(error.what());
    return static_cast<int>(error.code());
  }
}

/// Errors that only this rank has: say so, and take the others down before they wait for us. That another
/// rank is lost is said once for all, by the watchdogs.
int run_or_abort(Communicator& comm, Watchdog* watchdog, const std::function<int(Communicator&)>& body) {
  try {
    return run_body(comm, body);
  } catch (const std::exception& error) {
    const auto [code, text] = explain(error);
    const bool said = watchdog != nullptr && code == ExitCode::kPeerLost && watchdog->accounts_for_loss();
    if (watchdog != nullptr && code != ExitCode::kPeerLost) watchdog->leave_alone(static_cast<int>(code));
    if (!said)
      print_error(comm.size() > 1 ? fmt::format("rank {} on {}: {}", comm.rank(), comm.host(), text) : text);
    std::fflush(nullptr);  // nothing may run after the next call
    if (comm.size() > 1) comm.abort(static_cast<int>(code));
    return static_cast<int>(code);
  }
}

int run_on_mpi(const ParallelSection& parallel, const std::function<int(Communicator&)>& body) {
  const std::chrono::duration<double> timeout(parallel.timeout_seconds);
  RankWatch watch(this_launch().world_size);
  watch.expect("MPI_Init", std::max<std::chrono::duration<double>>(timeout, kLeastForStart));
  const MpiRuntime runtime(nullptr, nullptr);
  const auto comm = make_mpi_communicator(runtime, timeout);
  std::unique_ptr<Watchdog> watchdog;
  int code = run_or_abort(*comm, nullptr, [&](Communicator& all) {
    // Ranks have not compared their jobs, which comes soon and names the one that differs.
    const auto wanted = gather(all, static_cast<std::uint8_t>(parallel.watchdog));
    if (std::ranges::count(wanted, 0) == 0) watchdog = Watchdog::start(all);
    return 0;
  });
  watch.met();
  if (code == 0) code = run_or_abort(*comm, watchdog.get(), body);
  watchdog.reset();
  watch.expect("MPI_Finalize", timeout);
  return comm->rank() == 0 ? code : 0;
}

int run_on_threads(const ParallelSection& parallel, const std::function<int(Communicator&)>& body) {
  if (this_launch().world_size > 1)
    throw UsageError(
        fmt::format("the launcher started {} processes, and each of them would run all ranks as threads: "
                    "start one process, without mpirun or srun, or leave out {}",
                    this_launch().world_size,
                    parallel.backend == "thread" ? "parallel.backend=thread" : "parallel.ranks"));
  std::atomic<int> code = 0;
  run_thread_ranks(
      std::max(1, parallel.ranks),
      [&](Communicator& comm) {
        const int mine = run_body(comm, body);
        if (comm.rank() == 0) code = mine;
      },
      std::chrono::duration<double>(parallel.timeout_seconds));
  return code;
}

}  // namespace

int run_on_ranks(const ParallelSection& parallel, const std::function<int(Communicator&)>& body) {
  hash_program_in_advance();
  const bool threads = backend_named(parallel.backend).runs_threads(parallel.ranks);
  if (!threads && parallel.ranks > 0)
    throw ConfigError(
        "parallel.ranks is for parallel.backend=thread or nccl; with MPI the launcher says how many: "
        "mpirun -np N lockstep ...");
  return threads || this_launch().is_alone() ? run_on_threads(parallel, body) : run_on_mpi(parallel, body);
}

// Open MPI's own variables tell whether all ranks have one command line.

bool speaks_for_all() {
  return this_launch().rank == 0;
}

/// Open MPI names the program without its directory, and joins its arguments.
bool repeats_rank_0(int argc, const char* const* argv) {
  return this_launch().rank != 0 && environment_variable("OMPI_NUM_APP_CTX") == "1" &&
         environment_variable("OMPI_COMMAND") == std::filesystem::path(argv[0]).filename() &&
         environment_variable("OMPI_ARGV") == fmt::format("{}", fmt::join(argv + 1, argv + argc, " "));
}

}  // namespace lockstep
