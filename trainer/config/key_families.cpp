// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The families of keys, made from the catalogues of optimisers, schedules and strategies.
#include "trainer/config/key_families.hpp"

#include "trainer/config/strategy_kinds.hpp"
#include "trainer/optimizers/optimizer.hpp"
#include "trainer/optimizers/schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

struct Member {
  std::string_view name;
  std::vector<MemberKey> keys;
};

struct Family {
  std::string_view section;
  std::string_view choice;  ///< the key that names the member
  const std::string& (*chosen)(const Job&);
  /// Keys of the section that all members have; none named: those that no member has.
  std::vector<std::string_view> common;
  std::vector<Member> members;
};

template <class Kinds>
std::vector<Member> members_of(const Kinds& kinds) {
  std::vector<Member> members;
  for (const auto& kind : kinds) members.push_back({kind.name, kind.keys});
  return members;
}

std::vector<Member> scaling_members() {
  std::vector<Member> members;
  for (const std::string_view rule : lr_scaling_rules()) {
    members.push_back({rule, {}});
    if (rule != LrScalingSection().rule) members.back().keys.push_back({"base_batch"});
  }
  return members;
}

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {.section = "train.optimizer",
       .choice = "kind",
       .chosen = [](const Job& job) -> const std::string& { return job.train.optimizer.kind; },
       .common = {"kind", "decay_biases"},
       .members = members_of(optimizer_kinds())},
      {.section = "train.optimizer.lr_scaling",
       .choice = "rule",
       .chosen = [](const Job& job) -> const std::string& { return job.train.optimizer.lr_scaling.rule; },
       .common = {"rule"},
       .members = scaling_members()},
      {.section = "train.schedule",
       .choice = "kind",
       .chosen = [](const Job& job) -> const std::string& { return job.train.schedule.kind; },
       .common = {"kind", "by", "warmup_epochs", "warmup_steps", "warmup_start"},
       .members = members_of(schedule_kinds())},
      {.section = "parallel",
       .choice = "strategy",
       .chosen = [](const Job& job) -> const std::string& { return job.parallel.strategy; },
       .common = {},
       .members = members_of(strategy_kinds())}};
  return all;
}

const Family* family_of(const JobKey& key) {
  const auto found = std::ranges::find(families(), key.section(), &Family::section);
  return found == families().end() ? nullptr : &*found;
}

const MemberKey* key_of(const Member& member, const JobKey& key) {
  const auto found = std::ranges::find(member.keys, key.leaf(), &MemberKey::name);
  return found == member.keys.end() ? nullptr : &*found;
}

bool is_common(const Family& family, const JobKey& key) {
  if (family.common.empty())
    return std::ranges::none_of(family.members, [&](const Member& m) { return key_of(m, key) != nullptr; });
  return std::ranges::find(family.common, key.leaf()) != family.common.end();
}

/// What `text` says of each member that has the key.
template <class Text>
std::string join_owners(const JobKey& key, const Text& text) {
  const Family* family = family_of(key);
  if (family == nullptr || is_common(*family, key)) return "";
  std::vector<std::string> owners;
  for (const Member& member : family->members) {
    if (const MemberKey* own = key_of(member, key)) owners.push_back(text(member, *own));
  }
  return fmt::format("{}", fmt::join(owners, ", "));
}

std::vector<std::string_view> names_of(const std::vector<Member>& members) {
  std::vector<std::string_view> names;
  for (const Member& member : members) names.push_back(member.name);
  return names;
}

}  // namespace

const MemberKey* member_key(const JobKey& key, const Job& job) {
  const Family* family = family_of(key);
  if (family == nullptr) return nullptr;
  const auto member = std::ranges::find(family->members, family->chosen(job), &Member::name);
  return member == family->members.end() ? nullptr : key_of(*member, key);
}

bool belongs(const JobKey& key, const Job& job) {
  if (key.section() == "inject") return job.inject.is_given();
  const Family* family = family_of(key);
  return family == nullptr || is_common(*family, key) || member_key(key, job) != nullptr;
}

std::string choice_path(const JobKey& key) {
  const Family* family = family_of(key);
  return family == nullptr ? "" : fmt::format("{}.{}", family->section, family->choice);
}

std::string owners_text(const JobKey& key) {
  return join_owners(key,
                     [](const Member& member, const MemberKey& /*own*/) { return std::string(member.name); });
}

std::string owners_with_defaults(const JobKey& key) {
  return join_owners(key, [](const Member& member, const MemberKey& own) {
    return own.fallback.empty() ? std::string(member.name) : fmt::format("{}: {}", member.name, own.fallback);
  });
}

std::vector<std::string_view> optimizer_names() {
  return names_of(families()[0].members);
}

std::vector<std::string_view> schedule_names() {
  return names_of(families()[2].members);
}

std::vector<std::string_view> strategy_names() {
  return names_of(families()[3].members);
}

}  // namespace lockstep
