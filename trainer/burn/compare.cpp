// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What shows only beside the other ranks: who sends damaged messages, whose sums are wrong, who is slow. Speeds are
/// the best of many short tries, since other programs may share a core; those on like processors are compared.
#include "common/text_layout.hpp"
#include "trainer/burn/burn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace lockstep::burn {
namespace {

using Ranks = std::vector<RankResult>;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string host_of(const Ranks& ranks, int rank) {
  return ranks[static_cast<std::size_t>(rank)].host;
}

// Damaged messages and wrong sums of pairs.

/// How many of the other ranks hold something against a rank.
struct Accusations {
  int as_sender = 0, as_receiver = 0, in_sums = 0;
  int partners = 0;  ///< ranks that it exchanged anything with
};

std::vector<Accusations> accusations_of(const Ranks& ranks) {
  std::vector<Accusations> all(ranks.size());
  for (const RankResult& result : ranks) {
    Accusations& mine = all[static_cast<std::size_t>(result.rank)];
    for (const LinkView& link : result.links) {
      ++mine.partners;
      mine.as_receiver += link.damaged > 0 ? 1 : 0;
      mine.in_sums += link.wrong_sums > 0 ? 1 : 0;
      all[static_cast<std::size_t>(link.with)].as_sender += link.damaged > 0 ? 1 : 0;
    }
  }
  return all;
}

/// The ranks of which `count` says more than of any other; all of them if it says the same of all.
std::vector<int> most_accused(const std::vector<Accusations>& all, int Accusations::*count) {
  int most = 0;
  for (const Accusations& one : all) most = std::max(most, one.*count);
  std::vector<int> found;
  for (std::size_t rank = 0; rank < all.size() && most > 0; ++rank)
    if (all[rank].*count == most) found.push_back(static_cast<int>(rank));
  return found;
}

constexpr const char* kMessageFix =
    "look at the counters of this host's network interface, and at its memory; try other cables, or other "
    "transports (mpirun --mca btl, NCCL_P2P_DISABLE=1)";

void name_damaged_messages(Ranks& ranks, const std::vector<Accusations>& all) {
  std::vector<int> senders = most_accused(all, &Accusations::as_sender);
  const std::vector<int> receivers = most_accused(all, &Accusations::as_receiver);
  if (senders.empty()) return;
  const int by_sender = all[static_cast<std::size_t>(senders.front())].as_sender;
  const int by_receiver = all[static_cast<std::size_t>(receivers.front())].as_receiver;
  const bool receives_wrong = by_receiver > by_sender;
  for (const int rank : receives_wrong ? receivers : senders)
    ranks[static_cast<std::size_t>(rank)].findings.push_back(
        {Grade::kWrong, "message",
         fmt::format("messages that it {} were damaged, with {} of {}", receives_wrong ? "received" : "sent",
                     receives_wrong ? by_receiver : by_sender,
                     counted(all[static_cast<std::size_t>(rank)].partners, "partner")),
         kMessageFix});
}

void name_wrong_sums(Ranks& ranks, const std::vector<Accusations>& all) {
  const std::vector<int> accused = most_accused(all, &Accusations::in_sums);
  for (const int rank : accused) {
    const Accusations& mine = all[static_cast<std::size_t>(rank)];
    ranks[static_cast<std::size_t>(rank)].findings.push_back(
        {Grade::kWrong, "sum",
         fmt::format("an all-reduce of it and one other rank came to wrong integers, with {} of {}{}",
                     mine.in_sums, counted(mine.partners, "partner"),
                     accused.size() > 1 ? "; it cannot be told which of the two is at fault" : ""),
         kMessageFix});
  }
  const bool all_sums =
      std::ranges::any_of(ranks, [](const RankResult& r) { return r.wrong_sums_of_all > 0; });
  if (!all_sums || !accused.empty()) return;
  for (RankResult& result : ranks)
    result.findings.push_back({Grade::kWrong, "sum",
                               "the all-reduce of all ranks came to wrong integers, that of no pair did",
                               "start it on half of the hosts, then on the other half"});
}

void name_wrong_jobs(Ranks& ranks) {
  const bool wrong = std::ranges::any_of(ranks, [](const RankResult& r) { return r.wrong_jobs_of_all > 0; });
  const bool known =
      std::ranges::any_of(ranks, [](const RankResult& r) { return grade_of(r) == Grade::kWrong; });
  if (!wrong || known) return;
  for (RankResult& result : ranks)
    result.findings.push_back({Grade::kWrong, "job",
                               "all ranks together trained to other weights, none of them alone did",
                               "start it on half of the hosts, then on the other half"});
}

// Speeds.

/// Of every rank: those with a processor, device and number of threads like its own, but for itself.
std::vector<const RankResult*> likes_of(const Ranks& ranks, const RankResult& mine) {
  std::vector<const RankResult*> likes;
  for (const RankResult& other : ranks)
    if (other.rank != mine.rank && other.processor == mine.processor && other.device == mine.device &&
        other.threads == mine.threads)
      likes.push_back(&other);
  return likes;
}

/// Whether a rank had the cores that it computed on nearly to itself.
bool has_its_cores(const RankResult& result) {
  constexpr double kNearly = 0.8;
  const auto share = result.measures.find("share of core");
  return !result.oversubscribed && (share == result.measures.end() || share->second >= kNearly);
}

struct SpeedRule {
  const char* measure;
  const char* kind;
  bool more_is_better;
  double factor;  ///< from here on it is slow; where its cores are shared, from twice as much above 1
  const char* what;
  const char* fix;
};

constexpr SpeedRule kSpeedRules[] = {{"clock", "clock", true, 1.25, "its fused multiply-adds run",
                                      "compare its clock with the others' (turbostat, nvidia-smi -q -d "
                                      "CLOCK): cooling, power limit, governor, firmware"},
                                     {"products", "rank", false, 1.5, "its products take",
                                      "look for other programs on its cores (top), for a core shared by "
                                      "hyper-threads, and at its memory channels"},
                                     {"copies there", "copy", false, 1.5, "copies to its device take",
                                      "look at the width and speed of its PCIe link (lspci -vv, nvidia-smi "
                                      "-q), and at which socket it is bound to"},
                                     {"copies back", "copy", false, 1.5, "copies from its device take",
                                      "look at the width and speed of its PCIe link (lspci -vv, nvidia-smi "
                                      "-q), and at which socket it is bound to"}};

/// @returns how many times slower than the median of its likes; 0: there are none
double slowness(const Ranks& ranks, const RankResult& mine, const SpeedRule& rule) {
  const auto own = mine.measures.find(rule.measure);
  std::vector<double> others;
  for (const RankResult* like : likes_of(ranks, mine))
    if (const auto its = like->measures.find(rule.measure); its != like->measures.end())
      others.push_back(its->second);
  if (own == mine.measures.end() || others.empty()) return 0;
  const double median = median_of(others);
  return rule.more_is_better ? median / own->second : own->second / median;
}

void name_slow_ranks(Ranks& ranks) {
  for (RankResult& result : ranks)
    for (const SpeedRule& rule : kSpeedRules) {
      const double factor = slowness(ranks, result, rule);
      if (factor < (has_its_cores(result) ? rule.factor : 2 * rule.factor - 1)) continue;
      result.findings.push_back({Grade::kSlow, rule.kind,
                                 fmt::format("{} {:.1f} times {} the median of {} like it", rule.what, factor,
                                             rule.more_is_better ? "slower than" : "as long as",
                                             counted(likes_of(ranks, result).size(), "rank")),
                                 rule.fix});
    }
}

/// Links within a host are of one kind, those between hosts of another.
bool is_between_hosts(const Ranks& ranks, const RankResult& from, const LinkView& link) {
  return host_of(ranks, link.with) != from.host;
}

/// What of a link is compared. Where cores are shared, messages wait for a core now and then, however often one tries.
struct LinkRule {
  double LinkView::*seconds;
  double least_difference, least_difference_on_shared_cores;  ///< seconds
  const char* size;
};

constexpr LinkRule kLinkRules[] = {{&LinkView::latency, 0.004, 0.006, "8 bytes"},
                                   {&LinkView::seconds, 0.004, 0.02, "1 MiB"}};

/// The quickest of a rank's links of a kind; 0: it has none.
double best_link(const Ranks& ranks, const RankResult& result, bool between_hosts, const LinkRule& rule) {
  double best = 0;
  for (const LinkView& link : result.links)
    if (is_between_hosts(ranks, result, link) == between_hosts && (best == 0 || link.*rule.seconds < best))
      best = link.*rule.seconds;
  return best;
}

constexpr const char* kLinkFix =
    "look at speed and errors of this host's network interface (ethtool, ibstat), at its cable and port, and "
    "at the interface that MPI takes (--mca btl_tcp_if_include)";

bool is_slow_link(double seconds, double others, double least_difference) {
  constexpr double kFactor = 3;
  return others > 0 && seconds > kFactor * others && seconds - others > least_difference;
}

/// All links of one rank are slow, which needs two others that are not.
bool name_slow_ends(Ranks& ranks, bool between_hosts, const LinkRule& rule) {
  bool found = false;
  for (RankResult& result : ranks) {
    const double own = best_link(ranks, result, between_hosts, rule);
    std::vector<double> others;
    for (const RankResult& other : ranks)
      if (const double best = best_link(ranks, other, between_hosts, rule);
          other.rank != result.rank && best > 0)
        others.push_back(best);
    const double least =
        has_its_cores(result) ? rule.least_difference : rule.least_difference_on_shared_cores;
    if (own == 0 || others.size() < 2 || !is_slow_link(own, median_of(others), least)) continue;
    found = true;
    result.findings.push_back(
        {Grade::kSlow, "link",
         fmt::format("its quickest message of {} {} takes {:.1f} ms, the others' {:.1f} ms", rule.size,
                     between_hosts ? "to another host" : "within its host", own * 1e3,
                     median_of(others) * 1e3),
         kLinkFix});
  }
  return found;
}

/// One link between two ranks that are quick with others. It has been tried often, by ranks that were there at once.
bool name_slow_pairs(Ranks& ranks, bool between_hosts, const LinkRule& rule) {
  constexpr std::int64_t kLeastMessages = 12;
  bool found = false;
  for (RankResult& result : ranks)
    for (const LinkView& link : result.links) {
      const RankResult& other = ranks[static_cast<std::size_t>(link.with)];
      if (is_between_hosts(ranks, result, link) != between_hosts || link.received < kLeastMessages) continue;
      if (!has_its_cores(result) || !has_its_cores(other)) continue;
      const double usual = std::max(best_link(ranks, result, between_hosts, rule),
                                    best_link(ranks, other, between_hosts, rule));
      if (!is_slow_link(link.*rule.seconds, usual, rule.least_difference)) continue;
      found = true;
      result.findings.push_back(
          {Grade::kSlow, "link",
           fmt::format("a message of {} to rank {} on {} and back takes {:.1f} ms, to others {:.1f} ms",
                       rule.size, link.with, other.host, link.*rule.seconds * 1e3, usual * 1e3),
           kLinkFix});
      break;
    }
  return found;
}

/// A link that is slow with small messages is as slow with large ones: it is named once.
void name_slow_links(Ranks& ranks, bool between_hosts) {
  for (const LinkRule& rule : kLinkRules)
    if (name_slow_ends(ranks, between_hosts, rule) || name_slow_pairs(ranks, between_hosts, rule)) return;
}

}  // namespace

void compare_ranks(std::vector<RankResult>& ranks, bool speeds) {
  const std::vector<Accusations> accusations = accusations_of(ranks);
  name_damaged_messages(ranks, accusations);
  name_wrong_sums(ranks, accusations);
  name_wrong_jobs(ranks);
  if (!speeds) return;
  name_slow_ranks(ranks);
  for (const bool between_hosts : {false, true}) name_slow_links(ranks, between_hosts);
}

}  // namespace lockstep::burn
