// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Burns of several rounds and trainings, what goes between their ranks, and stops. Ends of the group see to it.
#include "common/machine.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/burn/thread_burns.hpp"
#include "trainer/ranks/checks.hpp"
#include "trainer/run/stop_signal.hpp"
#include "trainer/verify/wrong_rank.hpp"

namespace lockstep::burn {
namespace {

/// Bytes, more than all but weights have that are broadcast: the first training has 7,850, the second one 21,840.
constexpr std::size_t kManyBytes = 30'000, kMoreBytes = 60'000;

/// After each round all ranks sum two numbers: the time is up, and it was told to stop.
constexpr std::size_t kAnswers = 2;

/// Lengths and beginnings of what ranks exchange.
struct Exchanged {
  void note(std::map<std::size_t, int>& sizes, std::size_t size, std::int64_t first_word) {
    const std::lock_guard lock(mutex);
    ++sizes[size];
    if (size > 1000) words.insert(first_word);
  }

  std::mutex mutex;
  std::map<std::size_t, int> messages, sums;  ///< by length, in bytes or words: how many
  std::set<std::int64_t> words;               ///< the first ones of the long ones
};

TEST(BurnRounds, EachMessageAndSumOfEachRoundHasItsOwnNumbers) {
  constexpr int kRanks = 3, kRounds = 3;
  Exchanged seen;
  BurnReport report;
  run_thread_ranks(kRanks, [&](Communicator& ranks) {
    OpenEnd comm(ranks);
    comm.before_send = [&](std::span<const std::byte> data) {
      std::int64_t first = 0;
      std::memcpy(&first, data.data(), sizeof first);
      seen.note(seen.messages, data.size(), first);
    };
    comm.before_sum = [&](std::span<const std::int64_t> mine) {
      seen.note(seen.sums, mine.size(), mine[0]);
      if (mine.size() == kAnswers) {
        EXPECT_EQ(mine[0], comm.rank() == 0 ? 1 : 0) << "rank 0 looks at the clock";
        EXPECT_EQ(mine[1], 0);
      }
    };
    int rounds = 0;
    comm.after_sum = [&](std::span<std::int64_t> sum) {
      if (sum.size() == kAnswers && ++rounds < kRounds) sum[0] = 0;
    };
    BurnReport mine = run_burn(comm, options_for("cpu", {}, {"links"}, BurnOptions().threads));
    if (comm.rank() == 0) report = std::move(mine);
  });
  // A large message comes after 17 small ones, which measure the latency, and before a small answer.
  EXPECT_EQ(seen.messages, (std::map<std::size_t, int>{{8, 18 * 54}, {1 << 20, 54}}));
  EXPECT_EQ(seen.sums, (std::map<std::size_t, int>{{kAnswers, kRounds * kRanks}, {16384, 27}}));
  EXPECT_EQ(seen.words.size(), 54U + 27U);
  EXPECT_EQ(report.rounds, kRounds);
  EXPECT_EQ(exit_code_of(report), 0);
  EXPECT_EQ(report.library, "a library");
  const std::size_t cores = look_around(Surroundings::real()).cores.size();
  for (const RankResult& result : report.ranks) {
    EXPECT_EQ(result.exercised.at("links"),
              "18 messages of 1.0 MiB from 2 of 2 other ranks, 6 sums of pairs, 9 of all");
    EXPECT_EQ(result.host, fmt::format("node{}", result.rank));
    EXPECT_EQ(result.threads, static_cast<int>(cores)) << "no other rank is on its host";
    EXPECT_TRUE(result.oversubscribed);
  }
  EXPECT_EQ(
      report.not_exercised,
      (std::vector<std::string>{"--without jobs", "--without speed", "a GPU: there is none, or --device cpu",
                                "memory (memtester, gpu-burn and DCGM fill it), disks and file systems"}));
}

TEST(BurnRounds, ManyRanksMeetFifteenOthers) {
  const int ranks = test::effort(18, 4), turns = std::min(ranks - 1, 15);
  const BurnReport report = burn_on(ranks, "cpu", {}, {"links"});
  EXPECT_EQ(exit_code_of(report), 0);
  for (const RankResult& result : report.ranks)
    EXPECT_EQ(result.exercised.at("links"),
              fmt::format("{} messages of 1.0 MiB from {} of {} other ranks, {} sums of pairs, {} of all",
                          3 * turns, turns, ranks - 1, turns, turns));
}

TEST(BurnRounds, SumsOfAllThatChangeAreWrong) {
  run_thread_ranks(2, [](Communicator& ranks) {
    OpenEnd comm(ranks);
    comm.after_sum = [](std::span<std::int64_t> sum) {
      if (sum.size() > kAnswers) ++sum.front();
    };
    const BurnReport report = run_burn(comm, options_for("cpu", {}, {"links"}));
    for (const RankResult& result : report.ranks) {
      ASSERT_EQ(result.findings.size(), 1U);
      EXPECT_EQ(result.findings[0].what,
                "the all-reduce of all ranks gave wrong integers, that of no pair did");
    }
    EXPECT_EQ(report.ranks.size(), comm.rank() == 0 ? 2U : 0U);
  });
}

TEST(BurnRounds, AllTrainingsEndInKnownWeightsIfThereIsTime) {
  if (!test::effort(true, false))
    GTEST_SKIP() << "under sanitizers lenet takes so long that no time is seen for resnet8";
  run_thread_ranks(1, [](Communicator& rank) {
    OpenEnd comm(rank);
    comm.after_sum = [](std::span<std::int64_t> sum) {
      EXPECT_EQ(sum.size(), kAnswers);
      EXPECT_EQ(sum[0], 0) << "there is time for another round";
      sum[1] = 1;  // another rank was told to stop
    };
    BurnOptions options = options_for("cpu", {}, {"jobs", "links", "speed"});
    options.seconds = 1e6;
    const BurnReport report = run_burn(comm, options);
    EXPECT_EQ(exit_code_of(report), 75);
    EXPECT_EQ(report.stopped_by, "a signal to another rank");
    const RankResult& result = report.ranks.at(0);
    EXPECT_TRUE(result.findings.empty());
    EXPECT_EQ(result.threads, 1);
    using Texts = std::map<std::string, std::string>;
    EXPECT_EQ(
        result.exercised,
        (Texts{{"jobs", "11 trainings alone and 0 by all ranks together, up to resnet8 on 2,000 digits"}}));
    EXPECT_EQ(
        result.answers,
        (Texts{{"linear on 1,000 digits", "4af324d4247b27fb9f214aa25912d2818b0922a193788457b0ebd240273a67ac"},
               {"net on 2,000 digits", "a9311f0d842e584f3a0da897b23783120d37b27c0d9f28343a2c0c4aa70d6177"},
               {"lenet on 2,000 digits", "0867ed0dcafe9637e24f74151f5a1f272b96a299ffcae2d0035ddd90afe1d786"},
               {"resnet8 on 2,000 digits",
                "91d580427de58de4f63508f4c5711657de361b535e00139d0f1b109f0ca3585b"}}));
  });
}

TEST(BurnRounds, RankZeroDecidesHowMuchThereIsTimeFor) {
  run_thread_ranks(2, [](Communicator& comm) {
    BurnOptions options = options_for("cpu", {}, {"jobs", "links"});
    if (comm.rank() == 1) options.seconds = 1e6;
    const BurnReport report = run_burn(comm, options);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.rounds, 1);
    for (const RankResult& result : report.ranks)
      EXPECT_EQ(result.exercised,
                (std::map<std::string, std::string>{
                    {"jobs", "8 trainings alone and 1 by all ranks together, up to linear on 1,000 digits"},
                    {"links", "3 messages of 1.0 MiB from 1 of 1 other rank, 1 sum of pairs, 1 of all"}}));
  });
}

/// A round takes thrice 0.15 s. On a busy machine it may take all the time, which shows nothing: another burn
/// follows.
TEST(BurnRounds, ARoundForWhichTooLittleTimeIsLeftIsNotBegun) {
  BurnOptions options = options_for("cpu", {"slow-link", 0}, {"links"});
  options.seconds = 0.89;
  BurnReport report;
  int burns = 0;
  do {
    report = burn_with(2, options);
    EXPECT_EQ(report.rounds, 1);
  } while (report.seconds > options.seconds && ++burns < 5);
}

/// A round may take a quarter of the time. The burn ends where one as long as the longest would be late.
TEST(BurnRounds, NoBurnEndsBeforeHalfOfItsTime) {
  BurnOptions options = options_for("cpu", {}, {"links"});
  options.seconds = 0.4;
  EXPECT_GT(burn_with(2, options).seconds, options.seconds / 2);
}

/// Ranks that are given a backend by name ask each other whether they may share a GPU. That is a sum of ones.
TEST(BurnRounds, TrainingsOfAllRanksTakeTheBackendOfTheBurn) {
  if (host_boot_id().empty()) GTEST_SKIP() << "ranks on hosts of two names do not know that they share one";
  run_thread_ranks(2, [](Communicator& ranks) {
    OpenEnd comm(ranks);
    int asked = 0;
    comm.before_sum = [&](std::span<const std::int64_t> mine) {
      if (mine.size() == 1 && mine[0] == 1) ++asked;
    };
    BurnOptions options = options_for("emulated", {}, {"jobs"});
    options.parallel.backend = "thread";
    run_burn(comm, options);
    EXPECT_EQ(asked, 2) << "for the burn, and for its training";
  });
}

TEST(BurnRounds, JobsOnACpuTrainOnAsManyThreadsAsARankHas) {
  for (const std::string device : {"cpu", "emulated"})
    run_thread_ranks(2, [&](Communicator& ranks) {
      OpenEnd comm(ranks);
      std::int64_t most = 0;
      comm.after_broadcast = [&](auto) {
        const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
        most = std::max<std::int64_t>(most, threads);
      };
      run_burn(comm, options_for(device.c_str(), {}, {"jobs"}, 30));
      EXPECT_EQ(most > 30, device == "cpu") << most << " threads on " << device;
    });
}

/// NaN on all ranks alike: no comparison of ranks finds it, and no step can be taken.
TEST(BurnRounds, ATrainingTogetherThatGoesWrongIsBlamedOnAll) {
  run_thread_ranks(2, [](Communicator& ranks) {
    OpenEnd comm(ranks);
    comm.after_broadcast = [](std::span<std::byte> data) {
      if (data.size() > kManyBytes) std::ranges::fill(data, std::byte{0xFF});
    };
    const BurnReport report = run_burn(comm, options_for("cpu", {}, {"jobs"}));
    for (const RankResult& result : report.ranks) {
      ASSERT_EQ(result.findings.size(), 1U);
      EXPECT_EQ(result.findings[0].what, "ranks together trained to other weights, none of them alone did");
    }
  });
}

TEST(BurnRounds, AGradientThatChangesOnItsWayEndsTheBurnWithItsRank) {
  run_thread_ranks(2, [](Communicator& ranks) {
    OpenEnd comm(ranks);
    comm.after_sum = [&](std::span<std::int64_t> sum) {
      if (sum.size() > 1000 && comm.rank() == 1) ++sum.front();
    };
    EXPECT_THROW(run_burn(comm, options_for("cpu", {}, {"jobs"})), WrongRankError);
  });
}

/// Grains are of 64 samples, and batches of 512: one is no work for nine ranks.
TEST(BurnRounds, MoreRanksThanGrainsTrainInTeams) {
  const BurnReport report = burn_on(9, "cpu", {}, {"jobs"});
  EXPECT_EQ(exit_code_of(report), 0);
  ASSERT_EQ(report.ranks.size(), 9U);
  for (const RankResult& result : report.ranks)
    EXPECT_EQ(result.exercised.at("jobs"),
              fmt::format("8 trainings alone and 1 by {} ranks together, up to linear on 1,000 digits",
                          result.rank % 2 == 0 ? 5 : 4));
}

/// A rank's end of a group that shows what is broadcast in its parts.
class OpenParts final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  std::unique_ptr<Communicator> make_part(int colour) override {
    auto part = std::make_unique<OpenEnd>(comm_.split(colour));
    if (part->size() >= least_ranks) part->after_broadcast = after_broadcast;
    return part;
  }

