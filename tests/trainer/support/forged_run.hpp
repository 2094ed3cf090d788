// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Changes the files of a run and makes all checksums and notes good again, as somebody would who wants to be believed.
#pragma once

#include "trainer/checkpoint/state.hpp"
#include "trainer/checkpoint/trail_format.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::testing {

/// The steps of a run's checkpoints, in order.
std::vector<std::int64_t> checkpoint_steps(const std::string& run);

/// Facts and tensors; their sums and the manifest's own follow.
void forge_checkpoint(const std::string& run, std::int64_t step,
                      const std::function<void(CheckpointState&)>& change);

/// The chain, and what each checkpoint notes of it, follow.
void forge_trail(const std::string& run,
                 const std::function<void(TrailHead&, std::vector<TrailRecord>&)>& change);

/// Events, one a line; what each checkpoint notes of them follows.
void forge_metrics(const std::string& run, const std::function<void(std::vector<nlohmann::json>&)>& change);

}  // namespace lockstep::testing
