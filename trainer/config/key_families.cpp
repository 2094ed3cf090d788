// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The families of keys, made from the catalogues of optimisers, schedules and strategies; and the keys that a resume
/// compares.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/sets/leave_out.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/config/job_values.hpp"
#include "trainer/training/optimizers/optimizers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

namespace lockstep {

namespace {

struct Member {
  std::string_view name;
  std::vector<MemberKey> keys;

  const MemberKey* find(const JobKey& key) const {
    const auto found = std::ranges::find(keys, key.leaf(), &MemberKey::name);
    return found == keys.end() ? nullptr : &*found;
  }
};

/// Keys that a section has for one of several choices.
struct Family {
  std::string_view section;
  std::string_view choice;  ///< the key that names the member
  const std::string& (*chosen)(const Job&);
  std::vector<Member> members;
  std::string_view common = {};  ///< a key of all members, though one has another default

  /// True if all members have the key: either the common one, or a key that none names.
  bool shares(const JobKey& key) const {
    return key.leaf() == common ||
           std::ranges::none_of(members, [&](const Member& m) { return m.find(key); });
  }
};

template <class Kinds>
std::vector<Member> members_of(const Kinds& kinds) {
  std::vector<Member> members;
  for (const auto& kind : kinds) members.push_back({kind.name, kind.keys});
  return members;
}

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {.section = "train.optimizer",
       .choice = "kind",
       .chosen = [](const Job& job) -> const std::string& { return job.train.optimizer.kind; },
       .members = members_of(optimizer_kinds())},
      {.section = "train.optimizer.lr_scaling",
       .choice = "rule",
       .chosen = [](const Job& job) -> const std::string& { return job.train.optimizer.lr_scaling.rule; },
       .members = members_of(lr_scaling_rules())},
      {.section = "train.schedule",
       .choice = "kind",
       .chosen = [](const Job& job) -> const std::string& { return job.train.schedule.kind; },
       .members = members_of(schedule_kinds()),
       .common = "by"},
      {.section = "parallel",
       .choice = "strategy",
       .chosen = [](const Job& job) -> const std::string& { return job.parallel.strategy; },
       .members = members_of(strategy_kinds())}};
  return all;
}

