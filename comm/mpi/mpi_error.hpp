// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every MPI call goes through LOCKSTEP_MPI, which turns a return code into an exception.
#pragma once

#include "common/error.hpp"

#include <string>

namespace lockstep {

/// An MPI call failed. Ends the program with ExitCode::kPeerLost: once MPI runs, a call that was correct
/// yesterday fails because a process or the network between two of them is gone.
class MpiError : public Error {
 public:
  explicit MpiError(const std::string& message) : Error(ExitCode::kPeerLost, message) {}
};

/// Throws MpiError with MPI's own text for `status`, the call and its place.
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
