// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Scenarios as lines for people and as a picture.
#pragma once

#include "tests/scaling/scenario.hpp"

#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A head and a line for each, at most 79 columns; then how far the model is off.
std::vector<std::string> scaling_table(std::span<const Scenario> scenarios);

/// Efficiency and exposed communication against ranks: a line for each way to all-reduce and number of
/// buckets, dashed what the model says. Equal scenarios have equal bytes.
std::string scaling_svg(std::span<const Scenario> scenarios, const std::string& title);

}  // namespace lockstep
