// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The alpha-beta model by hand, constants from tables of measurements, plans and pictures. (Whether the simulated
/// ranks add up right is what they check themselves: tests/launch/simulate_test.sh.)
#include "common/error.hpp"
#include "tests/scaling/scenario.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep {
namespace {

/// Numbers that no two of which can stand for each other.
constexpr NetworkConstants kConstants{.latency = 1e-5,
                                      .link_latency = 1e-7,
                                      .bandwidth = 1e9,
                                      .local_latency = 1e-6,
                                      .local_bandwidth = 8e9,
                                      .sum_bandwidth = 32e9};

Cluster cluster(int ranks, int ranks_per_node) {
  return {.ranks = ranks, .ranks_per_node = ranks_per_node, .nodes_per_leaf = 2, .network = kConstants};
}

double seconds(const Cluster& ranks, std::size_t bytes, ReduceKind kind = ReduceKind::kTrainer) {
  return all_reduce_seconds(kind, ranks, bytes / 8, 8);
}

TEST(AlphaBetaTest, OneRankHasNothingToWaitFor) {
  EXPECT_EQ(seconds(cluster(1, 1), 1024), 0);
}

TEST(AlphaBetaTest, SmallSumTakesEverythingInEachRound) {
  const double round = 1e-6 + 1024 / 8e9 + 1024 / 32e9;
  EXPECT_NEAR(seconds(cluster(2, 2), 1024), round, 1e-12);
  EXPECT_NEAR(seconds(cluster(4, 4), 1024), 2 * round, 1e-12);
  EXPECT_NEAR(seconds(cluster(8, 8), 1024), 3 * round, 1e-12);
}

TEST(AlphaBetaTest, LargeSumTravelsTwiceLessAPartAndIsAddedOnce) {
  const double bytes = 1 << 20;
  EXPECT_NEAR(seconds(cluster(4, 4), 1 << 20), 4e-6 + 2 * 0.75 * bytes / 8e9 + 0.75 * bytes / 32e9, 1e-12);
}

TEST(AlphaBetaTest, RanksOfANodeShareItsLink) {
  const double inside = 1e-6 + 1024 / 8e9, across = 1e-5 + 2e-7 + 4 * 1024 / 1e9, added = 1024 / 32e9;
  EXPECT_NEAR(seconds(cluster(8, 4), 1024), 2 * inside + across + 3 * added, 1e-12);
}

TEST(AlphaBetaTest, FourLinksLieBetweenNodesOfTwoSwitches) {
  const double near = 1e-5 + 2e-7 + 1024 / 1e9, far = near + 2e-7, added = 1024 / 32e9;
  EXPECT_NEAR(seconds(cluster(4, 1), 1024), near + far + 2 * added, 1e-12);
}

TEST(AlphaBetaTest, LeadersAloneUseTheLinks) {
  const double inside = 1e-6 + 1024 / 8e9, across = 1e-5 + 2e-7 + 1024 / 1e9, added = 1024 / 32e9;
  EXPECT_NEAR(seconds(cluster(8, 4), 1024, ReduceKind::kLeaders),
              2 * (inside + added) + across + added + 2 * inside, 1e-12);
}

/// A node of two ranks and one of one, which exchanges both halves with the other node's ranks at once.
TEST(AlphaBetaTest, MessagesThatAreUnderWayAtOnceShareTheirLatency) {
  const double bytes = 1 << 20, inside = 1e-6 + bytes / 2 / 8e9, across = 1e-5 + 2e-7 + bytes / 2 / 1e9;
  EXPECT_NEAR(seconds(cluster(3, 2), 1 << 20), 2 * inside + 2 * across + (bytes / 2 + bytes / 2) / 32e9,
              1e-12);
}

TEST(AlphaBetaTest, BoundIsThatOfHalvesInsideNodesAndBetweenThem) {
  const double bytes = 1 << 20, inside = 2 * (2 * 1e-6 + 0.75 * bytes / 8e9), added = bytes / 32e9;
  EXPECT_NEAR(all_reduce_bound(cluster(4, 4), 1 << 17, 8), inside + 0.75 * added, 1e-12);
  const double between = 2 * (2 * (1e-5 + 2e-7) + 2.0 / 3 * bytes / 1e9);
  EXPECT_NEAR(all_reduce_bound(cluster(12, 4), 1 << 17, 8), inside + between + 11.0 / 12 * added, 1e-12);
}

/// The trainer's time over the bound, for the gradients of net.
double times_bound(int ranks, int per_node) {
  const Cluster hosts{.ranks = ranks, .ranks_per_node = per_node, .nodes_per_leaf = 16, .network = {}};
  return seconds(hosts, 174720) / all_reduce_bound(hosts, 174720 / 8, 8);
}

TEST(AlphaBetaTest, AllReduceIsNearTheBoundForAnyNumberOfRanksOfAHost) {
  for (int ranks = 2; ranks <= test::effort(192, 24); ++ranks)
    EXPECT_LE(times_bound(ranks, ranks), 1.5) << ranks;
}

/// Hosts of any size, the last one full or not. (All numbers of ranks were tried once: docs/scaling.md.)
TEST(AlphaBetaTest, AllReduceIsNearTheBoundOnHostsOfAnySize) {
  for (const int per_host : {8, 24, 48, 96, 192}) {
    for (const int hosts : {2, 3, 5, 7, 10, 11, 21, 128}) {
      for (const int last : {1, 2, 3, 11, per_host / 2 - 1, per_host - 1, per_host}) {
        const int ranks = per_host * (hosts - 1) + last;
        if (ranks > test::effort(1024, 64)) continue;
        EXPECT_LE(times_bound(ranks, per_host), 1.5) << ranks << " by " << per_host;
      }
    }
  }
}

TEST(AlphaBetaTest, AnyNumberOfRanksComesToAnEnd) {
  for (int ranks = 2; ranks <= 20; ++ranks) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 17}) {
      EXPECT_GT(seconds(cluster(ranks, ranks), bytes), 0) << ranks;
      EXPECT_GT(seconds(cluster(ranks, 1), bytes, ReduceKind::kFarFirst), 0) << ranks;
      EXPECT_GT(seconds(cluster(ranks, 3), bytes, ReduceKind::kLeaders), 0) << ranks;
    }
  }
}

