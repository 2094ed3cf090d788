// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Commands on other hosts, through $OMPI_MCA_plm_rsh_agent or ssh, and here.
#pragma once

#include <memory>
#include <string>

namespace lockstep {

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

}  // namespace lockstep
