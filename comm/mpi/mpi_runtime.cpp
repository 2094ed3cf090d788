// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Launches in which MPI could not serve are refused before or right after MPI_Init.
#include "comm/mpi/mpi_runtime.hpp"

#include "comm/launcher.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace lockstep {
namespace {

/// The process in which MPI is starting; 0: none.
std::atomic<pid_t> starting = 0;

/// Until MPI has started no error handler is heard: a library that cannot start calls exit() or _exit().
[[noreturn]] void tell_failed_start() {
  const Launch launch = this_launch();
  print_error(
      fmt::format("rank {} of {} on {}: MPI did not start; its message is above. Start the job "
                  "again, for on a busy machine this happens; if it fails again, see 'lockstep doctor --log'",
                  launch.rank, launch.world_size, host_name()));
  std::_Exit(static_cast<int>(ExitCode::kDeviceUnavailable));
}

void init(int* argc, char*** argv) {
  raise_limit_of_open_files();
  static const int once = std::atexit([] {
    if (starting == getpid()) tell_failed_start();
  });
  LOCKSTEP_CHECK(once == 0);
  int provided = MPI_THREAD_SINGLE;
  starting = getpid();
  const int status = MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided);
  if (status != MPI_SUCCESS) tell_failed_start();
  starting = 0;
  if (provided < MPI_THREAD_SERIALIZED)
    throw DeviceError(advice(
        "this MPI was built without thread support (MPI_THREAD_SERIALIZED); use Open MPI as packaged by "
        "the distribution, or run with {backend}thread"));
  LOCKSTEP_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  LOCKSTEP_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

/// Each process would be alone, and train by itself.
void refuse_launchers_unknown_to_mpi(const Launch& launch) {
  if (launch.launcher == Launcher::kSrun)
    throw DeviceError(
        "srun started this process without PMIx, so Open MPI cannot find its ranks; start with 'srun "
        "--mpi=pmix ...' if 'srun --mpi=list' has pmix, otherwise with 'mpirun ...' inside sbatch or salloc");
  if (launch.launcher == Launcher::kTorchrun)
    throw DeviceError(
        fmt::format("RANK and WORLD_SIZE={0} say that torchrun, or its like, started this process among "
                    "others, which MPI cannot find; start with 'mpirun -np {0} lockstep ...', or, if it is "
                    "to be alone, unset them",
                    launch.world_size));
}

}  // namespace

MpiRuntime::MpiRuntime(int* argc, char*** argv) {
  const Launch launch = this_launch();
  refuse_launchers_unknown_to_mpi(launch);
  init(argc, argv);
  LOCKSTEP_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  LOCKSTEP_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  if (size_ == 1 && launch.world_size > 1)
    throw DeviceError(fmt::format(
        "the launcher started {}, but MPI on {} sees only one: the launcher does not speak to this MPI "
        "library; start with Open MPI's own mpirun, or with srun --mpi=pmix",
        counted(launch.world_size, "process"), host_name()));
}

MpiRuntime::~MpiRuntime() {
  if (MPI_Finalize() != MPI_SUCCESS) print_error(fmt::format("rank {}: MPI_Finalize failed", rank_));
}

}  // namespace lockstep

/// Takes the place of the C library's for the libraries of MPI, whose _exit() no handler of atexit() hears.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" __attribute__((noreturn, visibility("default"))) void _exit(int status) {
  if (lockstep::starting == getpid()) lockstep::tell_failed_start();
  std::_Exit(status);
}