TEST(AlphaBetaTest, LatenciesArePlannedAtTheSizesThatTrainingMeasures) {
  const auto points = latency_of_model(ReduceKind::kTrainer, cluster(4, 4), 174720, 8);
  ASSERT_EQ(points.size(), 5U);
  EXPECT_EQ(points.front().bytes, 1024U);
  EXPECT_EQ(points.back().bytes, 174720U);
  EXPECT_NEAR(points.front().seconds, seconds(cluster(4, 4), 1024), 1e-15);
}

TEST(FitLocalTest, FindsTheConstantsThatTheTimesWereMadeWith) {
  MeasuredAllReduce measured{.ranks = 4, .points = {}};
  for (std::size_t bytes = 1024; bytes <= 1 << 20; bytes *= 4)
    measured.points.push_back({bytes, seconds(cluster(4, 4), bytes)});
  const auto fitted = fit_local(measured, {.sum_bandwidth = 32e9}, 1 << 20);
  EXPECT_NEAR(fitted.local_latency, 1e-6, 1e-9);
  EXPECT_NEAR(fitted.local_bandwidth, 8e9, 8e6);
  EXPECT_EQ(fitted.sum_bandwidth, 32e9);
}

TEST(FitLocalTest, TimesThatNoBandwidthExplainsGiveALatency) {
  const MeasuredAllReduce flat{.ranks = 2, .points = {{1024, 1e-4}, {4096, 1e-4}, {8192, 0.9e-4}}};
  const auto fitted = fit_local(flat, kConstants, 1 << 20);
  EXPECT_NEAR(fitted.local_latency, 1e-4, 1e-5);
  EXPECT_GT(fitted.local_bandwidth, 1e11);
}

constexpr const char* kAllReduceOutput =
    "# all-reduce (sum) over mpi, 2 ranks\n"
    "# 1024 to 4096 bytes, times 4 each; median of 30 after 5 to warm up\n"
    "#\n"
    "#    size     count  type    time  algbw  busbw #err    time  algbw  busbw #err\n"
    "     1024       128 int64    0.65   1.58   1.58    0    0.61   1.68   1.68    0\n"
    "     1024       256 float    0.70   1.46   1.46    0    0.60   1.71   1.71    0\n"
    "     4096       512 int64    1.30   3.15   3.15    0    1.20   3.41   3.41    0\n"
    "# Out of bounds values : 0 OK\n";

TEST(BenchTablesTest, ReadsInt64InPlace) {
  const auto measured = read_allreduce_table(kAllReduceOutput, "file");
  EXPECT_EQ(measured.ranks, 2);
  ASSERT_EQ(measured.points.size(), 2U);
  EXPECT_EQ(measured.points[1].bytes, 4096U);
  EXPECT_NEAR(measured.points[1].seconds, 1.2e-6, 1e-15);
}

constexpr const char* kStepOutput =
    "net: 21,840 parameters, 2.595 MFLOP a sample; global batch 128, grain 64\n"
    "2 ranks x 1 thread, backend mpi, AVX-512; peak 118.2 GFLOP/s a core\n"
    "napkin limit: 1405 us a step at the peak\n"
    "2 buckets: 21,580 + 260 parameters\n\n"
    "determinism  samples/s   us/step  of peak    input  exposed     skew optimiser\n"
    "world           64,000    2000.0   74.4 %   0.73 %   1.00 %   3.00 %    6.00 %\n"
    "off             67,441    1898.0   74.0 %   0.70 %   1.03 %   0.72 %    0.55 %\n\n"
    "world: gradients under way for 500 us a step, 480 us of it (96 %) beside backward\n"
    "world: buckets leave after 1234.5 + 1800.0 us of a step\n";

