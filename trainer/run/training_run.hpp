// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A training run from start to end.
#pragma once

#include "data/dataset.hpp"
#include "trainer/config/job.hpp"

#include <functional>
#include <string>

namespace lockstep {

using WhenFinished = std::function<void(const std::string& directory, const TrainTestData& data)>;

/// Trains as the job says, on all ranks that were started, and writes the run directory. The last line on
/// standard output is "weights sha256 HEX".
/// @param when_finished  is called in rank 0's process with the directory and the data of a run that has come to its
///                       end, when its lock is given back and no rank waits any more; may be empty
/// @returns the exit code: 0, or 75 when stopped on request with everything saved
/// @throws Error for what is wrong before the ranks are up; later errors are reported and become the exit
/// code
int train(const Job& job, const WhenFinished& when_finished = {});

}  // namespace lockstep
