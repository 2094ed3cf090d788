// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The program.
#include "trainer/commands/command_line.hpp"

int main(int argc, char** argv) {
  return lockstep::run_command_line(argc, argv);
}