TEST(BenchTablesTest, ReadsWhatARankComputesInASecond) {
  const auto measured = read_step_table(kStepOutput, "file");
  EXPECT_NEAR(measured.flops_per_second, 2.595e6 * 64 / 1.8e-3, 1e3);
  EXPECT_EQ(measured.grains, 1);
  ASSERT_EQ(measured.until_left.size(), 2U);
  EXPECT_NEAR(measured.until_left[0], 1234.5e-6, 1e-12);
  EXPECT_NEAR(measured.until_left[1], 1800e-6, 1e-12);
}

TEST(BenchTablesTest, RefusesWhatIsNoTable) {
  for (const std::string text : {"", "# all-reduce (sum) over mpi, 1 rank\n", "{\"a\": 1}"}) {
    EXPECT_THROW(read_allreduce_table(text, "file"), DataError);
    EXPECT_THROW(read_step_table(text, "file"), DataError);
  }
  EXPECT_THROW(read_step_table(kAllReduceOutput, "file"), DataError);
  EXPECT_THROW(read_allreduce_table(kStepOutput, "file"), DataError);
}

StepProfile net_profile(int grains) {
  return profile_step(Network::load("net", {1, 28, 28}, 10), 64, grains, 1e11);
}

TEST(StepProfileTest, ComputesAllGrainsAndEndsWithTheFirstLayer) {
  const Network network = Network::load("net", {1, 28, 28}, 10);
  const StepProfile profile = net_profile(3);
  EXPECT_NEAR(profile.computing(), 3 * 64 * network.training_flops_per_sample() / 1e11, 1e-12);
  ASSERT_EQ(profile.ranges.size(), 4U);
  EXPECT_EQ(profile.stretches.back().done, 3U);
  EXPECT_EQ(profile.ranges.back().offset, 0U);
}

TEST(StepProfileTest, TakesTheTimesThatWereMeasured) {
  const std::vector<double> done{1e-3, 1.25e-3, 2e-3, 2.5e-3};
  const StepProfile profile = with_measured(net_profile(1), done);
  double now = 0;
  for (const Stretch& stretch : profile.stretches) {
    now += stretch.seconds;
    if (!stretch.done) continue;
    EXPECT_NEAR(now, done[*stretch.done], 1e-12);
  }
  EXPECT_NEAR(profile.computing(), 2.5e-3, 1e-12);
  EXPECT_NEAR(profile.ranges[1].backward_seconds, 0.75e-3, 1e-12);
}

TEST(StepPlanTest, ComesBackAsItWas) {
  const StepPlan plan{.cluster = cluster(8, 4),
                      .kind = ReduceKind::kLeaders,
                      .stretches = {{1e-3, {}}, {2e-3, 1}},
                      .buckets = {{100, 1}},
                      .spread = 0.02};
  EXPECT_EQ(to_text(step_plan_from(to_text(plan))), to_text(plan));
}

Scenario scenario(int ranks, std::size_t buckets) {
  Scenario made = plan_scenario(cluster(ranks, 2), ReduceKind::kTrainer, buckets, net_profile(1));
  made.simulated = {made.computing * 1.25, made.computing * 0.25};
  return made;
}

TEST(ScenarioTest, HasTheBucketsThatWereAskedFor) {
  EXPECT_EQ(scenario(4, 1).plan.buckets.size(), 1U);
  EXPECT_EQ(scenario(4, 3).plan.buckets.size(), 3U);
  EXPECT_EQ(scenario(4, 9).plan.buckets.size(), 4U);  // no more than there are ranges
  EXPECT_LE(scenario(4, 0).plan.exposed_seconds, scenario(4, 1).plan.exposed_seconds);
  EXPECT_NEAR(scenario(4, 1).efficiency(), 0.8, 1e-12);
}

TEST(ScalingTableTest, FitsATerminalAndNamesTheLargestDeviation) {
  const std::vector<Scenario> scenarios{scenario(4, 0), scenario(8, 1)};
  const auto lines = scaling_table(scenarios);
  ASSERT_EQ(lines.size(), 5U);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 79U) << line;
  EXPECT_TRUE(contains(lines[3], {"at most"}));
  const double times = std::max(scenarios[0].simulated.exposed / scenarios[0].bound,
                                scenarios[1].simulated.exposed / scenarios[1].bound);
  EXPECT_TRUE(contains(lines[4], {fmt::format("at most {:.2f} times", times)}));
}

}  // namespace
}  // namespace lockstep
