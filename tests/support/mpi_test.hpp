// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// For tests that run under mpirun (lockstep_add_test with RANKS). Collectives first, then EXPECT: a rank
/// that stops at a failed ASSERT leaves the others waiting, and only the watchdog ends them.
#pragma once

#include "comm/mpi/mpi_runtime.hpp"

namespace lockstep::testing {

/// The process's MPI, initialised by the test's main.
const MpiRuntime& mpi_runtime();

}  // namespace lockstep::testing
