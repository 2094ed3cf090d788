// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The launcher that started this process as a rank, from its environment: known before MPI is up.
#pragma once

#include <functional>
#include <initializer_list>

namespace lockstep {

enum class Launcher {
  kNone,     ///< a shell, a batch script, or srun of one task: one process by itself, which starts no MPI
  kOpenMpi,  ///< Open MPI's mpirun
  kPmi,      ///< one that speaks PMI or PMIx: MPICH's mpirun, srun --mpi=pmix
  kSrun,     ///< srun that says how many there are, but gave MPI no way to the other ranks
  kTorchrun,  ///< PyTorch's, or one that sets the same variables (accelerate, deepspeed): MPI knows nothing of it
};

struct Launch {
  Launcher launcher = Launcher::kNone;
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;  ///< among the ranks of its host
  int local_size = 1;  ///< how many those are; by Slurm on the first host

  /// One process by itself: needs no MPI.
  bool is_alone() const { return launcher == Launcher::kNone && world_size == 1; }
};

/// Like getenv: the value of a variable, or null.
using Environment = std::function<const char*(const char*)>;

/// A rank is 0 and a number of ranks 1 where the environment does not say. SLURM_NTASKS is not asked: it is also set
/// where a batch script runs one process by itself.
Launch read_launch(const Environment& environment);

/// Reads the environment of this process.
Launch this_launch();

/// The variables in which launchers tell a process its rank; the first that is there counts.
inline constexpr std::initializer_list<const char*> kRankVariables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                                                      "PMI_RANK", "SLURM_PROCID"};

}  // namespace lockstep
