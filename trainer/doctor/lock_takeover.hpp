// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Frees the lock of a run directory that a job on another host left behind, when that job is gone for certain.
#pragma once

#include <string>

namespace lockstep {

/// Asks the host that the lock names, over ssh, whether the process still runs: it is gone if the machine was
/// started again since, or has no process of that number and start time.
/// @returns what was found and done, one line
/// @throws RunInUseError  it runs, or its host cannot be asked: nothing is changed
std::string take_over_lock(const std::string& run_dir);

}  // namespace lockstep
