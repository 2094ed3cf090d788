// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What 'lockstep doctor' says.
#pragma once

#include "trainer/ranks/checks.hpp"
#include "trainer/run/rank_diagnosis.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// What a launcher says when it cannot start ranks, or lost one, in plain words: mpirun's pages are long, and the
// cause stands in one line of them.

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

/// Of a launcher's output.
std::string to_text(const std::vector<LogFinding>& findings, bool unicode);
nlohmann::ordered_json to_json(const std::vector<LogFinding>& findings);

// The hosts of a hostfile, looked at one by one over ssh, without MPI: for launches that hang or never start.

struct ListedHost {
  std::string name;
  int slots = 1;
};

/// Of a hostfile as mpirun reads it: a name a line, slots=N, comments behind #.
/// @throws MissingDataError  no such file; ConfigError  it names no host, or slots= is no number
std::vector<ListedHost> read_hostfile(const std::string& path);

/// Runs this program on every host, over $OMPI_MCA_plm_rsh_agent or ssh, compares what the hosts see and tries
/// a TCP connection between each two of them. Takes about five seconds with several hosts.
Diagnosis survey_hosts(const std::vector<ListedHost>& hosts, const Job& job);

/// What survey_hosts runs there: one line, this host's view.
/// @param mark  a file that it should see; empty: none
std::string view_of_this_host(const std::string& mark);

}  // namespace lockstep
