// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Who is named for holding the others up, and who is not.
#include "comm/watch/stragglers.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace lockstep::watchdog {
namespace {

constexpr double kMillisecond = 1e6;

/// 4 ranks or so, 3 buckets a step, a step every 10 ms; its work is 1 ms a grain and noise of 2 %. Each rank reports
/// every 40 steps.
/// @param queued  milliseconds for which it waits for a processor
std::vector<RankScore> run(
    Stragglers& stragglers, int steps, const std::function<double(int rank, int step)>& slowness,
    const std::function<int(int rank)>& grains = [](int) { return 2; },
    const std::function<double(int rank, int step)>& queued = [](int, int) { return 0.0; }, int ranks = 4) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(1, 0.02);
  std::vector<RankScore> named;
  std::vector<std::vector<Arrival>> lists(static_cast<std::size_t>(ranks));
  for (int step = 1; step <= steps; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      const double work = kMillisecond * grains(rank) * slowness(rank, step) * noise(random);
      for (int bucket = 0; bucket < 3; ++bucket) {
        const double share = work * (bucket + 1) / 3,
                     waited = kMillisecond * queued(rank, step) * (bucket + 1) / 3;
        lists[static_cast<std::size_t>(rank)].push_back(
            {.step = step,
             .bucket = bucket,
             .grains = grains(rank),
             .arrived_ns = std::int64_t{step} * 10'000'000 + std::int64_t(share + waited),
             .work_ns = std::int64_t(share),
             .queued_ns = std::int64_t(waited)});
      }
    }
    if (step % 40 != 0 && step != steps) continue;
    for (int rank = ranks; rank-- > 0;)
      stragglers.add(rank, std::exchange(lists[static_cast<std::size_t>(rank)], {}));
    for (const RankScore& score : stragglers.newly_named()) named.push_back(score);
  }
  return named;
}

Stragglers four_ranks() {
  return Stragglers({"node1", "node1", "node2", "node2"});
}

TEST(StragglersTest, RankSlowedByTenPercentIsNamedWithinAHundredSteps) {
  auto stragglers = four_ranks();
  const auto named = run(stragglers, 101, [](int rank, int) { return rank == 3 ? 1.1 : 1.0; });
  ASSERT_EQ(named.size(), 1U);
  EXPECT_EQ(named[0].rank, 3);
  EXPECT_EQ(named[0].cause, "compute");
  EXPECT_GT(named[0].last_share, 0.9);
  EXPECT_NEAR(named[0].score, 0.9, 0.05);
  EXPECT_NE(describe(named[0]).find("rank 3 (node2) arrives last in "), std::string::npos)
      << describe(named[0]);
  EXPECT_TRUE(stragglers.scores()[3].is_straggler());
  EXPECT_GT(stragglers.scores()[1].score, 0.95);
}

TEST(StragglersTest, RankThatBecomesSlowAtAnyStepIsNamedWithinAHundred) {
  for (const int onset : {101, 137, 150, 199, 222, 310}) {
    auto stragglers = four_ranks();
    const auto named =
        run(stragglers, 450, [&](int rank, int step) { return rank == 1 && step >= onset ? 1.1 : 1.0; });
    ASSERT_EQ(named.size(), 1U) << onset;
    EXPECT_EQ(named[0].rank, 1);
    EXPECT_GT(named[0].first_named_step, onset);
    EXPECT_LE(named[0].first_named_step, onset + 100);
    EXPECT_TRUE(stragglers.scores()[1].is_straggler())
        << "though it was slow for the smaller part of the run";
  }
}

TEST(StragglersTest, RankThatWasSlowForAWhileIsNoStragglerInTheEnd) {
  auto stragglers = four_ranks();
  const auto named = run(stragglers, 1000, [](int rank, int step) {
    return rank == 2 && step >= 100 && step < 300 ? 1.2 : 1.0;
  });
  EXPECT_EQ(named.size(), 1U) << "it is said once, when it is";
  EXPECT_FALSE(stragglers.scores()[2].is_straggler());
}

