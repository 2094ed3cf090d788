// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Death at once, silence and standstill with deadlines, being out of step when it is certain.
#include "comm/watch/failure_detector.hpp"

#include <map>
#include <tuple>
#include <utility>

namespace lockstep::watchdog {
namespace {

bool is_there(const Peer& peer) {
  return peer.watched && !peer.dead && !peer.leaving;
}

/// Also one that leaves because of another rank: it may be the one that says so.
bool can_speak(const Peer& peer) {
  return is_there(peer) || (peer.leaving && peer.farewell.because >= 0 && !peer.dead);
}

bool in_a_step(Phase phase) {
  return phase == Phase::kComputing || phase == Phase::kReducing || phase == Phase::kUpdating;
}

/// True if the waiting rank may be waiting for it.
bool is_behind(const RankStatus& where, const RankStatus& waiting) {
  return !where.waits() && (where.collective < waiting.collective || waiting.waiting != Waiting::kForAll);
}

/// By then steps of this start take as long as they do.
constexpr std::int64_t kStepsToLearn = 20;
/// All wait for so long at the same collective in different places: nothing of that is only late news.
constexpr double kOutOfStepSeconds = 2;
/// Signs of life come twice a second: ranks that fell silent together are last heard so far apart.
constexpr double kSilentTogetherSeconds = 1;

/// Tells the rank that was lost first, and those within so many seconds of it, from later ones, which followed.
template <typename WhenNs>
Verdict blame_first(Cause cause, const std::vector<int>& lost, const WhenNs& when_ns, double seconds) {
  const int first = *std::ranges::min_element(lost, {}, when_ns);
  Verdict verdict{.cause = cause};
  for (const int rank : lost) {
    const bool with_it = seconds_since(when_ns(first), when_ns(rank)) < seconds;
    (with_it ? verdict.initiating : verdict.cascading).push_back(rank);
  }
  std::stable_partition(verdict.initiating.begin(), verdict.initiating.end(),
                        [&](int rank) { return rank == first; });
  return verdict;
}

}  // namespace

Limits Limits::for_timeout(double seconds) {
  Limits limits;
  limits.timeout_seconds = seconds;
  limits.silent_seconds = std::min(limits.silent_seconds, seconds / 2);
  limits.least_stuck_seconds = std::min(limits.least_stuck_seconds, seconds);
  return limits;
}

std::chrono::milliseconds Limits::beat_interval() const {
  return std::chrono::milliseconds(std::clamp(static_cast<int>(silent_seconds * 1000 / 6), 10, 500));
}

Findings FailureDetector::look(std::int64_t now_ns, const Peers& peers) {
  memory_.resize(peers.size());
  Findings findings;
  if (over_) return findings;
  learn(now_ns, at(peers, rank_).where);
  findings.adopted = over_ = must_follow(now_ns, peers);
  if (over_) return findings;
  for (const auto find : {&FailureDetector::find_deaths, &FailureDetector::find_silence,
                          &FailureDetector::find_stuck, &FailureDetector::find_out_of_step}) {
    findings.verdict = (this->*find)(now_ns, peers);
    over_ = findings.verdict.has_value();
    if (over_) return findings;
  }
  notice_silence(now_ns, peers, findings);
  notice_cut(now_ns, peers, findings);
  notice_stuck(now_ns, peers, findings);
  return findings;
}

/// Waits and steps that have ended say how long one may take.
void FailureDetector::learn(std::int64_t now_ns, const RankStatus& own) {
  if (own.step != step_) {
    if (step_began_ns_ != 0) longest_step_ns_ = std::max(longest_step_ns_, now_ns - step_began_ns_);
    step_ = own.step;
    step_began_ns_ = now_ns;
  }
  const bool same = own.waits() && own.collective == wait_;
  if (!same) longest_wait_ns_ = std::max(longest_wait_ns_, wait_age_ns_);
  wait_ = own.collective;
  wait_age_ns_ = own.waits() ? now_ns - own.since_ns : 0;
}

double FailureDetector::learnt(double least, double factor, std::int64_t longest_ns) const {
  return std::min(limits_.timeout_seconds, std::max(least, factor * static_cast<double>(longest_ns) * 1e-9));
}

bool FailureDetector::is_silent(const Peer& peer, std::int64_t now_ns) const {
  return can_speak(peer) && seconds_since(peer.heard_ns, now_ns) > limits_.silent_seconds;
}

bool FailureDetector::speaks(std::int64_t now_ns, const Peers& peers) const {
  return std::none_of(peers.begin(), peers.begin() + rank_,
                      [&](const Peer& peer) { return can_speak(peer) && !is_silent(peer, now_ns); });
}

bool FailureDetector::may_be_cut_off(std::int64_t now_ns, const Peers& peers) const {
  return std::ranges::none_of(peers, [&](const Peer& peer) {
    const bool explained = !is_silent(peer, now_ns) || peer.is_stopped();
    return peer.who.rank != rank_ && can_speak(peer) && explained;
  });
}

/// A rank has said why all leave; or this one is alone, and the launcher had time to act.
bool FailureDetector::must_follow(std::int64_t now_ns, const Peers& peers) const {
  return std::ranges::any_of(peers, [&](const Peer& peer) {
    if (!peer.leaving) return false;
    if (peer.farewell.because >= 0) return peer.farewell.spoken;
    return seconds_since(peer.heard_ns, now_ns) > limits_.excused_seconds;
  });
}

/// Once for each silence, by the rank that speaks then: with a cut network that is clear only later.
void FailureDetector::notice_silence(std::int64_t now_ns, const Peers& peers, Findings& findings) {
  const bool speaker = speaks(now_ns, peers) && (rank_ == 0 || !may_be_cut_off(now_ns, peers));
  const Scene scene{rank_, now_ns, limits_.timeout_seconds};
  for (const Peer& peer : peers) {
    if (peer.who.rank == rank_) continue;
    Memory& memory = at(memory_, peer.who.rank);
    const bool was_silent = std::exchange(memory.silent, is_silent(peer, now_ns));
    if (memory.silent && !was_silent) memory.silent_since = peer.heard_ns;
    if (memory.silent && speaker && !std::exchange(memory.said, true))
      findings.notices.push_back(silence_notice(peer, scene));
    if (!memory.silent && std::exchange(memory.said, false) && is_there(peer))
      findings.notices.push_back(return_notice(peer, seconds_since(memory.silent_since, now_ns)));
  }
}

/// In place of a word on each of the others; rank 0 names them, for it is with the launcher.
void FailureDetector::notice_cut(std::int64_t now_ns, const Peers& peers, Findings& findings) {
  const std::vector<int> silent = silent_ranks(now_ns, peers);
  const bool cut = rank_ != 0 && may_be_cut_off(now_ns, peers) && !silent.empty();
  const Peer& self = at(peers, rank_);
  if (cut && cut_since_ns_ == 0) {
    for (const int rank : silent) cut_since_ns_ = std::max(cut_since_ns_, at(peers, rank).heard_ns);
    findings.notices.push_back(
        cut_notice(self, seconds_since(cut_since_ns_, now_ns), limits_.timeout_seconds));
  } else if (!cut && cut_since_ns_ != 0) {
    findings.notices.push_back(uncut_notice(self, seconds_since(std::exchange(cut_since_ns_, 0), now_ns)));
  }
}

void FailureDetector::notice_stuck(std::int64_t now_ns, const Peers& peers, Findings& findings) {
  const auto late = laggards(now_ns, peers, learnt(limits_.least_stuck_notice_seconds, 10, longest_wait_ns_));
  const bool speaker = speaks(now_ns, peers);
  for (const Peer& peer : peers) {
    Memory& memory = at(memory_, peer.who.rank);
    const bool is_late = std::ranges::find(late, peer.who.rank) != late.end();
    if (is_late && !memory.stuck && speaker)
      findings.notices.push_back(stuck_notice(peer, {rank_, now_ns, limits_.timeout_seconds}));
    memory.stuck = is_late;
  }
}

std::vector<int> FailureDetector::silent_ranks(std::int64_t now_ns, const Peers& peers) const {
  std::vector<int> ranks;
  for (const Peer& peer : peers)
    if (peer.who.rank != rank_ && is_silent(peer, now_ns)) ranks.push_back(peer.who.rank);
  return ranks;
}

/// Ranks that this one waits for, which are alive, do not wait themselves, and have not moved for so long.
std::vector<int> FailureDetector::laggards(std::int64_t now_ns, const Peers& peers, double seconds) const {
  const RankStatus& own = at(peers, rank_).where;
  std::vector<int> ranks;
  if (!own.waits() || seconds_since(own.since_ns, now_ns) < seconds) return ranks;
  for (const Peer& peer : peers) {
    const RankStatus& where = peer.where;
    const bool behind = is_behind(where, own) && in_a_step(where.phase);
    if (peer.who.rank != rank_ && is_there(peer) && !is_silent(peer, now_ns) && behind &&
        seconds_since(where.since_ns, now_ns) >= seconds)
      ranks.push_back(peer.who.rank);
  }
  return ranks;
}

/// Deaths settle first: others may have died with it.
std::optional<Verdict> FailureDetector::find_deaths(std::int64_t now_ns, const Peers& peers) const {
  std::vector<int> died;
  for (const Peer& peer : peers)
    if (peer.dead && !peer.leaving) died.push_back(peer.who.rank);
  if (died.empty()) return std::nullopt;
  const auto lost_ns = [&](int rank) { return at(peers, rank).lost_ns; };
  auto verdict = blame_first(Cause::kDied, died, lost_ns, limits_.settle_seconds);
  // With no other rank left there is nothing to wait for, and the launcher leaves this rank little time.
  const bool others_left =
      std::ranges::any_of(peers, [&](const Peer& peer) { return peer.who.rank != rank_ && is_there(peer); });
  const std::int64_t first_ns = lost_ns(verdict.initiating.front());
  if (others_left && seconds_since(first_ns, now_ns) < limits_.settle_seconds) return std::nullopt;
  return verdict;
}

std::optional<Verdict> FailureDetector::find_silence(std::int64_t now_ns, const Peers& peers) const {
  if (held_by_debugger(peers)) return std::nullopt;
  const bool is_time = std::ranges::any_of(silent_ranks(now_ns, peers), [&](int rank) {
    return seconds_since(at(peers, rank).heard_ns, now_ns) > limits_.timeout_seconds;
  });
  return is_time ? blame_silent(now_ns, peers) : std::nullopt;
}

/// A rank that may be cut off itself cannot tell the first from the others.
std::optional<Verdict> FailureDetector::blame_silent(std::int64_t now_ns, const Peers& peers) const {
  const std::vector<int> silent = silent_ranks(now_ns, peers);
  if (silent.empty()) return std::nullopt;
  if (silent.size() > 1 && may_be_cut_off(now_ns, peers))
    return Verdict{.cause = Cause::kSilent, .initiating = silent, .cut_off = true};
  const auto heard_ns = [&](int rank) { return at(peers, rank).heard_ns; };
  return blame_first(Cause::kSilent, silent, heard_ns, kSilentTogetherSeconds);
}

std::optional<Verdict> FailureDetector::find_stuck(std::int64_t now_ns, const Peers& peers) const {
  const RankStatus& own = at(peers, rank_).where;
  if (own.step - own.steps_before < kStepsToLearn || held_by_debugger(peers)) return std::nullopt;
  // Ranks that work equally hardly wait, however long their steps are.
  const std::int64_t longest_ns = std::max(longest_wait_ns_, longest_step_ns_);
  auto late = laggards(now_ns, peers, learnt(limits_.least_stuck_seconds, 50, longest_ns));
  if (late.empty()) return std::nullopt;
  return Verdict{.cause = Cause::kStuck, .initiating = std::move(late)};
}

/// At one and the same collective some wait for this and some for that: that will never end.
std::optional<Verdict> FailureDetector::find_out_of_step(std::int64_t now_ns, const Peers& peers) const {
  std::map<std::string, std::vector<const Peer*>> places;
  const std::uint64_t collective = at(peers, rank_).where.collective;
  for (const Peer& peer : peers) {
    if (peer.who.rank != rank_ && !is_there(peer)) continue;
    const RankStatus& where = peer.where;
    if (where.waiting != Waiting::kForAll || where.collective != collective ||
        seconds_since(where.since_ns, now_ns) < kOutOfStepSeconds)
      return std::nullopt;
    places[std::string(where.place_text())].push_back(&peer);
  }
  if (places.size() < 2) return std::nullopt;
  // Those in the regular place are many, or in the sums of gradients, or with rank 0.
  const auto regularity = [](const std::vector<const Peer*>& group) {
    return std::tuple(group.size(), group.front()->where.phase == Phase::kReducing, -group.front()->who.rank);
  };
  const auto regular = std::ranges::max_element(
      places, [&](const auto& a, const auto& b) { return regularity(a.second) < regularity(b.second); });
  Verdict verdict{.cause = Cause::kOutOfStep};
  for (const auto& [place, group] : places) {
    if (place == regular->first) continue;
    for (const Peer* peer : group) verdict.initiating.push_back(peer->who.rank);
  }
  std::ranges::sort(verdict.initiating);
  return verdict;
}

Verdict FailureDetector::find_overdue(std::int64_t now_ns, const Peers& peers) const {
  if (const auto death = find_deaths(now_ns, peers)) return *death;
  if (const auto step = find_out_of_step(now_ns, peers)) return *step;
  if (const auto silence = blame_silent(now_ns, peers)) return *silence;
  Verdict verdict;
  const RankStatus& own = at(peers, rank_).where;
  for (const Peer& peer : peers)
    if (peer.who.rank != rank_ && is_there(peer) && is_behind(peer.where, own))
      verdict.initiating.push_back(peer.who.rank);
  verdict.cause = verdict.initiating.empty() ? Cause::kNetwork : Cause::kStuck;
  return verdict;
}

}  // namespace lockstep::watchdog
