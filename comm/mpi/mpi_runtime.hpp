// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Owns MPI while a command's ranks are up: made before their communicator and destroyed after it
/// (trainer/ranks/rank_runner.cpp).
#pragma once

#include "common/error.hpp"

#include <string>

namespace lockstep {

/// MPI_Init_thread(MPI_THREAD_SERIALIZED) to MPI_Finalize. Sets MPI_ERRORS_RETURN, or Open MPI would abort
/// before any check of ours runs. One per process.
///
/// MPI_Finalize waits for the other ranks. Code that catches an error of this rank alone must call
/// Communicator::abort() while the runtime lives, instead of letting it be destroyed.
class MpiRuntime {
 public:
  /// @throws DeviceError  MPI cannot serve this program; or the launcher started several processes that MPI
  ///                      takes for as many jobs of one rank each (a launcher and a library of different
  ///                      makes); or srun without PMIx, or torchrun, of which MPI knows nothing
  ///
  /// If MPI cannot start it ends the process; then a sentence and the exit code of DeviceError say so.
  MpiRuntime(int* argc, char*** argv);
  ~MpiRuntime();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

 private:
  int rank_ = 0, size_ = 1;
};

// Every MPI call goes through LOCKSTEP_MPI, which turns a return code into an exception.

/// An MPI call failed. Ends the program with ExitCode::kPeerLost: once MPI runs, a call that was correct
/// yesterday fails because a process or the network between two of them is gone.
class MpiError : public Error {
 public:
  explicit MpiError(const std::string& message) : Error(ExitCode::kPeerLost, message) {}
};

/// Throws MpiError with MPI's text for `status`, the call and its place.
[[noreturn]] void throw_mpi_error(int status, const char* call, const char* file, int line);

}  // namespace lockstep

/// Runs an MPI call and throws MpiError unless it returns MPI_SUCCESS. Needs MPI_ERRORS_RETURN, which
/// MpiRuntime sets.
#define LOCKSTEP_MPI(call)                                                         \
  do {                                                                             \
    const int lockstep_mpi_status = (call);                                        \
    if (lockstep_mpi_status != 0)                                                  \
      ::lockstep::throw_mpi_error(lockstep_mpi_status, #call, __FILE__, __LINE__); \
  } while (false)
