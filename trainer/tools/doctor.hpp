// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Prints what 'lockstep doctor' finds, knows the messages of launchers, and reads hostfiles.
#pragma once

#include "trainer/run/rank_diagnosis.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Launcher messages about ranks that did not start or were lost, in plain words. mpirun prints pages, and the
// cause is one line of them.

struct LogFinding : Finding {
  std::string id;  ///< "not-enough-slots"
};

/// Everything that is recognised in the output of mpirun, mpiexec, srun and ranks, each once.
std::vector<LogFinding> read_launch_log(std::string_view text);

inline constexpr int kDoctorFormat = 1;

/// A table of ranks, the probe, the settings, and a line for each check.
/// @param unicode  with ticks and crosses; otherwise in ASCII
std::string to_text(const Diagnosis& diagnosis, bool unicode);
nlohmann::ordered_json to_json(const Diagnosis& diagnosis);

/// Findings in a launcher's output.
std::string to_text(const std::vector<LogFinding>& findings, bool unicode);
nlohmann::ordered_json to_json(const std::vector<LogFinding>& findings);

// The hosts of a hostfile, for launch/run, which takes no word of one unchecked.

struct ListedHost {
  std::string name;
  int slots = 1;
};

/// Reads a hostfile as mpirun does: a name a line, slots=N, comments after #. In place of slots= it may have count=,
/// cpu= or max_slots=. A name that comes again adds its slots; each is once in the list. A name has letters, digits,
/// '.', '-' and '_', or is an IPv6 address, the first neither '-' nor '.': no option of ssh, no path, no shell's
/// character.
/// @throws MissingDataError  no such file; IoError  it cannot be read to its end
/// @throws ConfigError  it names no host; or, with its line: another word, or N is not a whole number from 1 on
std::vector<ListedHost> read_hostfile(const std::string& path);

}  // namespace lockstep
