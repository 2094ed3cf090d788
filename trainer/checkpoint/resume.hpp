// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// May a job go on from a checkpoint? Only if all that determines the weights is the same.
#pragma once

#include <map>
#include <string>

namespace lockstep {

/// Compares the keys that determine the weights, as stored in the checkpoint and as the job has them now.
/// @throws ConfigError naming `checkpoint` and every key that differs, with both values
void require_same_job(const std::map<std::string, std::string>& stored,
                      const std::map<std::string, std::string>& now, const std::string& checkpoint);

}  // namespace lockstep
