// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Changes the files of a run and makes all checksums and notes good again, as a forger would.
#pragma once

#include "tests/support/prelude.hpp"
#include "trainer/checkpoint/state.hpp"
#include "trainer/checkpoint/trail.hpp"
#include "trainer/config/job_schema.hpp"

#include <yaml-cpp/yaml.h>

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

// For every key of a job file a value that it accepts and does not have. Made from the schema, so that no key
// is forgotten.

/// First of a list of texts that `key` takes and that changes `job`; empty for a single
/// choice.
inline std::string other_value(const JobKey& key, const Job& job) {
  std::vector<std::string> candidates(key.choices.begin(), key.choices.end());
  for (const char* text :
       {"elsewhere", "true", "false", "3", "5", "0.25", "4KiB", "emulated", "[3, 5]", "[0.25, 0.5]", "3..5",
        "[{match: elsewhere, lr_factor: 3}]", "[flip: {horizontal: 0.25}]"})
    candidates.emplace_back(text);
  for (const std::string& text : candidates) {
    Job changed = job;
    if (key.read(YAML::Load(text), changed) && key.write(changed) != key.write(job)) return text;
  }
  if (key.choices.size() == 1) return "";
  throw std::runtime_error("no other value known for " + key.path);
}

}  // namespace lockstep::testing
