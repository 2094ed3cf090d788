// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What people have set in the environment that changes how ranks start and talk, fit to be shown to others.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lockstep {

/// Of Open MPI (not what mpirun itself sets), MPICH, NCCL, UCX, CUDA, OpenMP, Slurm's step, and ours. A value is
/// masked where its name tells of a secret (token, key, password), and so is what a URL says before its @.
/// @param environment  NAME=VALUE, ended by null, as environ
std::map<std::string, std::string> visible_settings(const char* const* environment);

/// "***" in place of a secret.
std::string masked(std::string_view name, std::string_view value);

}  // namespace lockstep
