// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Who is to blame when the ranks cannot go on, and the words for it.
#pragma once

#include "comm/watchdog/peer.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::watchdog {

enum class Cause {
  kDied,       ///< its process is gone
  kSilent,     ///< no sign of life
  kStuck,      ///< alive, and does not come
  kOutOfStep,  ///< waits for something else than the others
  kNetwork,    ///< all wait for the same, and their messages do not come
};

struct Verdict {
  Cause cause = Cause::kDied;
  std::vector<int> initiating = {};  ///< the ranks with which it began
  std::vector<int> cascading = {};   ///< lost because of those
  bool cut_off = false;              ///< this rank hears no other any more: itself may be lost
};

/// What the text needs beside the peers.
struct Scene {
  int rank = 0;  ///< who speaks
  std::int64_t now_ns = 0;
  double timeout_seconds = 0;
  std::string restart = "start it again";  ///< what to do about a lost rank
};

/// Several lines; the first says all that matters: who, what, where last seen. The others: device and pid, when;
/// who was lost because of it; who waits where; what to try.
/// @param peers  by rank, this rank among them
std::vector<std::string> describe(const Verdict& verdict, const std::vector<Peer>& peers, const Scene& scene);

/// One line for those who wait: this rank is silent, since when, and what will happen.
std::string silence_notice(const Peer& peer, const Scene& scene);
std::string return_notice(const Peer& peer, double silent_seconds);
/// Of this rank itself: it hears no other rank, or one again.
std::string cut_notice(const Peer& self, double seconds, double timeout_seconds);
std::string uncut_notice(const Peer& self, double seconds);
std::string stuck_notice(const Peer& peer, const Scene& scene);

/// "ranks 0-2 and 5"
std::string list_of_ranks(const std::vector<int>& ranks);
/// "step 12, computing, behind bucket 1"
std::string describe(const Whereabouts& where);

}  // namespace lockstep::watchdog
