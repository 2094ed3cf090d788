// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The one table of all keys of a job file: parsing, messages, help, to_yaml and the resume check are made
/// from it.
#pragma once

#include "trainer/config/job_key.hpp"

#include <string_view>
#include <vector>

namespace lockstep {

/// All keys in the order of the job file; the keys of a section stand together.
const std::vector<JobKey>& job_schema();

/// The key with this path, or null.
const JobKey* find_job_key(std::string_view path);

/// Whether `path` is a section: "train", "train.optimizer". "" is the whole job and counts.
bool is_job_section(std::string_view path);

/// The names of the keys and sections directly in a section, in order.
std::vector<std::string_view> names_in_section(std::string_view section);

}  // namespace lockstep