  std::function<void(std::span<std::byte>)> after_broadcast;
  int least_ranks = 1;  ///< in a part that it shows
};

/// As where its host has too little memory: the others heard nothing of it, and waited.
TEST(BurnRounds, ARankThatCannotTrainAloneIsNamedByAll) {
  run_thread_ranks(
      2,
      [](Communicator& ranks) {
        OpenParts comm(ranks);
        comm.after_broadcast = [&](auto) {
          if (comm.rank() == 1) throw AgreedError(ExitCode::kDeviceUnavailable, "too little memory");
        };
        EXPECT_EQ(
            message_of<AgreedError>([&] { run_burn(comm, options_for("cpu", {}, {"jobs"})); }),
            comm.rank() == 0 ? "rank 1 failed" : fmt::format("rank 1 on {}: too little memory", comm.host()));
      },
      std::chrono::seconds(60));
}

/// Ranks with odd numbers are one of two teams.
TEST(BurnRounds, AnErrorOfOneTeamEndsTheBurnOfAll) {
  run_thread_ranks(
      9,
      [](Communicator& ranks) {
        OpenParts comm(ranks);
        comm.least_ranks = 2;
        comm.after_broadcast = [&](auto) {
          if (comm.rank() % 2 == 1) throw AgreedError(ExitCode::kWrongRank, "other sums");
        };
        EXPECT_EQ(message_of<AgreedError>([&] { run_burn(comm, options_for("cpu", {}, {"jobs"})); }),
                  comm.rank() == 1 ? fmt::format("rank 1 on {}: other sums", comm.host()) : "rank 1 failed");
      },
      std::chrono::seconds(60));
}

