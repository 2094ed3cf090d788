// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A rank fails on purpose in each way that there is: it is named, with the kind. And where the check that
/// finds it is left out, nothing is said but that.
#include "trainer/burn/burn.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

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

/// Three ranks, one round, these checks alone.
BurnReport burn_with(const FaultCase& fault, int rank, const std::vector<std::string>& wanted) {
  BurnOptions options;
  options.seconds = 0;
  options.threads = 1;
  options.parallel.device = fault.device;
  options.shows_progress = false;
  options.fault = {fault.kind, rank};
  for (const std::string_view check : kChecks)
    if (std::ranges::find(wanted, check) == wanted.end()) options.without.emplace_back(check);
  BurnReport report;
  run_thread_ranks(3, [&](Communicator& comm) {
    BurnReport mine = run_burn(comm, options);
    if (comm.rank() == 0) report = std::move(mine);
  });
  return report;
}

std::string name_of(const FaultCase& fault) {
  return std::string(fault.kind) + " on " + fault.device;
}

TEST(BurnFaults, AreFoundOnTheirRankWithTheirKind) {
  int rank = 0;
  for (const FaultCase& fault : cases_worth_trying()) {
    SCOPED_TRACE(name_of(fault));
    rank = (rank + 1) % 3;
    const BurnReport report = burn_with(fault, rank, fault.checks);
    ASSERT_EQ(report.ranks.size(), 3U);
    for (const RankResult& result : report.ranks) {
      const auto named = std::ranges::count_if(result.findings, [&](const BurnFinding& finding) {
        return finding.grade == fault.grade && finding.kind == fault.finding;
      });
      EXPECT_EQ(named, result.rank == rank ? 1 : 0) << "rank " << result.rank;
      EXPECT_EQ(grade_of(result) == Grade::kWrong, result.rank == rank && fault.grade == Grade::kWrong);
    }
    EXPECT_EQ(exit_code_of(report), fault.grade == Grade::kWrong ? 1 : kSlowExitCode);
  }
}

TEST(BurnFaults, PassWhereTheirCheckIsLeftOutWhichIsSaid) {
  for (const FaultCase& fault : cases_worth_trying()) {
    SCOPED_TRACE(name_of(fault));
    std::vector<std::string> others = fault.checks;
    const std::string check = others.back();
    others.back() = check == "links" ? "jobs" : "links";
    const BurnReport report = burn_with(fault, 1, others);
    EXPECT_EQ(exit_code_of(report), 0);
    EXPECT_EQ(to_json(report)["ranks"][1]["checks"][check]["verdict"], "NOT TESTED");
    EXPECT_NE(to_text(report, 1000).find(check + "  "), std::string::npos);
  }
}

TEST(BurnChecks, LinksSayHowManyRanksSentMessages) {
  const BurnReport report = burn_with({"", {"links"}, Grade::kPass, ""}, 0, {"links"});
  for (const RankResult& result : report.ranks)
    EXPECT_NE(result.exercised.at("links").find(" of 1.0 MiB from 2 of 2 other ranks, "), std::string::npos)
        << result.exercised.at("links");
}

TEST(BurnFaults, EveryKindHasACase) {
  for (const std::string_view kind : kFaultKinds)
    EXPECT_TRUE(std::ranges::any_of(kCases, [&](const FaultCase& fault) { return kind == fault.kind; }))
        << kind;
}

TEST(BurnFaults, AreRefusedUnlessAllowedAndNamed) {
  ::unsetenv("LOCKSTEP_ALLOW_INJECT");
  EXPECT_THROW(parse_fault("sum@0"), UsageError);
  ::setenv("LOCKSTEP_ALLOW_INJECT", "1", 1);
  EXPECT_EQ(parse_fault("slow-link@12").rank, 12);
  for (const char* wrong : {"", "sum", "sum@", "sum@x", "sum@-1", "sum@1x", "fire@0", "sum@99999999999"})
    EXPECT_THROW(parse_fault(wrong), UsageError) << wrong;
}

// Command lines.

TEST(BurnOptions, TimesAreReadOrRefused) {
  EXPECT_EQ(parse_time("90s"), 90);
  EXPECT_EQ(parse_time("10m"), 600);
  EXPECT_EQ(parse_time("2h"), 7200);
  for (const char* wrong : {"", "10", "s", "-1s", "inf", "infh", "nanm", "721h", "1d"})
    EXPECT_THROW(parse_time(wrong), UsageError) << wrong;
  EXPECT_LE(kSecondsOfLevels.front(), 60);
}

}  // namespace
}  // namespace lockstep::burn
