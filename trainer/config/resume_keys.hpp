// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which part of a job determines its weights: what must not change when a run is resumed.
#pragma once

#include "trainer/config/job.hpp"

#include <map>
#include <string>
#include <vector>

namespace lockstep {

/// The keys and values that decide which weights a run has at a given step: model, data order and scaling,
/// seed, optimiser, schedule, determinism, and under `determinism: world` the grain. Not how long it runs,
/// unless a schedule is as long as the run, and not where: epochs, max_steps, ranks, threads, device,
/// backend, buckets, directories and logging may change from one resume to the next.
std::map<std::string, std::string> determining_keys(const Job& job);

/// One entry for each key that differs or is only in one of the two: "train.seed (was 1, now 1234)".
std::vector<std::string> differing_keys(const std::map<std::string, std::string>& stored,
                                        const std::map<std::string, std::string>& now);

/// May a job go on from a checkpoint? Compares the determining keys as the checkpoint stored them and as the
/// job has them now. A key that is younger than the checkpoint had its default then.
/// @throws ConfigError naming `checkpoint` and every key that differs, with both values
void require_same_job(const std::map<std::string, std::string>& stored, const Job& job,
                      const std::string& checkpoint);

}  // namespace lockstep
