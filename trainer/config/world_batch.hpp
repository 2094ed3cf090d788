// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A batch that is given for each rank, once it is known how many ranks there are.
#pragma once

#include "trainer/config/job.hpp"

namespace lockstep {

/// The job on so many ranks: with data.per_rank_batch, data.global_batch is that times the ranks.
/// @throws ConfigError  data.global_batch was given, too, and is another; or it would be beyond 10^9. The message says
///                      where it stands and what would be right
Job for_ranks(Job job, int ranks);

}  // namespace lockstep
