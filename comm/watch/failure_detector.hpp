// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Decides from signs of life what is to be said and done. No clock, no network, no printing.
#pragma once

#include "comm/watch/message.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::watchdog {

// The rank to blame when the ranks cannot go on, and the words for it.

enum class Cause {
  kDied,       ///< its process is gone
  kSilent,     ///< no sign of life
  kStuck,      ///< alive, and does not come
  kOutOfStep,  ///< waits for something else than the others
  kNetwork,    ///< all wait for the same, and their messages do not come
};

struct Verdict {
  Cause cause = Cause::kDied;
  std::vector<int> initiating = {};  ///< the ranks with which it began, the first in front
  std::vector<int> cascading = {};   ///< lost because of those
  bool cut_off = false;              ///< this rank hears no other any more: itself may be lost
};

/// Facts that the text needs beside the peers.
struct Scene {
  int rank = 0;  ///< the speaker
  std::int64_t now_ns = 0;
  double timeout_seconds = 0;
  std::string restart = "start it again";  ///< advice about a lost rank
};

/// Several lines; the first says all that matters: rank, cause, where last seen. The others: device and pid, when;
/// the ranks lost because of it; the waiting ranks and where; advice.
/// @param peers  by rank, this rank among them
std::vector<std::string> describe(const Verdict& verdict, const Peers& peers, const Scene& scene);

/// One line for the waiting ranks: this rank is silent, since when, and what will happen.
std::string silence_notice(const Peer& peer, const Scene& scene);
std::string return_notice(const Peer& peer, double silent_seconds);
/// Says of this rank itself that it hears no other rank, or one again.
std::string cut_notice(const Peer& self, double seconds, double timeout_seconds);
std::string uncut_notice(const Peer& self, double seconds);
std::string stuck_notice(const Peer& peer, const Scene& scene);

/// Describes it: "step 12, computing, bucket 1"
std::string describe(const RankStatus& where);

/// Not negative.
inline double seconds_since(std::int64_t then_ns, std::int64_t now_ns) {
  return std::max(0.0, static_cast<double>(now_ns - then_ns) * 1e-9);
}

struct Limits {
  double timeout_seconds = 300;  ///< silent for so long: lost
  double silent_seconds = 3;     ///< without a sign of life: named
  double settle_seconds = 0.15;  ///< after a death: others may have died with it
  double least_stuck_seconds =
      60;  ///< alive without progress: lost, not before; 50 times the longest wait or step so far
  double least_stuck_notice_seconds = 4.5;  ///< and named; 10 times
  double excused_seconds = 3;               ///< after a rank left for other reasons, before the others do

  /// Those for a given timeout: of silence and standstill, never longer than it.
  static Limits for_timeout(double seconds);
  /// From one sign of life to the next: a rank that misses six counts as silent.
  std::chrono::milliseconds beat_interval() const;
};

struct Findings {
  std::vector<std::string> notices;  ///< for people, from one rank only
  std::optional<Verdict> verdict;    ///< once
  bool adopted = false;              ///< another rank has spoken: leave without a word
};

class FailureDetector {
 public:
  FailureDetector(int rank, const Limits& limits) : rank_(rank), limits_(limits) {}

  /// To be called a few times a second. @param peers  by rank; this rank's `where` is current
  Findings look(std::int64_t now_ns, const Peers& peers);
  /// The main thread has waited too long, or the communication failed.
  Verdict find_overdue(std::int64_t now_ns, const Peers& peers) const;

  /// True if a debugger holds a rank.
  static bool held_by_debugger(const Peers& peers) { return std::ranges::any_of(peers, &Peer::is_debugged); }
  bool is_silent(const Peer& peer, std::int64_t now_ns) const;
  /// True if this rank has the lowest number of all that it can hear: it speaks for them.
  bool speaks(std::int64_t now_ns, const Peers& peers) const;
  /// True if it hears none of the others, and nothing says why: it may be lost itself. A rank that is seen to be
  /// stopped is silent for that reason.
  bool may_be_cut_off(std::int64_t now_ns, const Peers& peers) const;

 private:
  struct Memory {
    bool silent = false, stuck = false;
    bool said = false;  ///< by this rank: that it is silent
    std::int64_t silent_since = 0;
  };

  void learn(std::int64_t now_ns, const RankStatus& own);
  void notice_silence(std::int64_t now_ns, const Peers& peers, Findings& findings);
  void notice_cut(std::int64_t now_ns, const Peers& peers, Findings& findings);
  void notice_stuck(std::int64_t now_ns, const Peers& peers, Findings& findings);
  std::optional<Verdict> find_deaths(std::int64_t now_ns, const Peers& peers) const;
  std::optional<Verdict> find_silence(std::int64_t now_ns, const Peers& peers) const;
  std::optional<Verdict> blame_silent(std::int64_t now_ns, const Peers& peers) const;
  std::optional<Verdict> find_stuck(std::int64_t now_ns, const Peers& peers) const;
  std::optional<Verdict> find_out_of_step(std::int64_t now_ns, const Peers& peers) const;
  bool must_follow(std::int64_t now_ns, const Peers& peers) const;
  std::vector<int> silent_ranks(std::int64_t now_ns, const Peers& peers) const;
  std::vector<int> laggards(std::int64_t now_ns, const Peers& peers, double seconds) const;
  double learnt(double least, double factor, std::int64_t longest_ns) const;

  int rank_;
  Limits limits_;
  std::vector<Memory> memory_;
  std::uint64_t wait_ = 0;            ///< the collective that this rank had come to when last looked at
  std::int64_t wait_age_ns_ = 0;      ///< and how long it had waited by then
  std::int64_t longest_wait_ns_ = 0;  ///< among waits that ended
  std::int64_t step_ = -1;            ///< this rank's when last looked at
  std::int64_t step_began_ns_ = 0;    ///< 0: not known
  std::int64_t longest_step_ns_ = 0;  ///< among steps that ended, with what came between them
  std::int64_t cut_since_ns_ = 0;     ///< it hears no rank since then, and has said so; 0: it hears one
  bool over_ = false;
};

}  // namespace lockstep::watchdog
