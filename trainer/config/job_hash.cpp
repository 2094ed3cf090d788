// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The determining keys of a job, read off the schema.
#include "trainer/config/job_hash.hpp"

#include "trainer/config/job_schema.hpp"

#include <fmt/format.h>

#include <set>

namespace lockstep {
namespace {

bool determines_weights(const JobKey& key, const Job& job) {
  if (key.determines == Determines::kWeightsInWorldMode) return job.parallel.determinism == "world";
  return key.determines == Determines::kWeights;
}

std::string value_or_nothing(const std::map<std::string, std::string>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "not given" : found->second;
}

}  // namespace

std::map<std::string, std::string> determining_keys(const Job& job) {
  std::map<std::string, std::string> values;
  for (const JobKey& key : job_schema()) {
    if (determines_weights(key, job)) values[key.path] = key.write(job);
  }
  return values;
}

std::vector<std::string> differing_keys(const std::map<std::string, std::string>& here,
                                        const std::map<std::string, std::string>& there) {
  std::set<std::string> keys;
  for (const auto* side : {&here, &there}) {
    for (const auto& entry : *side) keys.insert(entry.first);
  }
  std::vector<std::string> differences;
  for (const std::string& key : keys) {
    const std::string mine = value_or_nothing(here, key);
    const std::string theirs = value_or_nothing(there, key);
    if (mine != theirs) differences.push_back(fmt::format("{}: {} here, {} there", key, mine, theirs));
  }
  return differences;
}

}  // namespace lockstep
