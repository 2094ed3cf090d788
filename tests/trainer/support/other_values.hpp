// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// For every key of a job file a value that it accepts and does not have: made from the schema, so that no
/// key is forgotten.
#pragma once

#include "trainer/config/job_schema.hpp"

#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::testing {

/// The first of a list of texts that `key` takes and that changes `job`; empty for a key with one choice
/// only.
inline std::string other_value(const JobKey& key, const Job& job) {
  std::vector<std::string> candidates(key.choices.begin(), key.choices.end());
  for (const char* text :
       {"elsewhere", "true", "false", "3", "5", "0.25", "4KiB", "emulated", "[3, 5]", "[0.25, 0.5]"})
    candidates.emplace_back(text);
  for (const std::string& text : candidates) {
    Job changed = job;
    if (key.read({text}, changed) && key.write(changed) != key.write(job)) return text;
  }
  if (key.choices.size() == 1) return "";
  throw std::runtime_error("no other value known for " + key.path);
}

}  // namespace lockstep::testing
