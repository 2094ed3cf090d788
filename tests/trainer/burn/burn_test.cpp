// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A rank fails on purpose in each way that there is: it is named, with the kind. And where the check that
/// finds it is left out, nothing is said but that.
#include "trainer/burn/burn.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/burn/thread_burns.hpp"

namespace lockstep::burn {
namespace {

/// A fault, the check that finds it, and what it says of the rank.
struct FaultCase {
  const char* kind;
  std::vector<std::string>
      checks;  ///< that must run for it to be found; the last one is the one that finds it
  Grade grade;
  const char* finding;
  const char* device = "cpu";
};

const std::vector<FaultCase> kCases{{"job", {"jobs"}, Grade::kWrong, "job"},
                                    {"job", {"jobs"}, Grade::kWrong, "job", "emulated"},
                                    {"message", {"links"}, Grade::kWrong, "message"},
                                    {"sum", {"links"}, Grade::kWrong, "sum"},
                                    {"slow-rank", {"jobs", "speed"}, Grade::kSlow, "rank"},
                                    {"slow-link", {"links", "speed"}, Grade::kSlow, "link"}};

/// Under sanitizers trainings and speeds take minutes; one fault of each other check runs all of its code.
std::vector<FaultCase> cases_worth_trying() {
  std::vector<FaultCase> cases;
  for (const FaultCase& fault : kCases) {
    const bool is_quick = fault.checks.size() == 1 && fault.checks[0] != "jobs";
    const bool is_first = cases.empty() || cases.back().checks != fault.checks;
    if (test::effort(true, is_quick && is_first)) cases.push_back(fault);
  }
  return cases;
}

std::string name_of(const FaultCase& fault) {
  return std::string(fault.kind) + " on " + fault.device;
}

TEST(BurnFaults, AreFoundOnTheirRankWithTheirKind) {
  int rank = 0;
  for (const FaultCase& fault : cases_worth_trying()) {
    SCOPED_TRACE(name_of(fault));
    rank = (rank + 1) % 3;
    const BurnReport report = burn_on(3, fault.device, {fault.kind, rank}, fault.checks);
    ASSERT_EQ(report.ranks.size(), 3U);
    for (const RankResult& result : report.ranks) {
      const auto named = std::ranges::count_if(result.findings, [&](const BurnFinding& finding) {
        return finding.grade == fault.grade && finding.kind == fault.finding;
      });
      EXPECT_EQ(named, result.rank == rank ? 1 : 0) << "rank " << result.rank;
      EXPECT_EQ(grade_of(result) == Grade::kWrong, result.rank == rank && fault.grade == Grade::kWrong);
    }
    EXPECT_EQ(exit_code_of(report), fault.grade == Grade::kWrong ? 1 : kSlowExitCode);
    if (fault.checks.front() == "jobs" && fault.grade == Grade::kWrong)
      test::expect_words(at(report.ranks, rank).findings.at(0).what,
                         {"ended in other weights; the first: linear on 1,000 digits: ",
                          " in place of 4af324d4247b27fb9f214aa25912d2818b0922a193788457b0ebd240273a67ac"});
    if (fault.kind != std::string_view("slow-link")) continue;
    const std::vector<LinkView>& links = at(report.ranks, (rank + 1) % 3).links;
    const auto slow = std::ranges::find(links, rank, &LinkView::with);
    ASSERT_TRUE(slow != links.end());
    EXPECT_GE(slow->seconds, 0.15) << "its other end sees it, too";
  }
}

TEST(BurnFaults, PassWhereTheirCheckIsLeftOutWhichIsSaid) {
  for (const FaultCase& fault : cases_worth_trying()) {
    SCOPED_TRACE(name_of(fault));
    std::vector<std::string> others = fault.checks;
    const std::string check = others.back();
    others.back() = check == "links" ? "jobs" : "links";
    const BurnReport report = burn_on(3, fault.device, {fault.kind, 1}, others);
    EXPECT_EQ(exit_code_of(report), 0);
    EXPECT_EQ(to_json(report)["ranks"][1]["checks"][check]["verdict"], "NOT TESTED");
    EXPECT_NE(to_text(report, 1000).find(check + "  "), std::string::npos);
    if (check != "links") continue;
    EXPECT_EQ(report.ranks[1].exercised.at("jobs"),
              "8 trainings alone and 1 by all ranks together, up to linear on 1,000 digits");
    EXPECT_EQ(
        report.ranks[1].answers,
        (std::map<std::string, std::string>{
            {"linear on 1,000 digits", "4af324d4247b27fb9f214aa25912d2818b0922a193788457b0ebd240273a67ac"}}));
  }
}

TEST(BurnFaults, OfARankThatIsNotThereAreRefused) {
  BurnOptions options;
  options.fault = {"sum", 2};
  run_thread_ranks(2, [&](Communicator& comm) {
    EXPECT_EQ(message_of<AgreedError>([&] { run_burn(comm, options); }),
              comm.rank() == 0 ? "--inject: there is no rank 2, only 0 to 1" : "rank 0 failed");
  });
}

TEST(BurnFaults, EveryKindHasACase) {
  for (const std::string_view kind : kFaultKinds)
    EXPECT_TRUE(std::ranges::any_of(kCases, [&](const FaultCase& fault) { return kind == fault.kind; }))
        << kind;
}

TEST(BurnFaults, AreRefusedUnlessAllowedAndNamed) {
  ::unsetenv("LOCKSTEP_ALLOW_INJECT");
  EXPECT_THROW(parse_fault("sum@0"), UsageError);
  ::setenv("LOCKSTEP_ALLOW_INJECT", "0", 1);
  EXPECT_THROW(parse_fault("sum@0"), UsageError);
  ::setenv("LOCKSTEP_ALLOW_INJECT", "1", 1);
  EXPECT_EQ(parse_fault("slow-link@12").rank, 12);
  EXPECT_EQ(parse_fault("sum@0").kind, "sum");
  EXPECT_EQ(
      message_of<UsageError>([] { parse_fault("fire@0"); }),
      "--inject 'fire@0' is not KIND@RANK with a rank from 0 on and one of the kinds job, message, sum, "
      "slow-rank, slow-link");
  for (const char* wrong : {"", "sum", "sum@", "sum@x", "sum@-1", "sum@1x", "fire@0", "sum@99999999999"})
    EXPECT_THROW(parse_fault(wrong), UsageError) << wrong;
}

// Command lines.

TEST(BurnOptions, TimesAreReadOrRefused) {
  for (const auto& [text, seconds] :
       {std::pair("90s", 90.0), {"10m", 600}, {"2h", 7200}, {"0s", 0}, {"1.5m", 90}, {"720h", 2'592'000}})
    EXPECT_EQ(parse_time(text), seconds) << text;
  for (const char* wrong : {"", "10", "s", "-1s", "inf", "infh", "nanm", "721h", "1d"})
    EXPECT_THROW(parse_time(wrong), UsageError) << wrong;
  EXPECT_EQ(message_of<UsageError>([] { parse_time("1d"); }),
            "--time '1d' is not a time as 90s, 10m or 2h, up to 720h");
  EXPECT_EQ(kSecondsOfLevels, (std::array<double, 3>{55, 595, 14400}));
  EXPECT_EQ(BurnOptions().level, 1);
  EXPECT_EQ(BurnOptions().threads, 0) << "its share of the cores";
}

}  // namespace
}  // namespace lockstep::burn