// Stops, each in a process of its own.

/// Burns for long, but the process is told to stop with the first broadcast of more than so many bytes.
template <class End>
void burn_and_stop(int ranks, std::size_t bytes) {
  catch_stop_signals(OnStop::kReport);
  BurnOptions options = options_for("cpu", {}, {"jobs", "links"});
  options.seconds = 1e6;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    End end(comm);
    end.after_broadcast = [&](std::span<std::byte> data) {
      if (comm.rank() == 0 && data.size() > bytes && !stop_requested()) std::raise(SIGTERM);
    };
    const BurnReport report = run_burn(end, options);
    if (comm.rank() != 0) return;
    const RankResult& last = report.ranks.back();
    std::fputs(fmt::format("{} {} {} {} {}\n", exit_code_of(report), report.rounds, report.stopped_by,
                           last.exercised.at("jobs"), last.measures.size())
                   .c_str(),
               stderr);
  });
  std::_Exit(0);
}

TEST(BurnRounds, AStopLetsTheTrainingUnderWayEndAndNoOtherBegin) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(burn_and_stop<OpenEnd>(2, kManyBytes), ::testing::ExitedWithCode(0),
              "75 1 SIGTERM 8 trainings alone and 1 by all ranks together, up to linear on 1,000 digits 2\n");
  // The second training alone, which ends at once: its time is not compared.
  EXPECT_EXIT(burn_and_stop<OpenParts>(1, kMoreBytes), ::testing::ExitedWithCode(0),
              "75 1 SIGTERM 8 trainings alone and 0 by all ranks together, up to linear on 1,000 digits 0\n");
}

/// It was told to stop before it began.
TEST(BurnRounds, AStopEndsItAfterARoundAndJobsAreNotTested) {
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

}  // namespace
}  // namespace lockstep::burn