/// Steps that a busy machine interrupts, on all ranks alike, for longer than a step takes.
TEST(StragglersTest, InterruptionsHideNoStragglerAndMakeNone) {
  for (const double slowness : {1.0, 1.1}) {
    auto stragglers = Stragglers({"node1", "node1"});
    std::mt19937 random(11);
    std::bernoulli_distribution interrupted(0.3);
    std::vector<RankScore> named;
    for (int step = 1; step <= 300; ++step) {
      for (int rank = 0; rank < 2; ++rank) {
        const double work = kMillisecond * ((rank == 1 ? slowness : 1.0) + (interrupted(random) ? 3.0 : 0.0));
        stragglers.add(rank, {{.step = step,
                               .bucket = 0,
                               .grains = 1,
                               .arrived_ns = std::int64_t{step} * 10'000'000 + std::int64_t(work),
                               .work_ns = std::int64_t(work)}});
      }
      for (const RankScore& score : stragglers.newly_named()) named.push_back(score);
    }
    EXPECT_EQ(named.size(), slowness > 1 ? 1U : 0U);
  }
}

TEST(StragglersTest, NobodyIsNamedOnAnEvenMachine) {
  auto stragglers = four_ranks();
  EXPECT_TRUE(run(stragglers, 5000, [](int, int) { return 1.0; }).empty());
  for (const RankScore& score : stragglers.scores()) EXPECT_GT(score.score, 0.95);
}

TEST(StragglersTest, WhoHasMoreGrainsIsNotToBlame) {
  auto stragglers = four_ranks();
  const auto named = run(
      stragglers, 1000, [](int, int) { return 1.0; }, [](int rank) { return rank == 0 ? 3 : 2; });
  EXPECT_TRUE(named.empty());
  EXPECT_GT(stragglers.scores()[0].last_share, 0.9) << "although it is last";
}

TEST(StragglersTest, AHiccupIsNoTrait) {
  auto stragglers = four_ranks();
  const auto named =
      run(stragglers, 1000, [](int rank, int step) { return rank == 1 && step % 100 < 40 ? 5.0 : 1.0; });
  EXPECT_TRUE(named.empty());
}

int two_grains(int /*rank*/) {
  return 2;
}

/// 49 of the eighty steps that are compared, which is the middle of its work: but never most of both halves, for ranks
/// are compared every ten steps.
TEST(StragglersTest, RankMustBeSlowInBothHalvesOfWhatIsCompared) {
  auto stragglers = Stragglers(std::vector<std::string>(8, "node1"));
  const auto named = run(
      stragglers, 400,
      [](int rank, int step) { return rank == 1 && step >= 201 && step < 201 + 49 ? 1.5 : 1.0; }, two_grains,
      [](int, int) { return 0.0; }, 8);
  EXPECT_TRUE(named.empty());
  auto longer = Stragglers(std::vector<std::string>(8, "node1"));
  EXPECT_EQ(run(
                longer, 400,
                [](int rank, int step) { return rank == 1 && step >= 201 && step < 201 + 60 ? 1.5 : 1.0; },
                two_grains, [](int, int) { return 0.0; }, 8)
                .size(),
            1U)
      << "ten steps more are";
}

