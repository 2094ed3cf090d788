// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Owns MPI for the life of the process: the first thing that main constructs and the last that it destroys.
#pragma once

#include <functional>

namespace lockstep {

/// MPI_Init_thread(MPI_THREAD_SERIALIZED) to MPI_Finalize. Sets MPI_ERRORS_RETURN, or Open MPI would abort
/// before any check of ours runs. One per process.
///
/// MPI_Finalize waits for the other ranks. Whoever catches an error that only this rank has must call
/// Communicator::abort() while the runtime lives, instead of letting it be destroyed.
class MpiRuntime {
 public:
  /// @throws DeviceError  MPI cannot serve this program; or the launcher started several processes that MPI
  ///                      takes for as many jobs of one rank each (a launcher and a library of different
  ///                      makes); or srun without PMIx, with which MPI_Init would end the process
  MpiRuntime(int* argc, char*** argv);
  ~MpiRuntime();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

 private:
  int rank_ = 0, size_ = 1;
};

/// This process's rank as the launcher set it; 0 when it was started alone.
/// @param environment  like getenv: the value of a variable, or null
int launcher_rank(const std::function<const char*(const char*)>& environment);

/// How many processes the launcher says it started: Open MPI's mpirun, a PMI launcher (srun, MPICH), or srun
/// without PMI, in this order. 1 if nobody says. SLURM_NTASKS is not asked: it is also set where a batch
/// script runs one process by itself.
/// @param environment  like getenv: the value of a variable, or null
int launcher_world_size(const std::function<const char*(const char*)>& environment);

/// Whether srun started this process and left Open MPI no way to the other ranks: it then ends the process in
/// MPI_Init, with a page of text that does not say what to do.
/// @param environment  like getenv: the value of a variable, or null
bool is_srun_without_pmix(const std::function<const char*(const char*)>& environment);

}  // namespace lockstep
