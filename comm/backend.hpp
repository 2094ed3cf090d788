// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The meaning of a backend's name. It chooses two things, independently of each other and of the launcher
/// (comm/launcher.hpp): the control plane, which carries messages, and how the gradients of GPUs are summed.
#pragma once

#include "common/error.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The implementation of a Communicator.
enum class ControlPlane {
  kMpi,     ///< comm/mpi: processes, started by mpirun or srun
  kThread,  ///< comm/thread: threads of one process
};

/// How gradients reach the other ranks.
enum class GradientPath {
  kNone,  ///< not at all, one rank is alone; or from host memory by Communicator::host_all_reduce(), of a CPU
  kStaged,  ///< comm/staged: from the device's memory by way of the host's
  kNccl,    ///< comm/nccl: from GPU to GPU
};

struct Backend {
  std::string_view name;
  ControlPlane control;
  /// The path on devices; nothing: the best that works (comm/backends/device_reducers.hpp).
  std::optional<GradientPath> gradients;
  bool needs_gpus = false;

  bool chooses_itself() const { return !gradients.has_value(); }
  /// True if ranks are threads of one process. With nccl they may be: then the job says how many.
  bool runs_threads(int ranks) const {
    return control == ControlPlane::kThread || (gradients == GradientPath::kNccl && ranks > 0);
  }
};

/// All that there are: a new one is a line here.
inline constexpr std::array kBackends{
    Backend{"auto", ControlPlane::kMpi, std::nullopt},
    Backend{"mpi", ControlPlane::kMpi, GradientPath::kStaged},
    Backend{"nccl", ControlPlane::kMpi, GradientPath::kNccl, /*needs_gpus=*/true},
    Backend{"thread", ControlPlane::kThread, GradientPath::kStaged},
};

inline std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Backend& backend : kBackends) names.push_back(backend.name);
  return names;
}

/// @throws ConfigError  there is none of that name
inline const Backend& backend_named(std::string_view name) {
  for (const Backend& backend : kBackends)
    if (backend.name == name) return backend;
  throw ConfigError("'" + std::string(name) + "' is not a backend");
}

}  // namespace lockstep