TEST(StragglersTest, RankThatWaitsForAProcessorIsCrowdedAndNotSlow) {
  const auto waits = [](int rank, int step) { return rank >= 2 && step >= 100 ? 1.0 + rank : 0.0; };
  const auto even = [](int, int) { return 1.0; };
  auto for_a_moment = four_ranks();
  EXPECT_TRUE(run(for_a_moment, 350, even, two_grains, waits).empty());
  EXPECT_TRUE(for_a_moment.newly_crowded().empty()) << "it may pass";
  auto stragglers = four_ranks();
  EXPECT_TRUE(run(stragglers, 1000, even, two_grains, waits).empty());
  const auto crowded = stragglers.newly_crowded();
  ASSERT_EQ(crowded.size(), 1U) << "a host is said once";
  EXPECT_EQ(crowded[0].rank, 3);
  EXPECT_NEAR(crowded[0].queued_share, 4.0 / 6, 0.02);
  EXPECT_EQ(describe_crowded(crowded[0]).find("rank 3 (node2) waits for a processor in 6"), 0U)
      << describe_crowded(crowded[0]);
  EXPECT_EQ(describe(crowded[0]).find("rank 3 (node2) arrives last in 100 % of buckets"), 0U);
  EXPECT_GT(stragglers.scores()[3].score, 0.95) << "what it does it does as fast as the others";
  EXPECT_FALSE(stragglers.scores()[3].is_straggler());
}

/// Beside others' programs each rank in turn is a third slower for two seconds.
TEST(StragglersTest, WhatALoadedMachineDoesToRanksIsNoFaultOfTheirs) {
  const auto in_turn = [](int rank, int step) { return step / 200 % 4 == rank ? 1.33 : 1.0; };
  const auto loaded = [](int, int step) { return step % 5 == 0 ? 2.0 : 0.0; };
  auto stragglers = four_ranks();
  EXPECT_TRUE(run(stragglers, 4000, in_turn, two_grains, loaded).empty());
  EXPECT_TRUE(stragglers.newly_crowded().empty()) << "all wait alike";
  auto alone = four_ranks();
  EXPECT_EQ(run(alone, 4000, in_turn).size(), 4U) << "without load they are named";
}

TEST(StragglersTest, OnALoadedMachineItTakesThreeSecondsToNameASlowRank) {
  const auto loaded = [](int, int step) { return step % 5 == 0 ? 2.0 : 0.0; };
  auto stragglers = four_ranks();
  const auto named = run(
      stragglers, 800, [](int rank, int step) { return rank == 1 && step >= 201 ? 1.25 : 1.0; }, two_grains,
      loaded);
  ASSERT_EQ(named.size(), 1U);
  EXPECT_EQ(named[0].rank, 1);
  EXPECT_GE(named[0].first_named_step, 201 + 220)
      << "the first eighty steps it is judged by may begin before it is slow";
  EXPECT_LE(named[0].first_named_step, 201 + 400);
}

TEST(StragglersTest, TheMoreRanksWaitTheSlowerMayTheyBe) {
  const auto full = [](int, int) { return 6.0; };  // three quarters of the time
  auto stragglers = four_ranks();
  EXPECT_TRUE(run(
                  stragglers, 2000, [](int rank, int) { return rank == 1 ? 1.3 : 1.0; }, two_grains, full)
                  .empty());
  auto slower = four_ranks();
  EXPECT_EQ(run(
                slower, 2000, [](int rank, int) { return rank == 1 ? 1.55 : 1.0; }, two_grains, full)
                .size(),
            1U);
}

TEST(StragglersTest, WhatNoNeighbourDoesIsNamedAtOnceThoughTheMachineIsLoaded) {
  const auto loaded = [](int, int step) { return step % 5 == 0 ? 2.0 : 0.0; };
  auto stragglers = four_ranks();
  const auto named = run(
      stragglers, 400, [](int rank, int step) { return rank == 1 && step >= 201 ? 2.0 : 1.0; }, two_grains,
      loaded);
  ASSERT_EQ(named.size(), 1U);
  EXPECT_LE(named[0].first_named_step, 301);
}

TEST(StragglersTest, RankThatAgesIsComparedWithItsOwnPast) {
  auto stragglers = four_ranks();
  run(stragglers, 400, [](int, int step) { return step < 200 ? 1.0 : 2.0; });
  for (const RankScore& score : stragglers.scores()) {
    EXPECT_NEAR(score.score, 0.5, 0.05);
    EXPECT_FALSE(score.named) << "all are slower alike";
  }
}

}  // namespace
}  // namespace lockstep::watchdog
