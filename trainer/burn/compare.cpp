// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Compares ranks: senders of damaged messages, wrong sums, slow ranks and links. Speeds are the best of many
/// short tries, since other programs may share a core; only ranks on like processors are compared.
#include "common/buffers.hpp"
#include "common/text_layout.hpp"
#include "trainer/burn/check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::burn {
namespace {

using Ranks = std::vector<RankResult>;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Blames one of several ranks of which none can be told from the others.
void blame(RankResult& result, const char* kind, const char* what) {
  result.findings.push_back(
      {Grade::kWrong, kind, what, "start it on half of the hosts, then on the other half"});
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
    Accusations& mine = at(all, result.rank);
    for (const LinkView& link : result.links) {
      ++mine.partners;
      mine.as_receiver += link.damaged > 0 ? 1 : 0;
      mine.in_sums += link.wrong_sums > 0 ? 1 : 0;
      at(all, link.with).as_sender += link.damaged > 0 ? 1 : 0;
    }
  }
  return all;
}

/// Ranks with the highest `count`; all of them if all have the same count.
std::vector<int> most_accused(const std::vector<Accusations>& all, int Accusations::*count) {
  const int most = std::ranges::max(all, {}, count).*count;
  std::vector<int> found;
  for (int rank = 0; const Accusations& one : all) {
    if (most > 0 && one.*count == most) found.push_back(rank);
    ++rank;
  }
  return found;
}

constexpr const char* kMessageFix =
    "look at the counters of this host's network interface, and at its memory; try other cables, or other "
    "transports (mpirun --mca btl, NCCL_P2P_DISABLE=1)";

/// The end that more partners accuse; both ends where they are accused alike.
void name_damaged_messages(Ranks& ranks, const std::vector<Accusations>& all) {
  const int by_sender = std::ranges::max(all, {}, &Accusations::as_sender).as_sender;
  const int by_receiver = std::ranges::max(all, {}, &Accusations::as_receiver).as_receiver;
  const auto name = [&](const char* did, int Accusations::*count, int most) {
    for (const int rank : most_accused(all, count))
      at(ranks, rank)
          .findings.push_back({Grade::kWrong, "message",
                               fmt::format("messages that it {} were damaged, with {} of {}{}", did, most,
                                           counted(at(all, rank).partners, "partner"),
                                           by_sender == by_receiver ? "; either end may be at fault" : ""),
                               kMessageFix});
  };
  if (by_sender >= by_receiver) name("sent", &Accusations::as_sender, by_sender);
  if (by_receiver >= by_sender) name("received", &Accusations::as_receiver, by_receiver);
}

void name_wrong_sums(Ranks& ranks, const std::vector<Accusations>& all) {
  const std::vector<int> accused = most_accused(all, &Accusations::in_sums);
  for (const int rank : accused) {
    const Accusations& mine = at(all, rank);
    at(ranks, rank)
        .findings.push_back(
            {Grade::kWrong, "sum",
             fmt::format("an all-reduce of it and one other rank gave wrong integers, with {} of {}{}",
                         mine.in_sums, counted(mine.partners, "partner"),
                         accused.size() > 1 ? "; either of the two may be at fault" : ""),
             kMessageFix});
  }
  const bool all_sums =
      std::ranges::any_of(ranks, [](const RankResult& r) { return r.wrong_sums_of_all > 0; });
  if (!all_sums || !accused.empty()) return;
  for (RankResult& result : ranks)
    blame(result, "sum", "the all-reduce of all ranks gave wrong integers, that of no pair did");
}

/// Those that trained together.
void name_wrong_jobs(Ranks& ranks) {
  if (std::ranges::any_of(ranks, [](const RankResult& r) { return grade_of(r) == Grade::kWrong; })) return;
  for (RankResult& result : ranks)
    if (result.wrong_jobs_of_all > 0)
      blame(result, "job", "ranks together trained to other weights, none of them alone did");
}

// Speeds.

constexpr const char* kTraining = "training";

void note_comparison(RankResult& result) {
  result.exercised["speed"] = "beside the other ranks";
}

/// Seconds of the trainings alone of the other ranks with processor, device and number of threads as this one's.
std::vector<double> trainings_of_likes(const Ranks& ranks, const RankResult& mine) {
  std::vector<double> values;
  for (const RankResult& other : ranks)
    if (other.rank != mine.rank && other.processor == mine.processor && other.device == mine.device &&
        other.threads == mine.threads)
      if (const auto found = other.measures.find(kTraining); found != other.measures.end())
        values.push_back(found->second);
  return values;
}

/// True if the rank had its cores nearly to itself.
bool has_its_cores(const RankResult& result) {
  constexpr double kNearly = 0.8;
  const auto share = result.measures.find("share of core");
  return !result.oversubscribed && (share == result.measures.end() || share->second >= kNearly);
}

/// Doubles the tolerance above 1 for a rank that shares its cores.
void name_slow_ranks(Ranks& ranks) {
  constexpr double kLimit = 1.5;
  for (RankResult& result : ranks) {
    const auto own = result.measures.find(kTraining);
    const std::vector<double> others = trainings_of_likes(ranks, result);
    if (own == result.measures.end() || others.empty()) continue;
    note_comparison(result);
    const double factor = own->second / median_of(others);
    if (factor < (has_its_cores(result) ? kLimit : 2 * kLimit - 1)) continue;
    result.findings.push_back(
        {Grade::kSlow, "rank",
         fmt::format("its trainings alone take {:.1f} times as long as the median of {} like it", factor,
                     counted(others.size(), "rank")),
         "look for other programs on its cores or GPU (top, nvidia-smi) and at its clock (turbostat, "
         "nvidia-smi -q -d CLOCK): cooling, power limit, governor, firmware"});
  }
}

/// Links within a host are of one kind, those between hosts of another.
bool is_between_hosts(const Ranks& ranks, const RankResult& from, const LinkView& link) {
  return at(ranks, link.with).host != from.host;
}

/// Comparison of one property of links. On shared cores some messages always wait for a core, however many tries.
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
    if (is_between_hosts(ranks, result, link) == between_hosts) keep_quickest(best, link.*rule.seconds);
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
    if (own == 0 || others.size() < 2) continue;
    note_comparison(result);
    const double least =
        has_its_cores(result) ? rule.least_difference : rule.least_difference_on_shared_cores;
    if (!is_slow_link(own, median_of(others), least)) continue;
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
      const RankResult& other = at(ranks, link.with);
      if (is_between_hosts(ranks, result, link) != between_hosts || link.received < kLeastMessages) continue;
      if (!has_its_cores(result) || !has_its_cores(other)) continue;
      const double own = best_link(ranks, result, between_hosts, rule),
                   usual = std::max(own, best_link(ranks, other, between_hosts, rule));
      if (!is_slow_link(link.*rule.seconds, usual, rule.least_difference)) continue;
      found = true;
      result.findings.push_back(
          {Grade::kSlow, "link",
           fmt::format("a message of {} to rank {} on {} and back takes {:.1f} ms, to others {:.1f} ms",
                       rule.size, link.with, other.host, link.*rule.seconds * 1e3, own * 1e3),
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