const Family* family_of(const JobKey& key) {
  const auto found = std::ranges::find(families(), key.section(), &Family::section);
  return found == families().end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string_view> choices_of(std::string_view section) {
  return names_of(std::ranges::find(families(), section, &Family::section)->members, &Member::name);
}

const MemberKey* member_key(const JobKey& key, const Job& job) {
  const Family* family = family_of(key);
  if (family == nullptr) return nullptr;
  const auto member = std::ranges::find(family->members, family->chosen(job), &Member::name);
  return member == family->members.end() ? nullptr : member->find(key);
}

bool belongs(const JobKey& key, const Job& job) {
  if (key.section() == "inject") return job.inject.is_given();
  const Family* family = family_of(key);
  return family == nullptr || family->shares(key) || member_key(key, job) != nullptr;
}

std::string choice_path(const JobKey& key) {
  const Family* family = family_of(key);
  return family == nullptr ? "" : fmt::format("{}.{}", family->section, family->choice);
}

std::vector<MemberKey> owners_of(const JobKey& key) {
  const Family* family = family_of(key);
  std::vector<MemberKey> owners;
  if (family == nullptr || family->shares(key)) return owners;
  for (const Member& member : family->members)
    if (const MemberKey* own = member.find(key))
      owners.push_back({member.name, own->fallback, own->required});
  return owners;
}

std::string owners_text(const JobKey& key, bool with_defaults) {
  std::vector<std::string> owners;
  for (const auto& [name, fallback, required] : owners_of(key))
    owners.push_back(with_defaults && !fallback.empty() ? fmt::format("{}: {}", name, fallback)
                                                        : std::string(name));
  return fmt::format("{}", fmt::join(owners, ", "));
}

// The determining keys of a job, read off the schema.

namespace {

bool determines_weights(const JobKey& key, const Job& job) {
  if (!belongs(key, job)) return false;
  if (key.determines == Determines::kWeightsInWorldMode)
    return job.parallel.determinism == Determinism::kWorld;
  if (key.determines == Determines::kWeightsUnlessDefault) return key.write(job) != key.write(Job());
  return key.determines == Determines::kWeights;
}

/// A schedule without a length of its own has that of the run: then epochs determine weights, too.
constexpr const char *kScheduleLength = "train.schedule.total", *kScheduleKind = "train.schedule.kind";
/// By what the list says, not by where it is.
constexpr const char* kLeaveOut = "data.leave_out";

std::string length_from_run(const Job& job) {
  const ScheduleSection& schedule = job.train.schedule;
  if (!find_schedule(schedule).has_end || schedule.total > 0) return "";
  if (schedule.by == "epoch" && schedule.warmup_steps == 0)
    return std::to_string(job.train.epochs - schedule.warmup_epochs);
  return fmt::format("to the end of {} epochs", job.train.epochs);  // compared at a resume, so also of 1
}

std::string value_or_nothing(const std::map<std::string, std::string>& values, const std::string& key) {
  if (const auto found = values.find(key); found != values.end()) return found->second;
  const JobKey* known = find_job_key(key);
  const bool has_default = known != nullptr && known->determines == Determines::kWeightsUnlessDefault;
  return has_default ? known->write(Job()) : "not given";
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

/// Explains a schedule whose length follows train.epochs: names that key, and how to keep the length. A
/// change in the schedule's kind needs no further words.
void name_who_decides_the_length(std::vector<std::string>& differences,
                                 const std::map<std::string, std::string>& then,
                                 const std::map<std::string, std::string>& now) {
  const bool other_kind = value_or_nothing(then, kScheduleKind) != value_or_nothing(now, kScheduleKind);
  const std::string was = value_or_nothing(then, kScheduleLength);
  for (std::string& difference : differences)
    if (difference.starts_with(kScheduleLength))
      difference =
          other_kind
              ? ""
              : fmt::format("the length of the schedule, which ends with train.epochs (was {}, now {}{})",
                            was, now.at(kScheduleLength),
                            parse_int64(was) ? fmt::format("; {}={} keeps it", kScheduleLength, was) : "");
  std::erase(differences, "");
}

/// With its weights as another run's first ones.
std::string how_to_train_on(const std::vector<std::string>& differences, const std::string& checkpoint) {
  const bool other_network = std::ranges::any_of(
      differences, [](const std::string& difference) { return difference.starts_with("model "); });
  return fmt::format(
      ". To train on from its weights with these: {}{} and another run.dir",
      shell_word("train.initial_weights=" + checkpoint.substr(0, checkpoint.rfind("/checkpoints/"))),
      other_network ? " train.partial=true" : "");
}

}  // namespace

std::map<std::string, std::string> determining_keys(const Job& job) {
  std::map<std::string, std::string> values;
  for (const JobKey& key : job_schema())
    if (determines_weights(key, job)) values[key.path] = key.write(job);
  if (const std::string length = length_from_run(job); !length.empty()) values[kScheduleLength] = length;
  if (job.data.leave_out != nullptr) values[kLeaveOut] = job.data.leave_out->contents();
  return values;
}

std::vector<std::string> differing_keys(const std::map<std::string, std::string>& stored,
                                        const std::map<std::string, std::string>& now) {
  std::set<std::string> keys;
  for (const auto* side : {&stored, &now})
    for (const auto& entry : *side) keys.insert(entry.first);
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
  for (const auto& entry : now)
    if (!stored.contains(entry.first)) then[entry.first] = find_job_key(entry.first)->write(defaults);
  auto differences = differing_keys(then, now);
  if (differences.empty()) return;
  if (!length_from_run(job).empty()) name_who_decides_the_length(differences, then, now);
  const std::string ranks = ranks_that_would_do(then, now, job);
  throw ConfigError(fmt::format(
      "{}: was written by a job that trains other weights; what differs: {}. Set these back, choose another "
      "run.dir, or start afresh with run.resume=never{}{}",
      checkpoint, fmt::join(differences, ", "), ranks, how_to_train_on(differences, checkpoint)));
}

}  // namespace lockstep
