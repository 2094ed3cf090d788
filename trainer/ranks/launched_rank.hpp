// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the launcher (mpirun, srun) says about this process in its environment, before MPI is up.
#pragma once

namespace lockstep {

/// This process's rank as the launcher set it; 0 when it was started alone.
int launched_rank();

/// How many ranks the launcher started; 1 when this process was started alone.
int launched_ranks();

/// Whether mpirun started this process with the same command line as rank 0, which therefore does the same.
/// Not so behind a script that may give each rank arguments of its own.
bool repeats_rank_0(int argc, const char* const* argv);

/// Whether this process should print what every rank would print alike, such as a wrong command line.
bool speaks_for_all();

}  // namespace lockstep
