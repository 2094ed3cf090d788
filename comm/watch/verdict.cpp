// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Plain words for each cause.
#include "comm/watch/failure_detector.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

namespace lockstep::watchdog {
namespace {

std::string full_name(const Peer& peer) {
  return fmt::format("rank {} on {} (pid {}{}{})", peer.who.rank, peer.who.host, peer.who.pid,
                     peer.device.empty() ? "" : ", ", peer.device);
}

std::string what_happened(Cause cause, const Peer& peer, const Scene& scene) {
  const double silent = seconds_since(peer.heard_ns, scene.now_ns);
  switch (cause) {
    case Cause::kDied:
      return "died: its process is gone";
    case Cause::kSilent:
      return fmt::format("has given no sign of life for {:.1f} s{}", silent,
                         peer.is_stopped() ? ": it is stopped" : "");
    case Cause::kStuck:
      return fmt::format("is alive, but has been at the same place for {:.1f} s",
                         seconds_since(peer.where.since_ns, scene.now_ns));
    case Cause::kOutOfStep:
      return "is out of step: it waits for something else than the others";
    case Cause::kNetwork:
      return "";
  }
  return "";
}

std::string last_seen(Cause cause, const Peer& peer, const Scene& scene) {
  const std::int64_t when = cause == Cause::kDied || cause == Cause::kSilent ? peer.heard_ns : scene.now_ns;
  const double ago = seconds_since(when, scene.now_ns);
  return fmt::format("last seen in {}{}", describe(peer.where),
                     ago > 0.05 ? fmt::format(", {:.1f} s ago", ago) : "");
}

std::vector<int> others_of(const Verdict& verdict, const Peers& peers) {
  std::vector<int> ranks;
  for (const Peer& peer : peers) {
    const auto is_in = [&](const std::vector<int>& list) {
      return std::ranges::find(list, peer.who.rank) != list.end();
    };
    if (!is_in(verdict.initiating) && !is_in(verdict.cascading)) ranks.push_back(peer.who.rank);
  }
  return ranks;
}

/// Why it is not known where a rank is. Empty: its beats say so.
std::string absence_of(const Peer& peer, const Scene& scene) {
  if (peer.who.rank == scene.rank) return "";
  if (peer.ended) return "ended";
  if (peer.leaving && peer.farewell.because < 0)
    return fmt::format("left with exit code {}, and said why", peer.farewell.code);
  if (peer.watched || peer.dead || peer.leaving) return "";
  return fmt::format("not reached by the watchdog of rank {}", scene.rank);
}

/// "ranks 0-1, 3: step 12, ..., for 0.2 s", those at the same place together.
std::vector<std::string> who_waits_where(const std::vector<int>& ranks, const Peers& peers,
                                         const Scene& scene) {
  std::map<std::string, std::vector<int>> places, absent;
  for (const int rank : ranks) {
    const Peer& peer = at(peers, rank);
    const std::string absence = absence_of(peer, scene);
    (absence.empty() ? places[describe(peer.where)] : absent[absence]).push_back(rank);
  }
  std::vector<std::string> lines;
  for (const auto& [why, there] : absent) lines.push_back(fmt::format("{}: {}", list_of("rank", there), why));
  for (const auto& [place, there] : places) {
    std::int64_t since = scene.now_ns;
    for (const int rank : there) since = std::min(since, at(peers, rank).where.since_ns);
    lines.push_back(fmt::format("{}: {}, for {:.1f} s", list_of("rank", there), place,
                                seconds_since(since, scene.now_ns)));
  }
  return lines;
}

/// Those whose beats say where they are.
std::vector<int> ranks_here(const Peers& peers, const Scene& scene) {
  std::vector<int> ranks;
  for (const Peer& peer : peers)
    if (absence_of(peer, scene).empty()) ranks.push_back(peer.who.rank);
  return ranks;
}

std::set<std::string> hosts_of(const std::vector<int>& ranks, const Peers& peers) {
  std::set<std::string> hosts;
  for (const int rank : ranks) hosts.insert(at(peers, rank).who.host);
  return hosts;
}

/// True if the ranks are all that there are on their hosts.
bool whole_hosts(const std::vector<int>& ranks, const Peers& peers) {
  const auto on_them = std::ranges::count_if(
      peers, [hosts = hosts_of(ranks, peers)](const Peer& peer) { return hosts.contains(peer.who.host); });
  return on_them == std::ssize(ranks);
}

std::string what_to_try(const Verdict& verdict, const Peers& peers, const Scene& scene) {
  const auto hosts = fmt::format("{}", fmt::join(hosts_of(verdict.initiating, peers), ", "));
  switch (verdict.cause) {
    case Cause::kDied:
      return fmt::format("see what it said last, and dmesg on {} (out of memory?); {}", hosts, scene.restart);
    case Cause::kSilent: {
      const Peer& first = at(peers, verdict.initiating.front());
      if (first.is_stopped())
        return fmt::format("kill -CONT {} on {} would have let it go on; {}", first.who.pid, hosts,
                           scene.restart);
      return fmt::format("look whether {} is up and can be reached (ping, dmesg, a suspended machine); {}",
                         hosts, scene.restart);
    }
    case Cause::kStuck:
      return fmt::format(
          "gdb -p {} on {}, thread apply all bt; a disk that hangs; if it is only slow, raise {}; {}",
          at(peers, verdict.initiating.front()).who.pid, hosts, spelling().timeout, scene.restart);
    case Cause::kOutOfStep:
      return "this is a fault of the program or of that machine: keep the run directory's log/ and report "
             "it; " +
             scene.restart;
    case Cause::kNetwork:
      return fmt::format(
          "{}: check its interfaces (btl_tcp_if_include) and firewalls; if messages are only slow, raise {}; "
          "{}",
          ranks_here(peers, scene).size() == peers.size() ? "the watchdogs reach each other, MPI does not"
                                                          : "see what the other ranks said last, and whether "
                                                            "their hosts are up; if MPI does not reach them",
          spelling().timeout, scene.restart);
  }
  return "";
}

std::string headline(const Verdict& verdict, const Peers& peers, const Scene& scene) {
  if (verdict.cause == Cause::kNetwork) {
    const std::vector<int> here = ranks_here(peers, scene);
    return here.size() == peers.size()
               ? fmt::format("all {} ranks wait, and their messages do not come", peers.size())
               : fmt::format("messages to {} do not come", list_of("rank", here));
  }
  const Peer& first = at(peers, verdict.initiating.front());
  const std::string seen = last_seen(verdict.cause, first, scene);
  if (verdict.cut_off) {
    const auto heard_ns = [&](int rank) { return at(peers, rank).heard_ns; };
    const int last = *std::ranges::max_element(verdict.initiating, {}, heard_ns);
    return fmt::format(
        "rank {} on {} hears no other rank any more, for {:.1f} s: this host is cut off, or all others "
        "are gone",
        scene.rank, at(peers, scene.rank).who.host, seconds_since(heard_ns(last), scene.now_ns));
  }
  if (verdict.initiating.size() == 1)
    return fmt::format("{} {}; {}", full_name(first), what_happened(verdict.cause, first, scene), seen);
  const auto hosts = fmt::format("{}", fmt::join(hosts_of(verdict.initiating, peers), ", "));
  if (whole_hosts(verdict.initiating, peers) && verdict.cause == Cause::kSilent) {
    std::vector<int> ranks = verdict.initiating;
    std::ranges::sort(ranks);
    return fmt::format("{} with all of {} cannot be reached for {:.1f} s; {}", hosts, list_of("rank", ranks),
                       seconds_since(first.heard_ns, scene.now_ns), seen);
  }
  return fmt::format("{} on {}: the first, {} {}; {}", list_of("rank", verdict.initiating), hosts,
                     full_name(first), what_happened(verdict.cause, first, scene), seen);
}

}  // namespace

std::string describe(const RankStatus& where) {
  std::string text = where.step > 0 ? fmt::format("step {}, ", where.step) : "";
  text += phase_name(where.phase);
  if (where.bucket >= 0) text += fmt::format(", bucket {}", where.bucket + 1);
  if (where.waits())
    text += fmt::format(", waiting in {} (collective {})", where.place_text(), where.collective);
  return text;
}

std::vector<std::string> describe(const Verdict& verdict, const Peers& peers, const Scene& scene) {
  std::vector<std::string> lines{"verdict: " + headline(verdict, peers, scene)};
  if (verdict.cause != Cause::kNetwork && !verdict.cut_off)
    lines.push_back(fmt::format(
        "  initiating: {}{}", list_of("rank", verdict.initiating),
        verdict.cascading.empty() ? "" : fmt::format("; cascading: {}", list_of("rank", verdict.cascading))));
  for (const std::string& line : who_waits_where(others_of(verdict, peers), peers, scene))
    lines.push_back("  " + line);
  lines.push_back("  try: " + what_to_try(verdict, peers, scene));
  return lines;
}

std::string silence_notice(const Peer& peer, const Scene& scene) {
  const double silent = seconds_since(peer.heard_ns, scene.now_ns);
  const std::string help = peer.is_stopped()
                               ? fmt::format(": it is stopped, kill -CONT {} lets it go on", peer.who.pid)
                           : peer.is_debugged() ? ": a debugger holds it, and all wait as long as that takes"
                                                : "";
  return fmt::format("{} is silent for {:.1f} s{}; {}. The others wait, until {:g} s ({}) are over",
                     full_name(peer), silent, help, last_seen(Cause::kSilent, peer, scene),
                     scene.timeout_seconds, spelling().timeout);
}

std::string return_notice(const Peer& peer, double silent_seconds) {
  return fmt::format("{} is back after {:.1f} s; the run goes on", full_name(peer), silent_seconds);
}

std::string cut_notice(const Peer& self, double seconds, double timeout_seconds) {
  return fmt::format(
      "rank {} on {} (pid {}) hears no other rank for {:.1f} s: this host is cut off, or all others are "
      "gone. It waits, until {:g} s ({}) are over",
      self.who.rank, self.who.host, self.who.pid, seconds, timeout_seconds, spelling().timeout);
}

std::string uncut_notice(const Peer& self, double seconds) {
  return fmt::format("rank {} on {} hears the others again after {:.1f} s; the run goes on", self.who.rank,
                     self.who.host, seconds);
}

std::string stuck_notice(const Peer& peer, const Scene& scene) {
  return fmt::format("{} is alive, but has been in {} for {:.1f} s; the others wait for it", full_name(peer),
                     describe(peer.where), seconds_since(peer.where.since_ns, scene.now_ns));
}

}  // namespace lockstep::watchdog
