// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which directory a run takes whose job names none (run.dir: auto): runs/JOB, runs/JOB-2, and so on.
#pragma once

#include "common/files/env.hpp"
#include "trainer/config/job.hpp"

#include <functional>
#include <optional>
#include <string>

namespace lockstep {

/// Whether the program chooses.
bool chooses_run_directory(const Job& job);

/// Opens a run directory for the job, in place of the one that was opened before: takes its lock, and checks
/// that the job can go on from what is in it.
/// @param wait  for a lock that may be free in a moment
/// @throws RunInUseError; ConfigError, DataError  it cannot; any other error ends the search
using OpenRunDirectory = std::function<void(const std::string& path, bool wait)>;

struct RunDirectoryChoice {
  std::string path;
  std::string line;  ///< for people: which, and why
};

/// The newest run of this job that is unfinished, computes the same and is locked by no process, under
/// run.resume: auto; otherwise a new directory. Leaves it open. For rank 0 alone: what is open is locked, so
/// that two starts at once never take the same one.
RunDirectoryChoice choose_run_directory(Env& env, const Job& job, const OpenRunDirectory& open);

/// "is finished": why the job does not go on in this directory, as far as it can be told by reading; nothing:
/// it may, also in one where no run has begun.
std::optional<std::string> why_not_go_on(Env& env, const std::string& run_dir, const Job& job);

}  // namespace lockstep
