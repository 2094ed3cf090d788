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
/// seed, optimiser, determinism, and under `determinism: world` the grain. Not how long it runs, and not
/// where: epochs, max_steps, ranks, threads, device, backend, buckets, directories and logging may change
/// from one resume to the next.
std::map<std::string, std::string> determining_keys(const Job& job);

/// One entry for each key that differs or is only in one of the two: "train.seed: 1234 here, 1 there".
std::vector<std::string> differing_keys(const std::map<std::string, std::string>& here,
                                        const std::map<std::string, std::string>& there);

}  // namespace lockstep
