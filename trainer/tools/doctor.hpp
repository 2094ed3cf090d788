// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What 'lockstep doctor' says, and how it reaches other hosts.
#pragma once

#include "trainer/ranks/checks.hpp"
#include "trainer/run/rank_diagnosis.hpp"

#include <nlohmann/json_fwd.hpp>

#include <memory>
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

/// Letters, digits, '.', '-', '_' and ':', the first neither '-' nor '.': no option of ssh, no path, no shell's character.
bool is_host_name(std::string_view text);

/// Of a hostfile as mpirun reads it: a name a line, slots=N, comments behind #.
/// @throws MissingDataError  no such file; ConfigError  it names no host, one that is_host_name() refuses, or slots= is no
///                           whole number from 1 on
std::vector<ListedHost> read_hostfile(const std::string& path);

/// Runs this program on every host, over $OMPI_MCA_plm_rsh_agent or ssh, compares what the hosts see and tries
/// a TCP connection between each two of them. Takes about five seconds with several hosts.
Diagnosis survey_hosts(const std::vector<ListedHost>& hosts, const Job& job);

/// What survey_hosts runs there: one line, this host's view.
/// @param mark  a file that it should see; empty: none
std::string view_of_this_host(const std::string& mark);

// Other hosts, as the doctor reaches them: commands there, open ports, and the lock of a run that a host of
// yesterday holds.

// Commands on other hosts, through $OMPI_MCA_plm_rsh_agent or ssh, and here.

inline constexpr int kTimedOut = 124;

struct CommandOutput {
  int exit_code = 0;  ///< as a shell has it; kTimedOut: it took longer than ten seconds
  std::string text;   ///< both outputs
};

/// A line for the shell.
CommandOutput run_here(const std::string& line);
/// The same on a host; without an agent if that is this one.
CommandOutput run_on_host(const std::string& host, const std::string& line);

/// A command that goes on while others run.
class RunningCommand {
 public:
  virtual ~RunningCommand() = default;  ///< waits for its end
  /// The first line that it prints, without the line feed; waits for it.
  virtual std::string first_line() = 0;
};
std::unique_ptr<RunningCommand> start_on_host(const std::string& host, const std::string& line);

/// In single quotes.
std::string quoted_for_shell(const std::string& word);

// Frees the lock of a run directory that a job on another host left behind, when that job is gone for certain.

/// Asks the host that the lock names, over ssh, whether the process still runs: it is gone if the machine was
/// started again since, or has no process of that number and start time.
/// @returns what was found and done, one line
/// @throws RunInUseError  it runs, or its host cannot be asked: nothing is changed
std::string take_over_lock(const std::string& run_dir);

// Can one host connect to another? One side waits on a port, the other one tries.

/// What a line of try_to_reach begins with: the host and why not follow.
inline constexpr const char* kNotReached = "not reached: ";

/// Prints the number of a free port, and accepts connections there for so many seconds.
void answer_on_a_port(int seconds);

/// "not reached: node2 (Connection timed out)" for each that was not, a line each.
/// @param targets  "HOST:PORT"
std::string try_to_reach(const std::vector<std::string>& targets);

}  // namespace lockstep
