// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the launcher (mpirun, srun) says about this process in its environment, before MPI is up.
#pragma once

namespace lockstep {

/// This process's rank as the launcher set it; 0 when it was started alone.
int launched_rank();

/// Whether this process should print what every rank would print alike, such as a wrong command line.
bool speaks_for_all();

/// Whether standard output is a person's terminal. Under mpirun a rank's own is always a pseudo-terminal,
/// even into a file, so mpirun's is looked at instead.
bool output_is_terminal();

}  // namespace lockstep
