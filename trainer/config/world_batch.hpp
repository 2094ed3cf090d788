// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What ranks and samples mean to a job: the batch that is given for each rank, what a batch costs, and on how many ranks it may go on.
#pragma once

#include "trainer/config/job.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// The job on so many ranks: with data.per_rank_batch, data.global_batch is that times the ranks.
/// @throws ConfigError  data.global_batch was given, too, and is another; or it would be beyond 10^9. The message says
///                      where it stands and what would be right
Job for_ranks(Job job, int ranks);

/// How a run may go on when some of its ranks or hosts are lost.
struct RestartRule {
  bool any_ranks = true;     ///< false: the same number always comes out, others may be refused
  bool one_host = false;     ///< all ranks on one
  bool same_weights = true;  ///< as if nothing had been lost, bit for bit
};
RestartRule restart_rule(const Job& job);

/// "run the same command again: it goes on from the last checkpoint, on any number of ranks"
std::string restart_advice(const Job& job, int ranks);

/// What people should know of a job's batches, a line each: one larger than the set, and grains that are padded.
/// @param train_samples  of the job's set
/// @param on_gpu         there nothing is padded
std::vector<std::string> batch_remarks(const Job& job, std::int64_t train_samples, bool on_gpu);

}  // namespace lockstep
