// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Child program in a session of its own, so that everything it started can be found and cleared away. That
/// holds even after it has died itself.
#pragma once

#include "tests/support/prelude.hpp"

#include <sys/types.h>

namespace lockstep::chaos {

using Environment = std::vector<std::string>;  ///< NAME=value, beside what this process has

class ChildProcess {
 public:
  /// Starts `command` (looked up in PATH) with its output in two files. Exit code 127: there is none.
  ChildProcess(const std::vector<std::string>& command, const Environment& environment,
               const std::string& out_path, const std::string& err_path);
  /// Kills what is left of the session.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  /// Nothing while it runs. Then its exit code, 128 + n if signal n ended it, as a shell has it.
  std::optional<int> exit_code();
  /// Exit code after waiting for at most `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit);

  /// Living processes of its session whose executable is called `name`, in order of their ids.
  std::vector<pid_t> members(const std::string& name) const;

  /// Waits until nothing of the session lives any more. False after `limit`.
  bool wait_until_gone(std::chrono::milliseconds limit);
  /// SIGKILL to the whole session until nothing of it lives.
  void clear_away();

  /// From now on nothing is started any more: a call that tries waits until this process ends.
  static void start_no_more();

 private:
  pid_t pid_ = 0;
  std::optional<int> exit_code_;
};

bool is_alive(pid_t process);

/// All that this process has started, and what those have, dead or alive; orphans, too, once it adopts them.
std::vector<pid_t> descendants();

/// Orphans of sessions become children of this process, which then knows when they are gone. Call once.
void adopt_orphans();

// A campaign and its guard, two processes that watch each other. Whichever ends first, and be it by SIGKILL,
// nothing that the campaign started lives on.

/// Runs `campaign` in a process of its own and returns what it returns. If this one is told to end (TERM, INT, HUP),
/// the campaign is killed, with all its descendants, its scratch directories are removed, and this process ends by
/// that signal; if the campaign dies, the same, and 128 + its signal is returned; if this process is killed, the
/// campaign does it. Call it before there are threads.
int run_guarded(const std::function<int()>& campaign);

}  // namespace lockstep::chaos
