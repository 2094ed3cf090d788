// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Text that an action of a test shows on a terminal.
#pragma once

#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"

#include <pty.h>
#include <unistd.h>

namespace lockstep::test {

/// First line that an action writes to standard output, a terminal of so many columns meanwhile. All that it writes must
/// fit into the buffer of a terminal, 4 KiB: it is read after it.
/// @param columns  0: the terminal does not know them
inline std::string drawn_by(std::uint16_t columns, const std::function<void()>& action) {
  const SetVariable term("TERM", "xterm"), alone("OMPI_COMM_WORLD_RANK", nullptr), locale("LC_ALL", "C");
  const winsize window{24, columns, 0, 0};
  int screen = -1, terminal = -1;
  if (::openpty(&screen, &terminal, nullptr, nullptr, &window) != 0) return "there is no terminal to be had";
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  ::dup2(terminal, STDOUT_FILENO);
  action();
  std::fputs("\n", stdout);
  std::fflush(stdout);
  ::dup2(before, STDOUT_FILENO);
  std::string text;
  for (char byte = 0; byte != '\n' && ::read(screen, &byte, 1) == 1;) text += byte;
  for (const int descriptor : {before, screen, terminal}) ::close(descriptor);
  return text;
}

}  // namespace lockstep::test
