// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The determining keys of a job, read off the schema.
#include "trainer/config/resume_keys.hpp"

#include "common/error.hpp"
#include "common/text/text_layout.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/config/key_families.hpp"
#include "trainer/optimizers/schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <set>

namespace lockstep {
namespace {

bool determines_weights(const JobKey& key, const Job& job) {
  if (!belongs(key, job)) return false;
  if (key.determines == Determines::kWeightsInWorldMode)
    return job.parallel.determinism == Determinism::kWorld;
  return key.determines == Determines::kWeights;
}

/// A schedule without a length of its own has that of the run: then epochs determine weights, too.
constexpr const char* kScheduleLength = "train.schedule.total";

std::string length_from_run(const Job& job) {
  const ScheduleSection& schedule = job.train.schedule;
  if (!find_schedule(schedule).has_end || schedule.total > 0) return "";
  if (schedule.by == "epoch" && schedule.warmup_steps == 0)
    return std::to_string(job.train.epochs - schedule.warmup_epochs);
  return fmt::format("to the end of {} epochs", job.train.epochs);  // compared at a resume, so also of 1
}

std::string value_or_nothing(const std::map<std::string, std::string>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "not given" : found->second;
}

/// With data.per_rank_batch it is the number of ranks that made the global batch.
std::string ranks_that_would_do(const std::map<std::string, std::string>& then,
                                const std::map<std::string, std::string>& now, const Job& job) {
  constexpr const char* kBatch = "data.global_batch";
  const std::int64_t each = job.data.per_rank_batch;
  if (each == 0 || !then.contains(kBatch) || then.at(kBatch) == now.at(kBatch)) return "";
  const std::int64_t batch = std::strtoll(then.at(kBatch).c_str(), nullptr, 10);
  if (batch % each != 0) return "";
  return fmt::format("; with data.per_rank_batch {}, start {}, as then", each, counted(batch / each, "rank"));
}

}  // namespace

std::map<std::string, std::string> determining_keys(const Job& job) {
  std::map<std::string, std::string> values;
  for (const JobKey& key : job_schema()) {
    if (determines_weights(key, job)) values[key.path] = key.write(job);
  }
  if (const std::string length = length_from_run(job); !length.empty()) values[kScheduleLength] = length;
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
  const std::string ranks = ranks_that_would_do(then, now, job);
  throw ConfigError(fmt::format(
      "{}: was written by a job that trains other weights; what differs: {}. Set these back, choose another "
      "run.dir, or start afresh with run.resume=never{}",
      checkpoint, fmt::join(differences, ", "), ranks));
}

}  // namespace lockstep
