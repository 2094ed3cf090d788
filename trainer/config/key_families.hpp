// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Keys that not every job has: those of the optimiser, of the schedule, of the scaling rule, of the parallel
/// strategy that it chose, and of a fault on purpose.
#pragma once

#include "trainer/config/job_key.hpp"
#include "trainer/optimizers/member.hpp"

#include <string>

namespace lockstep {

/// Whether the job's choice has this key. True for keys that belong to no choice; but those of `inject` only
/// where it is given.
bool belongs(const JobKey& key, const Job& job);

/// What the job's choice says of this key, or null.
const MemberKey* member_key(const JobKey& key, const Job& job);

/// The path of the choice that the key depends on, "train.optimizer.kind"; "" if it depends on none.
std::string choice_path(const JobKey& key);

/// For people: which choices have the key, "sgd, adam"; "" for a key that belongs to no choice.
std::string owners_text(const JobKey& key);
/// Likewise, "sgd, adam: 0.001, adamw: 0.001", with the defaults that are not the key's own.
std::string owners_with_defaults(const JobKey& key);

/// The names of a family's members, for the schema.
std::vector<std::string_view> optimizer_names();
std::vector<std::string_view> schedule_names();
std::vector<std::string_view> strategy_names();

}  // namespace lockstep
