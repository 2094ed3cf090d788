// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Starting a job again that has nothing left to do: known before anything in its directory is touched.
#pragma once

#include "common/files/env.hpp"
#include "trainer/config/job.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

/// How far a job wants to go, and how far its run has come.
struct RunLength {
  std::int64_t steps_per_epoch = 1;
  std::int64_t asked = 0;  ///< steps, by train.epochs and train.max_steps
  std::int64_t taken = 0;  ///< by the checkpoint that the job would go on from
};

/// Steps that the job asks for in all.
std::int64_t steps_asked(const Job& job, std::int64_t steps_per_epoch);

/// The weights_sha256 that the last line of RUN/metrics.jsonl gives, if that line is the end of a run of so
/// many steps. @throws IoError
std::optional<std::string> recorded_end(Env& env, const std::string& run_dir, std::int64_t steps);

/// True if nothing is left to do: more steps were taken than the job asks for; or as many, and the end of the
/// run is on disk with the weights of this digest. (A run that was killed between its last checkpoint and its
/// end is still brought to its end.)
bool nothing_left(Env& env, const std::string& run_dir, const RunLength& length, const std::string& digest);

/// What to say then, and what to change.
std::string nothing_left_text(const Job& job, const RunLength& length);

}  // namespace lockstep
