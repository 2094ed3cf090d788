// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/mpi/mpi_runtime.hpp"

#include "comm/host_name.hpp"
#include "comm/mpi/mpi_error.hpp"
#include "common/console/output.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace lockstep {
namespace {

void init(int* argc, char*** argv) {
  int provided = MPI_THREAD_SINGLE;
  LOCKSTEP_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided));
  if (provided < MPI_THREAD_SERIALIZED) {
    throw DeviceError(
        "this MPI was built without thread support (MPI_THREAD_SERIALIZED); use Open MPI as packaged by "
        "the distribution, or run with parallel.backend=thread");
  }
  LOCKSTEP_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  LOCKSTEP_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

const char* variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody changes the environment
}

void refuse_srun_without_pmix() {
  if (!is_srun_without_pmix(variable)) return;
  throw DeviceError(
      "srun started this process without PMIx, so Open MPI cannot find its ranks; start with 'srun "
      "--mpi=pmix "
      "...' if 'srun --mpi=list' has pmix, otherwise with 'mpirun ...' inside sbatch or salloc");
}

void refuse_singletons(int world_size) {
  const int launched = launcher_world_size(variable);
  if (world_size != 1 || launched <= 1) return;
  throw DeviceError(
      fmt::format("the launcher started {} processes, but MPI on {} sees only one: the launcher does not "
                  "speak to this MPI library; "
                  "start with Open MPI's own mpirun, or with srun --mpi=pmix",
                  launched, host_name()));
}

}  // namespace

int launcher_rank(const std::function<const char*(const char*)>& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* value = environment(name)) return static_cast<int>(std::strtol(value, nullptr, 10));
  }
  return 0;
}

int launcher_world_size(const std::function<const char*(const char*)>& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* value = environment(name);
    if (value == nullptr) continue;
    const long size = std::strtol(value, nullptr, 10);
    return size > 1 ? static_cast<int>(size) : 1;
  }
  return 1;
}

bool is_srun_without_pmix(const std::function<const char*(const char*)>& environment) {
  for (const char* name : {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "OMPI_COMM_WORLD_SIZE"}) {
    if (environment(name) != nullptr) return false;
  }
  return environment("SLURM_NODELIST") != nullptr && environment("SLURM_STEPID") != nullptr;
}

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
