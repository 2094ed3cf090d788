// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The determining keys of a job, read off the schema.
#include "trainer/config/resume_keys.hpp"

#include "common/error.hpp"
#include "trainer/config/job_schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::vector<std::string> differing_keys(const std::map<std::string, std::string>& stored,
                                        const std::map<std::string, std::string>& now) {
  std::set<std::string> keys;
  for (const auto* side : {&stored, &now}) {
    for (const auto& entry : *side) keys.insert(entry.first);
  }
  std::vector<std::string> differences;
  for (const std::string& key : keys) {
    const std::string was = value_or_nothing(stored, key);
    const std::string is = value_or_nothing(now, key);
    if (was != is) differences.push_back(fmt::format("{} (was {}, now {})", key, was, is));
  }
  return differences;
}

void require_same_job(const std::map<std::string, std::string>& stored, const Job& job,
                      const std::string& checkpoint) {
  const auto now = determining_keys(job);
  auto then = stored;
  const Job defaults;
  for (const auto& entry : now) {
    if (!stored.contains(entry.first)) then[entry.first] = find_job_key(entry.first)->write(defaults);
  }
  const auto differences = differing_keys(then, now);
  if (differences.empty()) return;
  throw ConfigError(fmt::format(
      "{}: was written by a job that trains other weights; what differs: {}. Set these back, choose another "
      "run.dir, or start afresh with run.resume=never",
      checkpoint, fmt::join(differences, ", ")));
}

}  // namespace lockstep
