// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Other hosts, as the doctor reaches them: commands there, open ports, and the lock of a run that a host of
/// yesterday holds.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace lockstep {

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
