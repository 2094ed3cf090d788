// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Launches in which MPI could not serve are refused before or right after MPI_Init.
#include "comm/mpi/mpi_runtime.hpp"

#include "comm/launcher.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <cstdlib>

namespace lockstep {
namespace {

/// Beside a process without a launcher Open MPI starts a daemon, with which it could launch others: a tenth
/// of a second for nothing. The variable stands in the environment only while MPI starts.
class StayAlone {
 public:
  StayAlone() : is_set_(this_launch().launcher == Launcher::kNone && std::getenv(kVariable) == nullptr) {
    if (is_set_) setenv(kVariable, "1", 0);
  }
  ~StayAlone() {
    if (is_set_) unsetenv(kVariable);
  }
  StayAlone(const StayAlone&) = delete;
  StayAlone& operator=(const StayAlone&) = delete;

 private:
  static constexpr const char* kVariable = "OMPI_MCA_ess_singleton_isolated";
  bool is_set_;
};

void init(int* argc, char*** argv) {
  const StayAlone alone;
  raise_limit_of_open_files();
  int provided = MPI_THREAD_SINGLE;
  LOCKSTEP_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided));
  if (provided < MPI_THREAD_SERIALIZED) {
    throw DeviceError(advice(
        "this MPI was built without thread support (MPI_THREAD_SERIALIZED); use Open MPI as packaged by "
        "the distribution, or run with {backend}thread"));
  }
  LOCKSTEP_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  LOCKSTEP_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

void refuse_srun_without_pmix() {
  if (this_launch().launcher != Launcher::kSrun) return;
  throw DeviceError(
      "srun started this process without PMIx, so Open MPI cannot find its ranks; start with 'srun "
      "--mpi=pmix ...' if 'srun --mpi=list' has pmix, otherwise with 'mpirun ...' inside sbatch or salloc");
}

void refuse_singletons(int world_size) {
  const int launched = this_launch().world_size;
  if (world_size != 1 || launched <= 1) return;
  throw DeviceError(
      fmt::format("the launcher started {}, but MPI on {} sees only one: the launcher does not "
                  "speak to this MPI library; "
                  "start with Open MPI's own mpirun, or with srun --mpi=pmix",
                  counted(launched, "process"), host_name()));
}

}  // namespace

MpiRuntime::MpiRuntime(int* argc, char*** argv) {
  refuse_srun_without_pmix();
  init(argc, argv);
  LOCKSTEP_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  LOCKSTEP_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  refuse_singletons(size_);
}

MpiRuntime::~MpiRuntime() {
  if (MPI_Finalize() != MPI_SUCCESS) print_error(fmt::format("rank {}: MPI_Finalize failed", rank_));
}

}  // namespace lockstep
