// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Comparison of the ranks, and its report.
#include "common/text_layout.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/burn/burn.hpp"

namespace lockstep::burn {
namespace {

/// Healthy ranks, so many on each host, each of which has spoken with every other.
std::vector<RankResult> healthy(int ranks, int of_host) {
  std::vector<RankResult> results(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    RankResult& result = at(results, rank);
    result.rank = rank;
    result.host = "node" + std::to_string(rank / of_host);
    result.device = "cpu (AVX-512)";
    result.processor = "AMD EPYC";
    result.measures = {{"training", 10e-3}};
    result.exercised = {{"jobs", "many"}, {"links", "some"}};
    for (int with = 0; with < ranks; ++with)
      if (with != rank)
        result.links.push_back(
            {with, 30, 0, 0, rank / of_host == with / of_host ? 1e-3 : 10e-3, 1 << 20, 1e-4});
  }
  return results;
}

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
  ranks = healthy(2, 1);
  damage(ranks, 1, 0);
  EXPECT_EQ(named(ranks), "1 message");
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
  ranks[3].oversubscribed = true;
  EXPECT_EQ(said(ranks), "") << "one of the two shares its cores";
}

TEST(BurnComparison, NamesALongCableByItsSmallMessages) {
  auto ranks = healthy(4, 1);
  for (const int with : {0, 2, 3}) link(ranks, 1, with).latency = link(ranks, with, 1).latency = 5e-3;
  EXPECT_EQ(
      said(ranks),
      "SLOW 1 link: its quickest message of 8 bytes to another host takes 5.0 ms, the others' 0.1 ms\n");
  for (RankResult& rank : ranks) rank.oversubscribed = true;
  EXPECT_EQ(said(ranks), "") << "on shared cores messages wait for one";
}

TEST(BurnComparison, ComparesSpeedsOfLikeProcessorsAlone) {
  auto ranks = healthy(4, 4);
  ranks[3].measures["training"] = 16e-3;
  EXPECT_EQ(said(ranks),
            "SLOW 3 rank: its trainings alone take 1.6 times as long as the median of 3 ranks like it\n");
  ranks[3].processor = "Xeon";
  EXPECT_EQ(named(ranks), "");
  ranks = healthy(2, 2);
  ranks[1].measures.clear();
  EXPECT_EQ(named(ranks), "") << "a rank that was stopped has no time to compare";
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
}

TEST(BurnComparison, BlamesAllForAWrongTrainingOnlyWhereNoneIsKnown) {
  auto ranks = healthy(2, 2);
  ranks[0].wrong_jobs_of_all = 1;
  const std::string wrong = " job: all ranks together trained to other weights, none of them alone did\n";
  EXPECT_EQ(said(ranks), "WRONG 0" + wrong + "WRONG 1" + wrong);
  ranks[1].findings.push_back({Grade::kWrong, "sum", "", ""});
  EXPECT_EQ(named(ranks), "1 sum");
}

// The report.

BurnReport report_of(std::vector<RankResult> ranks) {
  BurnReport report;
  report.ranks = std::move(ranks);
  report.rounds = 3;
  report.not_exercised = {"disks and file systems"};
  return report;
}

BurnReport bad_report() {
  auto ranks = healthy(3, 1);
  ranks[1].findings.push_back({Grade::kWrong, "job", "other weights", "change it"});
  ranks[2].findings.push_back({Grade::kSlow, "rank", "slower", "cool it"});
  return report_of(std::move(ranks));
}

TEST(BurnReport, ExitCodesGoByTheWorst) {
  EXPECT_EQ(exit_code_of(report_of(healthy(2, 1))), 0);
  EXPECT_EQ(exit_code_of(bad_report()), 1);
  BurnReport report = bad_report();
  report.ranks[1].findings.clear();
  EXPECT_EQ(exit_code_of(report), kSlowExitCode);
  report.ranks[0].findings.push_back({Grade::kNotTested, "jobs", "", ""});
  EXPECT_EQ(exit_code_of(report), 69);
  report.stopped_by = "SIGTERM";
  EXPECT_EQ(exit_code_of(report), 75);
}

TEST(BurnReport, TextHasRanksChecksFindingsAndTheVerdict) {
  BurnReport report = bad_report();
  report.seconds = 61;
  report.ranks[0].uuid = "GPU-0";
  const std::string text = to_text(report, 1000);
  EXPECT_EQ(text,
            "rank  host   device         UUID   verdict\n"
            "   0  node0  cpu (AVX-512)  GPU-0  PASS\n"
            "   1  node1  cpu (AVX-512)  -      WRONG\n"
            "   2  node2  cpu (AVX-512)  -      SLOW\n"
            "\n"
            "jobs   WRONG  many\n"
            "links  PASS   some\n"
            "speed  SLOW   beside the other ranks\n"
            "\n"
            "WRONG rank 1 on node1: job: other weights\n  do: change it\n"
            "SLOW rank 2 on node2: rank: slower\n  do: cool it\n"
            "\n"
            "not exercised: disks and file systems\n"
            "level 1, 3 rounds in 1:01\n"
            "burn: WRONG rank 1 on node1: job: other weights\n");
  report.ranks.resize(1);
  test::expect_words(to_text(report, 1000), {"\nspeed  NOT TESTED  there is one rank\n\nnot exercised"});
}

TEST(BurnReport, JsonHasEveryFactOfARank) {
  BurnReport report = bad_report();
  report.seconds = 1.5;
  report.level = 2;
  report.left_out = {"links"};
  RankResult& rank = report.ranks[1];
  rank.uuid = "GPU-1", rank.simd = "AVX-512", rank.threads = 4;
  rank.links = {{0, 7, 1, 2, 0.5, 1 << 20, 0.25}};
  const auto json = to_json(report);
  EXPECT_EQ(json["ranks"][1], nlohmann::ordered_json::parse(R"json({"rank": 1, "host": "node1",
    "device": "cpu (AVX-512)", "uuid": "GPU-1", "processor": "AMD EPYC", "simd": "AVX-512", "threads": 4,
    "verdict": "WRONG",
    "findings": [{"verdict": "WRONG", "kind": "job", "what": "other weights", "fix": "change it"}],
    "measures": {"training": 0.01},
    "links": [{"with": 0, "messages": 7, "damaged": 1, "wrong_sums": 2, "seconds": 0.5, "bytes": 1048576,
               "latency": 0.25}],
    "checks": {"jobs": {"verdict": "WRONG", "what": "other weights"},
               "links": {"verdict": "NOT TESTED", "what": "--without links"},
               "speed": {"verdict": "PASS", "what": "beside the other ranks"}}})json"));
  EXPECT_EQ(json["format"], 2);
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["level"], 2);
  EXPECT_EQ(json["seconds"], 1.5);
  EXPECT_EQ(json["rounds"], 3);
  EXPECT_EQ(json["not_exercised"], nlohmann::ordered_json::array({"disks and file systems"}));
  EXPECT_EQ(json["stopped_by"], "");
}

