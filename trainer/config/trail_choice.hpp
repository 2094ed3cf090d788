// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whether a run of a job leaves a trail (trainer/trail).
#pragma once

#include "trainer/config/job.hpp"

namespace lockstep {

/// A trail is a promise that anybody gets the same numbers, which only exact sums keep.
inline bool keeps_trail(const Job& job) {
  return job.run.trail && job.parallel.determinism == Determinism::kWorld;
}

}  // namespace lockstep
