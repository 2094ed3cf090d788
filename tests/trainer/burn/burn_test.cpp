// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A rank fails on purpose in each way that there is: it is named, with the kind. And where the check that
/// finds it is left out, nothing is said but that.
#include "trainer/burn/burn.hpp"

#include "comm/agreement.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/ranks/checks.hpp"
#include "trainer/run/stop_signal.hpp"

#include <pty.h>
#include <sched.h>
#include <unistd.h>

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

/// One round of these checks alone.
BurnOptions options_for(const char* device, const BurnFault& fault, const std::vector<std::string>& wanted,
                        int threads = 1) {
  BurnOptions options;
  options.level = 3;
  options.seconds = 0;
  options.threads = threads;
  options.parallel.device = device;
  options.shows_progress = false;
  options.fault = fault;
  for (const std::string_view check : kChecks)
    if (std::ranges::find(wanted, check) == wanted.end()) options.without.emplace_back(check);
  return options;
}

BurnReport burn_on(int ranks, const char* device, const BurnFault& fault,
                   const std::vector<std::string>& wanted, int threads = 1) {
  const BurnOptions options = options_for(device, fault, wanted, threads);
  BurnReport report;
  run_thread_ranks(ranks, [&](Communicator& comm) {
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
                         {"ended in other weights; the first: linear on 1,000 digits: "});
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

/// A rank's end of a group that does not add up large sums: each rank keeps what it gave.
class NeverAdding final : public test::ForwardingCommunicator, private AllReduce {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  AllReduce& host_all_reduce() override { return *this; }

 private:
  std::unique_ptr<PendingCollective> start(std::span<const std::int64_t> mine,
                                           std::span<std::int64_t> sum) override {
    if (sum.size() < 1000) return comm_.host_all_reduce().start(mine, sum);
    return std::make_unique<PendingWork>([] { return true; });
  }
  std::unique_ptr<PendingCollective> start(std::span<float> data) override {
    return comm_.host_all_reduce().start(data);
  }
};

TEST(BurnChecks, SumsThatNobodyAddsUpAreWrong) {
  run_thread_ranks(2, [](Communicator& ranks) {
    NeverAdding comm(ranks);
    const BurnReport report = run_burn(comm, options_for("cpu", {}, {"links"}));
    for (const RankResult& result : report.ranks) {
      ASSERT_EQ(result.findings.size(), 1U);
      EXPECT_EQ(result.findings[0].what,
                "the all-reduce of all ranks gave wrong integers, that of no pair did");
    }
    EXPECT_EQ(report.ranks.size(), comm.rank() == 0 ? 2U : 0U);
  });
}

TEST(BurnChecks, LinksSayHowManyRanksSentMessages) {
  const BurnReport report = burn_on(3, "cpu", {}, {"links"});
  for (const RankResult& result : report.ranks)
    EXPECT_EQ(result.exercised.at("links"),
              "6 messages of 1.0 MiB from 2 of 2 other ranks, 2 sums of pairs, 3 of all");
  const std::vector<LinkView>& links = report.ranks[1].links;
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(std::pair(links[0].with, links[1].with), std::pair(0, 2));
  for (const LinkView& link : links) {
    EXPECT_EQ(link.received, 3);
    EXPECT_EQ(link.bytes, 1 << 20);
    EXPECT_EQ(link.damaged + link.wrong_sums, 0);
    EXPECT_GT(link.seconds, 0);
    EXPECT_GT(link.latency, 0);
  }
  EXPECT_EQ(report.rounds, 1);
  EXPECT_EQ(report.level, 3);
  EXPECT_GT(report.seconds, 0);
  EXPECT_EQ(report.left_out, (std::vector<std::string>{"jobs", "speed"}));
  EXPECT_EQ(
      report.not_exercised,
      (std::vector<std::string>{"--without jobs", "--without speed", "a GPU: there is none, or --device cpu",
                                "the network between hosts: there is one host",
                                "memory (memtester, gpu-burn and DCGM fill it), disks and file systems"}));
}

TEST(BurnChecks, FewRanksLeaveOutWhatTakesMore) {
  const std::vector<std::string> of_few[] = {
      {"links between ranks: there is one rank", "its speed beside others: there is one rank"},
      {"the network between hosts: there is one host",
       "the speed of the one link: two ranks have no other to compare it with"}};
  for (const int ranks : {1, 2}) {
    const std::string left_out = ranks == 1 ? "links" : "jobs";
    const BurnReport report = burn_on(ranks, "emulated", {}, {ranks == 1 ? "jobs" : "links"}, 2);
    std::vector<std::string> expected = {"--without " + left_out, "--without speed", "a GPU: it is emulated"};
    std::ranges::copy(of_few[ranks - 1], std::back_inserter(expected));
    expected.emplace_back("memory (memtester, gpu-burn and DCGM fill it), disks and file systems");
    EXPECT_EQ(report.not_exercised, expected);
    ASSERT_EQ(std::ssize(report.ranks), ranks);
    const RankResult& first = report.ranks[0];
    EXPECT_EQ(first.exercised.contains("links"), ranks == 2);
    if (ranks == 2) {
      EXPECT_EQ(first.exercised.at("links"),
                "3 messages of 1.0 MiB from 1 of 1 other rank, 1 sum of pairs, 1 of all");
    }
    EXPECT_EQ(first.threads, 2);
    EXPECT_EQ(first.host, host_name());
    EXPECT_EQ(first.processor, model_of_processor("/"));
    EXPECT_EQ(first.simd, cpu::simd_name());
    EXPECT_NE(first.uuid, "");
  }
}

TEST(BurnChecks, RanksOfOneHostShareItsCores) {
  const int cores = static_cast<int>(look_around(Surroundings::real()).cores.size());
  EXPECT_EQ(burn_on(2, "cpu", {}, {"links"}, BurnOptions().threads).ranks[1].threads, std::max(1, cores / 2));
}

TEST(BurnChecks, TimeThatARankWaitsForItsCoreIsCounted) {
  double computed = 0, waited = 0;
  std::ifstream("/proc/thread-self/schedstat") >> computed >> waited;
  if (waited == 0) GTEST_SKIP() << "this kernel counts none";
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ::sched_setaffinity(0, sizeof(one), &one);  // new threads inherit it
  const BurnReport report = burn_on(3, "cpu", {}, {"jobs"});
  ::sched_setaffinity(0, sizeof(before), &before);
  for (const RankResult& result : report.ranks) EXPECT_LT(result.measures.at("share of core"), 1);
}

/// A rank's end of a group that counts the threads of this process at each broadcast.
class ThreadCounting final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void broadcast(std::span<std::byte> data, int root) override {
    const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    most = std::max<std::int64_t>(most, threads);
    comm_.broadcast(data, root);
  }
  std::int64_t most = 0;
};

TEST(BurnChecks, JobsTrainOnAsManyThreadsAsARankHas) {
  run_thread_ranks(2, [](Communicator& ranks) {
    ThreadCounting comm(ranks);
    run_burn(comm, options_for("cpu", {}, {"jobs"}, 30));
    EXPECT_GT(comm.most, 30);
  });
}

/// Text that an action writes to standard output, a terminal meanwhile.
std::string drawn_by(const std::function<void()>& action) {
  const test::SetVariable term("TERM", "xterm"), alone("OMPI_COMM_WORLD_RANK", nullptr);
  const winsize window{24, 100, 0, 0};
  int screen = -1, terminal = -1;
  if (::openpty(&screen, &terminal, nullptr, nullptr, &window) != 0) return "there is no terminal to be had";
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  ::dup2(terminal, STDOUT_FILENO);
  action();
  std::fputs("\n", stdout);
  std::fflush(stdout);
  ::dup2(before, STDOUT_FILENO);
  std::string text;
  for (char byte = 0; byte != '\n' && ::read(screen, &byte, 1) == 1;) text += byte;
  for (const int descriptor : {before, screen, terminal}) ::close(descriptor);
  return text;
}

TEST(BurnChecks, ATerminalShowsTheCheckThatIsUnderWay) {
  BurnOptions options = options_for("cpu", {}, {"links"});
  options.seconds = 0.01;
  options.shows_progress = true;
  const std::string drawn =
      drawn_by([&] { run_thread_ranks(2, [&](Communicator& comm) { run_burn(comm, options); }); });
  test::expect_words(drawn, {"level 3  round 1  links  "});
}

/// In a process of its own, which was told to stop before it began.
TEST(BurnChecks, AStopEndsItAfterARoundAndJobsAreNotTested) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto body = [] {
    catch_stop_signals(OnStop::kReport);
    std::raise(SIGTERM);
    const BurnReport report = burn_on(2, "cpu", {}, {"jobs", "links"});
    const std::string text = fmt::format("{} {} {} {}\n", exit_code_of(report), report.rounds,
                                         to_json(report)["stopped_by"].dump(),
                                         to_json(report)["ranks"][1]["checks"]["jobs"].dump());
    std::fputs(text.c_str(), stderr);
    std::_Exit(0);
  };
  EXPECT_EXIT(
      body(), ::testing::ExitedWithCode(0),
      R"(stopping, with a report of what was done.*75 1 "SIGTERM" ."verdict":"NOT TESTED","what":"it was stopped before this was done".)");
}

TEST(BurnChecks, NothingLeftToTestIsRefused) {
  const std::pair<int, std::vector<std::string>> cases[] = {{1, {"links", "speed"}}, {3, {"speed"}}, {2, {}}};
  for (const auto& [ranks, wanted] : cases) {
    const BurnOptions options = options_for("cpu", {}, wanted);
    run_thread_ranks(ranks, [&](Communicator& comm) {
      const std::string said = message_of<AgreedError>([&] { run_burn(comm, options); });
      if (comm.rank() != 0) return;
      EXPECT_EQ(said, fmt::format("--without {} leaves nothing to test: links take several ranks, and speeds "
                                  "are those of jobs and links",
                                  fmt::join(options.without, ",")));
    });
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
  EXPECT_LE(kSecondsOfLevels.front(), 60);
}

}  // namespace
}  // namespace lockstep::burn
