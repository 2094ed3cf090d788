// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The variables of Open MPI, PMI, PMIx, Slurm and PyTorch.
#include "comm/launcher.hpp"

#include <algorithm>
#include <cstdlib>

namespace lockstep {
namespace {

using Names = std::initializer_list<const char*>;

bool has_any(const Environment& environment, Names names) {
  return std::ranges::any_of(names, [&](const char* name) { return environment(name) != nullptr; });
}

constexpr long kMostRanks = 1 << 24;

/// The number with which the first of these begins that is there, as in 4(x2); at least `least`.
int number_of(const Environment& environment, Names names, int least) {
  for (const char* name : names) {
    const char* value = environment(name);
    if (value == nullptr) continue;
    return static_cast<int>(std::clamp(std::strtol(value, nullptr, 10), long{least}, kMostRanks));
  }
  return least;
}

Launcher launcher_of(const Environment& environment) {
  if (has_any(environment, {"OMPI_COMM_WORLD_SIZE"})) return Launcher::kOpenMpi;
  if (has_any(environment, {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK"})) return Launcher::kPmi;
  if (has_any(environment, {"RANK"}) && number_of(environment, {"WORLD_SIZE"}, 1) > 1)
    return Launcher::kTorchrun;
  const bool in_step = has_any(environment, {"SLURM_NODELIST"}) && has_any(environment, {"SLURM_STEPID"});
  const bool one_task = number_of(environment, {"SLURM_STEP_NUM_TASKS"}, 0) == 1;
  return in_step && !one_task ? Launcher::kSrun : Launcher::kNone;
}

}  // namespace

Launch read_launch(const Environment& environment) {
  const Launcher launcher = launcher_of(environment);
  if (launcher == Launcher::kTorchrun)
    return {.launcher = launcher,
            .rank = number_of(environment, {"RANK"}, 0),
            .world_size = number_of(environment, {"WORLD_SIZE"}, 1)};
  return {
      .launcher = launcher,
      .rank = number_of(environment, kRankVariables, 0),
      .world_size = number_of(environment, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1),
      .local_rank =
          number_of(environment, {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, 0),
      .local_size = number_of(
          environment, {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"}, 1)};
}

Launch this_launch() {
  return read_launch([](const char* name) {
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): the environment does not change
  });
}

}  // namespace lockstep
