// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Advice from the rooms below, in the words of a job file.
#pragma once

#include "common/advice.hpp"

namespace lockstep {

/// What advice is about, by the keys of a job file: as they can be given behind a command, too.
inline constexpr Spelling kJobSpelling{.global_batch = "data.global_batch",
                                       .per_rank_batch = "data.per_rank_batch",
                                       .grain = "parallel.grain",
                                       .sample_counts = "data.train_samples and data.test_samples",
                                       .device = "parallel.device=",
                                       .backend = "parallel.backend=",
                                       .kernels = "parallel.kernels=",
                                       .timeout = "parallel.timeout_seconds",
                                       .run_directory = "run.dir"};

/// The same for commands that take no job file but options (trainer/commands/parallel_options.hpp). What they
/// have no option for keeps the name of the run's key.
inline constexpr Spelling kOptionSpelling{.global_batch = kJobSpelling.global_batch,
                                          .per_rank_batch = kJobSpelling.per_rank_batch,
                                          .grain = kJobSpelling.grain,
                                          .sample_counts = kJobSpelling.sample_counts,
                                          .device = "--device ",
                                          .backend = kJobSpelling.backend,
                                          .kernels = "--kernels ",
                                          .timeout = kJobSpelling.timeout,
                                          .run_directory = kJobSpelling.run_directory};

}  // namespace lockstep
