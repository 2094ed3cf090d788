// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What 'lockstep doctor' says.
#pragma once

#include "trainer/doctor/diagnosis.hpp"
#include "trainer/doctor/launch_log.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace lockstep {

inline constexpr int kDoctorFormat = 1;

/// A table of ranks, the probe, the settings, and a line for each check.
/// @param unicode  with ticks and crosses; otherwise in ASCII
std::string to_text(const Diagnosis& diagnosis, bool unicode);
nlohmann::ordered_json to_json(const Diagnosis& diagnosis);

/// Of a launcher's output.
std::string to_text(const std::vector<LogFinding>& findings, bool unicode);
nlohmann::ordered_json to_json(const std::vector<LogFinding>& findings);

}  // namespace lockstep
