// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Comparison of the ranks.
#include "tests/trainer/burn/healthy_ranks.hpp"

namespace lockstep::burn {
namespace {

LinkView& link(std::vector<RankResult>& ranks, int from, int with) {
  for (LinkView& view : at(ranks, from).links)
    if (view.with == with) return view;
  throw std::logic_error("no such link");
}

void damage(std::vector<RankResult>& ranks, int from, int to) {
  link(ranks, to, from).damaged = 1;
}
void set_seconds(std::vector<RankResult>& ranks, int a, int b, double seconds) {
  link(ranks, a, b).seconds = link(ranks, b, a).seconds = seconds;
}

/// "WRONG 2 message: what", a line for each finding.
std::string said(std::vector<RankResult> ranks, bool speeds = true) {
  compare_ranks(ranks, speeds);
  std::string text;
  for (const RankResult& result : ranks)
    for (const BurnFinding& finding : result.findings)
      text += fmt::format("{} {} {}: {}\n", spelt(finding.grade), result.rank, finding.kind, finding.what);
  return text;
}

/// Rank and kind of each: "2 message, 5 link"
std::string named(const std::vector<RankResult>& ranks) {
  std::istringstream lines(said(ranks));
  std::string text;
  for (std::string line; std::getline(lines, line);)
    text += (text.empty() ? "" : ", ") + line.substr(0, line.find(':')).substr(line.find(' ') + 1);
  return text;
}

TEST(BurnComparison, FindsNothingAmongHealthyRanks) {
  for (const int ranks : {1, 2, 3, 7}) {
    EXPECT_EQ(named(healthy(ranks, 1)), "");
    EXPECT_EQ(named(healthy(ranks, 2)), "");
  }
}

TEST(BurnComparison, NamesWhoSendsOrReceivesDamagedMessages) {
  const std::string messages = "WRONG 2 message: messages that it ",
                    damaged = " were damaged, with 3 of 3 partners\n";
  auto ranks = healthy(4, 4);
  for (const int to : {0, 1, 3}) damage(ranks, 2, to);
  EXPECT_EQ(said(ranks), messages + "sent" + damaged);
  ranks = healthy(4, 4);
  for (const int from : {0, 1, 3}) damage(ranks, from, 2);
  EXPECT_EQ(said(ranks), messages + "received" + damaged);
}

/// Two ranks alone, and one message of many ranks: sender and receiver are accused by one partner each.
TEST(BurnComparison, NamesBothEndsOfAMessageWhereNeitherIsAccusedMore) {
  const auto at_end = [](const char* did, const char* of) {
    return fmt::format(
        " message: messages that it {} were damaged, with 1 of {}; either end may be at fault\n", did, of);
  };
  auto ranks = healthy(2, 1);
  damage(ranks, 1, 0);
  EXPECT_EQ(said(ranks),
            "WRONG 0" + at_end("received", "1 partner") + "WRONG 1" + at_end("sent", "1 partner"));
  ranks = healthy(4, 1);
  damage(ranks, 3, 1);
  EXPECT_EQ(said(ranks),
            "WRONG 1" + at_end("received", "3 partners") + "WRONG 3" + at_end("sent", "3 partners"));
}

TEST(BurnComparison, NamesWhoseSumsAreWrong) {
  auto ranks = healthy(3, 3);
  for (const int with : {0, 2}) link(ranks, 1, with).wrong_sums = link(ranks, with, 1).wrong_sums = 4;
  const std::string sums = " sum: an all-reduce of it and one other rank gave wrong integers, with ";
  EXPECT_EQ(said(ranks), "WRONG 1" + sums + "2 of 2 partners\n");
  ranks[2].wrong_sums_of_all = 1;
  EXPECT_EQ(said(ranks), "WRONG 1" + sums + "2 of 2 partners\n") << "it explains those of all";
  ranks = healthy(3, 3);
  link(ranks, 0, 2).wrong_sums = link(ranks, 2, 0).wrong_sums = 1;
  EXPECT_EQ(said(ranks), "WRONG 0" + sums + "1 of 2 partners; either of the two may be at fault\nWRONG 2" +
                             sums + "1 of 2 partners; either of the two may be at fault\n");
  ranks = healthy(3, 3);
  ranks[0].wrong_sums_of_all = 1;
  EXPECT_EQ(named(ranks), "0 sum, 1 sum, 2 sum") << "no pair is wrong: it may be any";
}

TEST(BurnComparison, NamesTheRankWhoseLinksAreSlow) {
  auto ranks = healthy(3, 1);
  for (const int with : {0, 1}) set_seconds(ranks, 2, with, 60e-3);
  EXPECT_EQ(
      said(ranks),
      "SLOW 2 link: its quickest message of 1 MiB to another host takes 60.0 ms, the others' 10.0 ms\n");
  EXPECT_EQ(said(ranks, false), "") << "speeds are not compared";
  ranks = healthy(3, 3);
  set_seconds(ranks, 0, 2, 50e-3), set_seconds(ranks, 1, 2, 60e-3);
  EXPECT_EQ(said(ranks),
            "SLOW 2 link: its quickest message of 1 MiB within its host takes 50.0 ms, the others' 1.0 ms\n");
  ranks = healthy(2, 1);
  set_seconds(ranks, 0, 1, 60e-3);
  EXPECT_EQ(said(ranks), "") << "one link has no other to compare it with";
  link(ranks, 0, 1).seconds = 200e-3;
  EXPECT_EQ(said(ranks), "") << "nor has it where its ends saw other times";
  ranks = healthy(4, 2);
  for (const int a : {0, 1})
    for (const int b : {2, 3}) set_seconds(ranks, a, b, 60e-3);
  EXPECT_EQ(said(ranks), "") << "there is one way between the hosts, and nothing to compare it with";
}

TEST(BurnComparison, NamesBothEndsOfOneSlowLink) {
  auto ranks = healthy(4, 1);
  set_seconds(ranks, 1, 3, 60e-3);
  EXPECT_EQ(said(ranks),
            "SLOW 1 link: a message of 1 MiB to rank 3 on node3 and back takes 60.0 ms, to others 10.0 ms\n"
            "SLOW 3 link: a message of 1 MiB to rank 1 on node1 and back takes 60.0 ms, to others 10.0 ms\n");
  auto quick = ranks;
  set_seconds(quick, 0, 1, 4e-3);
  EXPECT_EQ(said(quick),
            "SLOW 1 link: a message of 1 MiB to rank 3 on node3 and back takes 60.0 ms, to others 4.0 ms\n"
            "SLOW 3 link: a message of 1 MiB to rank 1 on node1 and back takes 60.0 ms, to others 10.0 ms\n")
      << "the times of each to others are its own";
  ranks[3].oversubscribed = true;
  EXPECT_EQ(said(ranks), "") << "one of the two shares its cores";
  ranks[3].oversubscribed = false, ranks[0].oversubscribed = true;
  EXPECT_EQ(named(ranks), "1 link, 3 link") << "others may share theirs";
  ranks = healthy(6, 2);
  set_seconds(ranks, 1, 3, 60e-3);
  EXPECT_EQ(named(ranks), "1 link, 3 link") << "their first links are within a host, or quick";
  ranks = healthy(5, 1);
  for (const int end : {3, 4}) set_seconds(ranks, 1, end, 60e-3);
  EXPECT_EQ(named(ranks), "1 link, 3 link, 4 link") << "a rank is named once";
}

TEST(BurnComparison, NamesALongCableByItsSmallMessages) {
  auto ranks = healthy(4, 1);
  for (const int with : {0, 2, 3}) link(ranks, 1, with).latency = link(ranks, with, 1).latency = 5e-3;
  EXPECT_EQ(
      said(ranks),
      "SLOW 1 link: its quickest message of 8 bytes to another host takes 5.0 ms, the others' 0.1 ms\n");
  auto shared = ranks;
  for (RankResult& rank : shared) rank.oversubscribed = true;
  EXPECT_EQ(said(shared), "") << "on shared cores messages wait for one";
  for (const int with : {0, 2, 3}) set_seconds(ranks, 1, with, 60e-3);
  EXPECT_EQ(named(ranks), "1 link") << "once, though large ones are slow, too";
}

TEST(BurnComparison, ComparesSpeedsOfLikeProcessorsAlone) {
  auto ranks = healthy(4, 4);
  ranks[3].measures["training"] = 16e-3;
  EXPECT_EQ(said(ranks),
            "SLOW 3 rank: its trainings alone take 1.6 times as long as the median of 3 ranks like it\n");
  ranks[3].processor = "Xeon";
  EXPECT_EQ(named(ranks), "");
  ranks = healthy(5, 5);
  for (int rank = 0; const double seconds : {8e-3, 10e-3, 30e-3, 16e-3, 5e-3})
    at(ranks, rank++).measures["training"] = seconds;
  const std::string times = " rank: its trainings alone take ",
                    likes = " times as long as the median of 4 ranks like it\n";
  EXPECT_EQ(said(ranks), "SLOW 2" + times + "3.0" + likes + "SLOW 3" + times + "1.6" + likes);
  ranks = healthy(2, 2);
  ranks[1].measures.clear();
  EXPECT_EQ(named(ranks), "") << "a rank that was stopped has no time to compare";
  ranks = healthy(4, 4);
  ranks[0].processor = "Xeon", ranks[3].measures["training"] = 16e-3;
  EXPECT_EQ(named(ranks), "3 rank") << "the first one has no like, the others have";
}

TEST(BurnComparison, ComparesSpeedsOfEqualDevicesAndThreadsAlone) {
  auto ranks = healthy(3, 3);
  ranks[2].measures["training"] = 40e-3;
  EXPECT_EQ(named(ranks), "2 rank");
  ranks[2].threads = 4;
  EXPECT_EQ(named(ranks), "") << "other ranks have one thread";
  ranks[2].threads = 1, ranks[2].device = "cpu (AVX2)";
  EXPECT_EQ(named(ranks), "");
  ranks[1].device = ranks[2].device;
  EXPECT_EQ(named(ranks), "2 rank");
}

TEST(BurnComparison, SpeedsAreTestedOnlyBesideOthers) {
  const auto tested = [](std::vector<RankResult> ranks) {
    compare_ranks(ranks, true);
    return std::ranges::count_if(ranks,
                                 [](const RankResult& rank) { return rank.exercised.contains("speed"); });
  };
  EXPECT_EQ(tested(healthy(2, 2)), 2) << "by trainings";
  auto links = healthy(3, 3);
  for (RankResult& rank : links) rank.measures.clear();
  EXPECT_EQ(tested(links), 3) << "by links";
  links[2].links.clear();
  EXPECT_EQ(tested(links), 0) << "of three ranks one has none, and two are too few";
  for (RankResult& rank : links) rank.links.clear();
  EXPECT_EQ(tested(links), 0) << "nothing was timed";
  auto two = healthy(2, 2);
  two[1].processor = "Xeon";
  EXPECT_EQ(tested(two), 0) << "there is one link, and one training on each processor";
}

/// Half as long again is slow; twice as long for a rank with less than four fifths of its core.
TEST(BurnComparison, SlowRanksBeginAtTheirLimit) {
  auto ranks = healthy(3, 3);
  for (RankResult& rank : ranks) rank.measures["training"] = 1;
  const auto named_at = [&](double seconds, double share) {
    ranks[1].measures["training"] = seconds, ranks[1].measures["share of core"] = share;
    return named(ranks);
  };
  EXPECT_EQ(named_at(1.5, 1), "1 rank");
  EXPECT_EQ(named_at(1.4375, 1), "");
  EXPECT_EQ(named_at(1.5, 0.8), "1 rank");
  EXPECT_EQ(named_at(1.9375, 0.75), "");
  EXPECT_EQ(named_at(2, 0.75), "1 rank");
}

/// Thrice the time of others and 4 ms more, in a dozen messages.
TEST(BurnComparison, SlowLinksBeginAtTheirLimit) {
  const auto named_at = [](double large, double small, std::int64_t messages) {
    auto ranks = healthy(4, 1);
    for (RankResult& rank : ranks)
      for (LinkView& view : rank.links) view.received = messages;
    set_seconds(ranks, 1, 3, large);
    link(ranks, 1, 3).latency = link(ranks, 3, 1).latency = small;
    return named(ranks);
  };
  EXPECT_EQ(named_at(29e-3, 1e-4, 12), "");
  EXPECT_EQ(named_at(31e-3, 1e-4, 12), "1 link, 3 link");
  EXPECT_EQ(named_at(31e-3, 1e-4, 11), "");
  EXPECT_EQ(named_at(10e-3, 4.0e-3, 12), "") << "3.9 ms more";
  EXPECT_EQ(named_at(10e-3, 4.2e-3, 12), "1 link, 3 link");
  EXPECT_EQ(named_at(60e-3, 6e-3, 12), "1 link, 3 link") << "once, though large ones are slow, too";
}

/// All links of a rank: 4 ms more. On shared cores 6 ms for small messages, 20 ms for large ones.
TEST(BurnComparison, SlowEndsBeginAtTheirLimit) {
  const auto named_at = [](double LinkView::*time, double seconds, bool shared) {
    auto ranks = healthy(3, 3);
    for (RankResult& rank : ranks) rank.oversubscribed = shared;
    for (const int with : {0, 1}) link(ranks, 2, with).*time = link(ranks, with, 2).*time = seconds;
    return named(ranks);
  };
  EXPECT_EQ(named_at(&LinkView::seconds, 5e-3, false), "") << "4 ms more, and no longer";
  EXPECT_EQ(named_at(&LinkView::seconds, 5.1e-3, false), "2 link");
  EXPECT_EQ(named_at(&LinkView::seconds, 20.9e-3, true), "");
  EXPECT_EQ(named_at(&LinkView::seconds, 21.1e-3, true), "2 link");
  EXPECT_EQ(named_at(&LinkView::latency, 6.05e-3, true), "");
  EXPECT_EQ(named_at(&LinkView::latency, 6.15e-3, true), "2 link");
  auto ranks = healthy(3, 3);
  for (RankResult& rank : ranks)
    for (LinkView& view : rank.links) view.seconds = rank.rank == 2 || view.with == 2 ? 0.1875 : 0.0625;
  EXPECT_EQ(named(ranks), "") << "thrice the time of others, and no longer";
}

TEST(BurnComparison, ALinkThatWasNotTimedIsNotSlow) {
  auto ranks = healthy(3, 3);
  for (LinkView& view : ranks[2].links) {
    LinkView untimed;
    untimed.with = view.with, untimed.received = view.received;
    view = untimed;
  }
  EXPECT_EQ(named(ranks), "");
}

TEST(BurnComparison, BlamesTheRanksOfAWrongTrainingOnlyWhereNoneIsKnown) {
  auto ranks = healthy(3, 2);
  ranks[0].wrong_jobs_of_all = ranks[1].wrong_jobs_of_all = 1;
  const std::string wrong = " job: ranks together trained to other weights, none of them alone did\n";
  EXPECT_EQ(said(ranks), "WRONG 0" + wrong + "WRONG 1" + wrong);
  ranks[1].findings.push_back({Grade::kWrong, "sum", "", ""});
  EXPECT_EQ(named(ranks), "1 sum");
}

}  // namespace
}  // namespace lockstep::burn
