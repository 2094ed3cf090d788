// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Owns MPI while a command's ranks are up: made before their communicator and destroyed after it
/// (trainer/ranks/rank_runner.cpp).
#pragma once

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

}  // namespace lockstep
