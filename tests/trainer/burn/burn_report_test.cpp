// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The report of a comparison of the ranks.
#include "common/text_layout.hpp"
#include "tests/support/messages.hpp"
#include "tests/trainer/burn/healthy_ranks.hpp"

namespace lockstep::burn {
namespace {

BurnReport report_of(std::vector<RankResult> ranks) {
  BurnReport report;
  report.ranks = std::move(ranks);
  for (RankResult& result : report.ranks) result.exercised["speed"] = "beside the other ranks";
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
  BurnReport report = bad_report();
  EXPECT_EQ(exit_code_of(report), 1);
  report.stopped_by = "SIGTERM";
  EXPECT_EQ(exit_code_of(report), 1) << "a stop does not make up for wrong weights";
  report.stopped_by.clear();
  report.ranks[1].findings.clear();
  EXPECT_EQ(exit_code_of(report), 3);
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
  report.ranks[1].exercised.erase("speed");
  test::expect_words(to_text(report, 1000), {"\nspeed  NOT TESTED  there is nothing to compare\n"});
  report.ranks.resize(1);
  report.ranks[0].exercised.erase("speed");
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
  test::expect_words(
      to_text(report, 1000),
      {fmt::format("\n   0  {}  {}  {}  PASS\n", clip_middle(report.ranks[0].host, 18),
                   clip_middle(report.ranks[0].device, 22), clip_middle(report.ranks[0].uuid, 16))});
  std::istringstream lines(to_text(report, 80));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
}

TEST(BurnReport, NeverSaysPassOfWhatWasNotDone) {
  BurnReport report = report_of(healthy(2, 1));
  report.ranks[0].exercised.clear();
  for (const char* check : {"jobs", "speed"})
    EXPECT_EQ(to_json(report)["ranks"][0]["checks"][check]["verdict"], "NOT TESTED") << check;
  for (RankResult& rank : report.ranks)
    rank.findings = {{Grade::kNotTested, "jobs", fmt::format("stopped on {}", rank.host), ""}};
  test::expect_words(to_text(report, 1000), {"\njobs   NOT TESTED  stopped on node0\n"});
}

TEST(BurnReport, VerdictCountsTheOtherRanksOfItsGrade) {
  BurnReport report = report_of(healthy(3, 2));
  EXPECT_TRUE(to_text(report, 1000).ends_with("\nburn: PASS 3 ranks on 2 hosts\n"));
  report.stopped_by = "SIGTERM";
  EXPECT_EQ(to_json(report)["verdict"], "NOT TESTED to the end: SIGTERM, 3 ranks on 2 hosts");
  for (const int rank : {1, 2})
    at(report.ranks, rank).findings = {{Grade::kSlow, "rank", "slow", ""},
                                       {Grade::kWrong, "job", "other", ""}};
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
  EXPECT_EQ(speed_at(0.25), "beside the other ranks; it waited for a core 75 % of the time");
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
  for (const char* said : {"Open MPI v4.1.5", "Open MPI v4.1.5, package: Open MPI me@node7 Distribution",
                           "Open MPI v4.1.5\nconfigured in /home/me"}) {
    report.library = said;
    EXPECT_EQ(to_share(report),
              head + "driver      driver 13.0\nbuilt with  GNU 12\nlibrary     Open MPI v4.1.5\n" + rest);
  }
}

}  // namespace
}  // namespace lockstep::burn
