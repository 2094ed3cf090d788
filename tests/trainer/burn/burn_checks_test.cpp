// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Burns of healthy ranks: what was exercised and what was not, cores, and what a terminal shows.
#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "tests/support/drawn_text.hpp"
#include "tests/support/messages.hpp"
#include "tests/trainer/burn/thread_burns.hpp"
#include "trainer/ranks/checks.hpp"

#include <sched.h>
#include <unistd.h>

namespace lockstep::burn {
namespace {

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
    const BurnReport report = ranks == 1 ? burn_on(1, "emulated", {}, {"jobs"}, 2)
                                         : burn_on(2, "emulated", {}, {"jobs", "links"}, 2);
    std::vector<std::string> expected = {"--without speed", "a GPU: it is emulated"};
    if (ranks == 1) expected.insert(expected.begin(), "--without links");
    std::ranges::copy(of_few[ranks - 1], std::back_inserter(expected));
    expected.emplace_back("memory (memtester, gpu-burn and DCGM fill it), disks and file systems");
    EXPECT_EQ(report.not_exercised, expected);
    ASSERT_EQ(std::ssize(report.ranks), ranks);
    const RankResult& first = report.ranks[0];
    EXPECT_EQ(first.exercised.at("jobs"),
              fmt::format("1 training alone and {} by all ranks together, up to linear on 1,000 digits",
                          ranks - 1));
    EXPECT_TRUE(first.measures.empty()) << "an emulated device has no speed";
    EXPECT_EQ(first.exercised.contains("links"), ranks == 2);
    if (ranks == 2) {
      EXPECT_EQ(first.exercised.at("links"),
                "3 messages of 1.0 MiB from 1 of 1 other rank, 1 sum of pairs, 1 of all");
    }
    EXPECT_EQ(first.threads, 2);
    EXPECT_EQ(first.host, host_name());
    EXPECT_EQ(first.processor, model_of_processor("/"));
    EXPECT_EQ(first.simd, cpu::simd_name());
    EXPECT_NE(first.device, "");
    EXPECT_NE(first.uuid, "");
  }
}

/// This thread and those that it starts use one core as long as it lives.
class OnOneCore {
 public:
  OnOneCore() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOneCore() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OnOneCore(const OnOneCore&) = delete;
  OnOneCore& operator=(const OnOneCore&) = delete;

 private:
  cpu_set_t before_{};
};

TEST(BurnChecks, RanksOfOneHostShareItsCores) {
  const auto threads = [](int ranks) {
    return burn_on(ranks, "cpu", {}, {"links"}, BurnOptions().threads).ranks[1].threads;
  };
  const int cores = static_cast<int>(look_around(Surroundings::real()).cores.size());
  EXPECT_EQ(threads(2), std::max(1, cores / 2));
  const OnOneCore one;
  EXPECT_EQ(threads(3), 1);
}

TEST(BurnChecks, TimeThatARankWaitsForItsCoreIsCounted) {
  double computed = 0, waited = 0;
  std::ifstream("/proc/thread-self/schedstat") >> computed >> waited;
  if (waited == 0) GTEST_SKIP() << "this kernel counts none";
  const OnOneCore one;
  const BurnReport report = burn_on(3, "cpu", {}, {"jobs"});
  for (const RankResult& result : report.ranks) {
    EXPECT_LT(result.measures.at("share of core"), 1);
    // Eight trainings, each at least as long as the quickest; all of this was within the burn.
    EXPECT_GE(result.measures.at("share of core"), 8 * result.measures.at("training") / report.seconds);
  }
}

/// Text that a burn shows on a terminal.
std::string drawn_by(int ranks, const BurnOptions& options, std::uint16_t columns = 100) {
  return test::drawn_by(columns, [&] { burn_with(ranks, options); });
}

TEST(BurnChecks, ATerminalShowsTheCheckThatIsUnderWay) {
  BurnOptions options = options_for("cpu", {}, {"links"});
  options.seconds = 1e-9;
  EXPECT_EQ(drawn_by(2, options), "\r\n");
  options.shows_progress = true;
  const std::string left = "  0:00 left\r", links = "  links" + left, round = "  round 1" + links;
  const std::pair<std::uint16_t, std::string> cases[] = {
      {100, "  " + std::string(24, '#') + "  level 3" + round},
      {51, "  " + std::string(8, '#') + "  level 3" + round},
      {46, "  " + std::string(12, '#') + round},
      {36, round},
      {26, links},
      {20, left}};
  for (const auto& [columns, rest] : cases)
    test::expect_words(drawn_by(2, options, columns), {"\rburn" + rest});
  options.parallel.device = "emulated";
  options.without = {"links", "speed"};
  test::expect_words(drawn_by(1, options), {"  level 3  round 1  jobs  "});
}

TEST(BurnChecks, NothingLeftToTestIsRefused) {
  const std::pair<int, std::vector<std::string>> cases[] = {{1, {"links", "speed"}}, {3, {"speed"}}, {2, {}}};
  for (const auto& [ranks, wanted] : cases) {
    const BurnOptions options = options_for("cpu", {}, wanted);
    run_thread_ranks(ranks, [&](Communicator& comm) {
      const std::string said = message_of<AgreedError>([&] {
        try {
          run_burn(comm, options);
        } catch (const AgreedError& error) {
          EXPECT_EQ(error.code(), ExitCode::kUsage);
          throw;
        }
      });
      if (comm.rank() != 0) return;
      EXPECT_EQ(said, fmt::format("--without {} leaves nothing to test: links take several ranks, and speeds "
                                  "are those of jobs and links",
                                  fmt::join(options.without, ",")));
    });
  }
}

}  // namespace
}  // namespace lockstep::burn