TEST(BurnReport, FitsEightyColumns) {
  BurnReport report = bad_report();
  report.ranks[0].host = std::string(70, 'h');
  report.ranks[0].device = std::string(70, 'd');
  report.ranks[0].uuid = std::string(70, 'u');
  std::istringstream lines(to_text(report, 80));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
}

TEST(BurnReport, NeverSaysPassOfWhatWasNotDone) {
  BurnReport report = report_of(healthy(2, 1));
  report.ranks[0].exercised.clear();
  EXPECT_EQ(to_json(report)["ranks"][0]["checks"]["jobs"]["verdict"], "NOT TESTED");
}

TEST(BurnReport, VerdictCountsTheOtherRanksOfItsGrade) {
  BurnReport report = report_of(healthy(3, 2));
  EXPECT_TRUE(to_text(report, 1000).ends_with("\nburn: PASS 3 ranks on 2 hosts\n"));
  report.stopped_by = "SIGTERM";
  EXPECT_EQ(to_json(report)["verdict"], "NOT TESTED to the end: SIGTERM, 3 ranks on 2 hosts");
  for (const int rank : {1, 2})
    at(report.ranks, rank).findings.push_back({Grade::kWrong, "job", "other", ""});
  report.ranks[0].findings.push_back({Grade::kSlow, "link", "slow", ""});
  EXPECT_EQ(to_json(report)["verdict"], "WRONG rank 1 on node0: job: other (and 1 rank more)");
  report.ranks[2].findings.clear();
  EXPECT_EQ(to_json(report)["verdict"], "WRONG rank 1 on node0: job: other");
}

TEST(BurnReport, SaysHowLongARankWaitedForItsCore) {
  BurnReport report = report_of(healthy(2, 2));
  const auto speed_at = [&](double share) {
    report.ranks[1].measures["share of core"] = share;
    return to_json(report)["ranks"][1]["checks"]["speed"]["what"];
  };
  EXPECT_EQ(speed_at(0.96), "beside the other ranks");
  EXPECT_EQ(speed_at(0.95), "beside the other ranks; it waited for a core 5 % of the time");
  EXPECT_EQ(speed_at(0.75), "beside the other ranks; it waited for a core 25 % of the time");
}

TEST(BurnReport, SharedLinesCountRanksAndGrades) {
  BurnReport report = bad_report();
  report.seconds = 61;
  report.ranks[0].threads = 2;
  report.ranks[0].findings.push_back({Grade::kWrong, "job", "other weights", ""});
  report.ranks[0].simd = "AVX2";
  report.ranks[0].answers = {{"linear on 1,000 digits", "4af3"}};
  report.compiler = "GNU 12";
  const std::string head = "processor   AMD EPYC, AVX2\ndevice      cpu (AVX-512)\n",
                    rest =
                        "ranks       3 on 3 hosts, 2 threads each\n"
                        "burn        level 1, 1:01, 0 PASS, 1 SLOW, 0 NOT TESTED, 2 WRONG\n"
                        "linear on 1,000 digits 4af3\n";
  EXPECT_EQ(to_share(report), head + "built with  GNU 12\nlibrary     none\n" + rest);
  report.driver = "driver 13.0";
  report.library = "Open MPI 4";
  EXPECT_EQ(to_share(report),
            head + "driver      driver 13.0\nbuilt with  GNU 12\nlibrary     Open MPI 4\n" + rest);
}

}  // namespace
}  // namespace lockstep::burn
