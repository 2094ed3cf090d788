// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Picks the command that a command line names, and turns errors into one line and an exit code.
#pragma once

namespace lockstep {

/// What main() does with its arguments. @return the exit code; every error has been said
int run_command_line(int argc, char** argv);

}  // namespace lockstep
