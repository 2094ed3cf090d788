// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What one rank knows of another.
#pragma once

#include "comm/watchdog/message.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::watchdog {

/// Who a rank is, and where its watchdog listens. Handed over by MPI.
struct Identity {
  int rank = 0;
  std::string host;
  int pid = 0;
  std::vector<std::string> addresses;  ///< of its host, the likeliest first
  int port = 0;
};

/// Of this rank itself, `where` alone counts.
struct Peer {
  Identity who;
  bool watched = false;  ///< there was a connection once, and no goodbye since
  bool dead = false;     ///< its process is gone
  bool leaving = false;  ///< it said that it ends
  Leaving farewell;
  std::int64_t heard_ns = 0;  ///< this rank's clock: its last sign of life
  Whereabouts where;          ///< as of then; since_ns by this rank's clock
  std::string device;
  bool traced = false;       ///< held by a debugger
  char state = '?';          ///< as a rank on its host sees it in /proc; '?': not seen
  std::int64_t lost_ns = 0;  ///< when it was found dead
  bool in_proc = false;      ///< /proc of this host shows its process
  bool ending = false;       ///< and showed once that it ends
  bool noted = false;        ///< its death is in the flight record
};

}  // namespace lockstep::watchdog
