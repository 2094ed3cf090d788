// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// MPI's text for a return code, in one line.
#include "comm/mpi/mpi_runtime.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <array>

namespace lockstep {

static_assert(MPI_SUCCESS == 0, "LOCKSTEP_MPI compares with 0 so that its header does not need mpi.h");

void throw_mpi_error(int status, const char* call, const char* file, int line) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};  // stays empty where MPI has none
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw MpiError(
      fmt::format("MPI failed at {}:{} in {}: {}; see what the other ranks said and start the job again",
                  file, line, call, text.data()));
}

}  // namespace lockstep
