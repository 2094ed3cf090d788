// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The hosts of a hostfile, looked at one by one over ssh, without MPI: for launches that hang or never start.
#pragma once

#include "trainer/run/rank_diagnosis.hpp"

#include <string>
#include <vector>

namespace lockstep {

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
