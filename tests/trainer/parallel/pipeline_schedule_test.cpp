// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Schedules of pipelines: complete, in order, without circles; cuts; waits between stages.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "models/layer.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/parallel/held_layout.hpp"
#include "trainer/parallel/stage_links.hpp"
#include "trainer/parallel/stage_plan.hpp"
#include "trainer/training/setup.hpp"

namespace lockstep {
namespace {

/// "F0.0" is the forward pass of stage 0 over grain 0.
std::string text_of(const std::vector<PipelinePass>& passes) {
  std::string text;
  for (const PipelinePass& pass : passes) {
    text += (text.empty() ? "" : " ") + std::string(pass.backward ? "B" : "F") + std::to_string(pass.stage) +
            "." + std::to_string(pass.grain);
  }
  return text;
}

PipelineSchedule make(const std::vector<int>& ranks, int grains, PipelineOrder order) {
  return make_schedule(ranks, std::vector<bool>(ranks.size(), true), grains, order);
}

TEST(PipelineScheduleTest, OneForwardOneBackwardAsEverybodyDrawsIt) {
  const PipelineSchedule schedule = make({0, 1}, 4, PipelineOrder::k1F1B);
  EXPECT_EQ(text_of(schedule.ranks[0]), "F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 B0.3");
  EXPECT_EQ(text_of(schedule.ranks[1]), "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3");
  EXPECT_EQ(schedule.in_flight, (std::vector<int>{2, 1}));
}

/// A backward pass takes twice as long; of passes that can start, a later stage's is first.
TEST(PipelineScheduleTest, ARankOfSeveralStagesTakesWhatCanStartFirst) {
  const PipelineSchedule schedule = make({0, 0, 0, 0, 1}, 2, PipelineOrder::k1F1B);
  EXPECT_EQ(text_of(schedule.ranks[0]),
            "F0.0 F1.0 F2.0 F3.0 F0.1 F1.1 F2.1 B3.0 B2.0 B1.0 B0.0 F3.1 B3.1 B2.1 B1.1 B0.1");
  EXPECT_EQ(text_of(schedule.ranks[1]), "F4.0 B4.0 F4.1 B4.1");
  EXPECT_EQ(schedule.in_flight, (std::vector<int>{2, 2, 2, 1, 1}));
}

TEST(PipelineScheduleTest, GPipeGoesForwardFirst) {
  const PipelineSchedule schedule = make({0, 1}, 3, PipelineOrder::kGPipe);
  EXPECT_EQ(text_of(schedule.ranks[0]), "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2");
  EXPECT_EQ(schedule.in_flight, (std::vector<int>{3, 3}));
}

TEST(PipelineScheduleTest, StagesWithNothingBehindThemOnlyGoForward) {
  const std::vector<int> ranks{0, 1};
  const PipelineSchedule schedule = make_schedule(ranks, {false, true}, 2, PipelineOrder::k1F1B);
  EXPECT_EQ(text_of(schedule.ranks[0]), "F0.0 F0.1");
  EXPECT_EQ(text_of(schedule.ranks[1]), "F1.0 B1.0 F1.1 B1.1");
}

struct Followed {
  std::size_t left = 0;      ///< passes that are never taken
  double busy = 0, all = 0;  ///< time of passes, and of all ranks until the last one has ended
};

/// Each rank takes its passes in order, as soon as what they read is there. A backward pass takes twice as long.
Followed follow(const PipelineSchedule& schedule, int stages) {
  std::vector<std::vector<PipelinePass>> left = schedule.ranks;
  std::map<std::string, double> ends{{"input", 0}};
  const auto read_by = [&](const PipelinePass& pass) -> std::string {
    const bool is_last = pass.stage + 1 == stages;
    if (!pass.backward) return pass.stage == 0 ? "input" : text_of({{false, pass.stage - 1, pass.grain}});
    return text_of({{!is_last, is_last ? pass.stage : pass.stage + 1, pass.grain}});
  };
  std::vector<double> free(left.size());
  Followed followed;
  for (bool moved = true; std::exchange(moved, false);) {
    for (std::size_t rank = 0; rank < left.size(); ++rank) {
      if (left[rank].empty()) continue;
      const PipelinePass pass = left[rank].front();
      const auto ready = ends.find(read_by(pass));
      if (ready == ends.end()) continue;
      const double length = pass.backward ? 2 : 1;
      free[rank] = ends[text_of({pass})] = std::max(free[rank], ready->second) + length;
      followed.busy += length;
      left[rank].erase(left[rank].begin());
      moved = true;
    }
  }
  followed.all = static_cast<double>(free.size()) * *std::ranges::max_element(free);
  for (const auto& passes : left) followed.left += passes.size();
  return followed;
}

/// Whatever the placement: every pass once, grains in order, and no rank waits in a circle.
TEST(PipelineScheduleTest, AnyPlacementIsFollowedToItsEnd) {
  for (const std::vector<int>& ranks : {std::vector<int>{0},
                                        {0, 0, 0},
                                        {0, 1, 0, 1},
                                        {0, 1, 2, 3},
                                        {0, 1, 1, 0},
                                        {1, 0, 1, 2, 0, 2},
                                        {0, 1, 2, 0, 1, 2, 0}}) {
    for (const auto& [order, trains] : {std::pair{PipelineOrder::k1F1B, true},
                                        {PipelineOrder::kGPipe, true},
                                        {PipelineOrder::k1F1B, false}}) {
      for (const int grains : {0, 1, 2, 7}) {
        const std::vector<bool> goes_back(ranks.size(), trains);
        const PipelineSchedule schedule = make_schedule(ranks, goes_back, grains, order);
        std::size_t passes = 0;
        for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
          passes += schedule.ranks[rank].size();
          std::vector<int> next(2 * ranks.size());
          for (const PipelinePass& pass : schedule.ranks[rank]) {
            EXPECT_EQ(ranks[static_cast<std::size_t>(pass.stage)], static_cast<int>(rank));
            EXPECT_EQ(pass.grain, next[static_cast<std::size_t>(2 * pass.stage + (pass.backward ? 1 : 0))]++);
          }
        }
        const std::size_t each = trains ? 2 : 1;
        EXPECT_EQ(passes, each * ranks.size() * static_cast<std::size_t>(grains));
        EXPECT_EQ(follow(schedule, static_cast<int>(ranks.size())).left, 0U);
      }
    }
  }
}

/// As docs/parallel.md has it.
TEST(PipelineScheduleTest, TheBubbleOfEqualStages) {
  const auto bubble = [](int p, int v, int m, PipelineOrder order) {
    std::vector<int> ranks;
    for (int stage = 0; stage < p * v; ++stage) ranks.push_back(stage % p);
    const Followed followed = follow(make(ranks, m, order), p * v);
    return 1 - followed.busy / followed.all;
  };
  const auto formula = [](int p, int v, int m) { return (p - 1.0) / (v * m + p - 1); };
  for (const int p : {1, 2, 3, 4}) {
    for (const int m : {1, 2, 5, 8}) {
      EXPECT_NEAR(bubble(p, 1, m, PipelineOrder::k1F1B), formula(p, 1, m), 1e-12) << p << " " << m;
      EXPECT_NEAR(bubble(p, 1, m, PipelineOrder::kGPipe), formula(p, 1, m), 1e-12) << p << " " << m;
      EXPECT_NEAR(bubble(p, 2, p * m, PipelineOrder::kGPipe), formula(p, 2, p * m), 1e-12) << p << " " << m;
    }
  }
  EXPECT_NEAR(bubble(2, 2, 8, PipelineOrder::k1F1B), 1.0 / 9, 1e-12);
  EXPECT_NEAR(formula(2, 2, 8), 1.0 / 17, 1e-12);
}

TEST(StageBalanceTest, TheLargestStageIsAsSmallAsItCanBe) {
  const Network network = Network::load("mlp", {1, 28, 28}, 10);
  EXPECT_EQ(balance_stages(network, 2), (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(balance_stages(network, 4), (std::vector<std::size_t>{0, 1, 2, 4})) << "the others alike";
  EXPECT_EQ(balance_stages(network, 6), (std::vector<std::size_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(balance_stages(network, 7), std::nullopt);
  EXPECT_EQ(most_stages(network), 6U);
}

/// Layers with weights have three directions, the first of them no data gradient; others count their numbers twice.
TEST(StageBalanceTest, WorkIsThatOfAllDirections) {
  const Network network =
      Network::parse("layers:\n  - linear: 3\n  - relu\n  - linear: classes\n", "my.yaml", {1, 2, 2}, 2);
  EXPECT_EQ(layer_work(network), (std::vector<double>{2 * 24, 2 * 3, 3 * 12}));
  EXPECT_EQ(balance_stages(network, 0), std::nullopt);
  std::vector<double> shares;
  for (const PipelineStage& stage : plan_stages({.stages = {3, {}}}, network, 3).stages)
    shares.push_back(stage.work);
  EXPECT_EQ(shares, (std::vector<double>{48.0 / 90, 6.0 / 90, 36.0 / 90}));
}

Network with_a_connection() {
  return Network::parse(
      "layers:\n  - linear: {name: in, out: 8}\n  - relu: {name: a}\n  - linear: {name: mid, out: 8}\n  - "
      "add: a\n"
      "  - linear: classes\n",
      "my.yaml", {1, 4, 4}, 10);
}

TEST(StageBalanceTest, ConnectionsAreNotCut) {
  const Network network = with_a_connection();
  EXPECT_EQ(most_stages(network), 3U);
  EXPECT_EQ(balance_stages(network, 3), (std::vector<std::size_t>{0, 1, 4}));
  ASSERT_TRUE(connection_across(network, 3));
  EXPECT_EQ(connection_across(network, 3)->from, "a");
}

TEST(StagePlanTest, RanksThatDoNotComeOutAreRefusedWithThoseThatDo) {
  const Network network = Network::load("mlp", {1, 28, 28}, 10);
  const auto refusal = [&](int stages, std::vector<std::int64_t> placement, int world) {
    const PipelineOptions options{.stages = {stages, {}}, .placement = std::move(placement)};
    return message_of<OptionError>([&] { plan_stages(options, network, world); });
  };
  EXPECT_EQ(
      refusal(6, {}, 20),
      "parallel.stages: 6 stages do not come out on 20 ranks; start 1, 2, 3, 6, 12, 18 (a multiple of 6, "
      "or a divisor), or ask for another number of stages");
  EXPECT_EQ(
      refusal(2, {0, 1}, 1),
      "parallel.placement: a pipeline of 2 ranks, and 1 was started; start 2 or another multiple of it");
  EXPECT_EQ(
      refusal(2, {1, 0}, 5),
      "parallel.placement: a pipeline of 2 ranks, and 5 were started; start 4 or another multiple of it");
}

TEST(StagePlanTest, StagesThatAreNotTheNetworksAreRefusedWithItsLayers) {
  const auto refusal = [](const Network& network, const PipelineOptions& options) {
    return message_of<OptionError>([&] { plan_stages(options, network, 2); });
  };
  const Network mlp = Network::load("mlp", {1, 28, 28}, 10), branched = with_a_connection();
  const std::string layers = "flatten1, fc1, relu1, fc2, relu2, fc3", &name = mlp.name();
  EXPECT_EQ(refusal(mlp, {.stages = {7, {}}}),
            "parallel.stages: 7 stages, but " + name + " has only 6 layers; ask for 6 or fewer");
  EXPECT_EQ(refusal(branched, {.stages = {4, {}}}),
            "parallel.stages: 4 stages, but between its residual connections " + branched.name() +
                " can be cut into 3 at most; ask for 3 or fewer");
  using Layers = std::vector<std::vector<std::string>>;
  const std::pair<Layers, std::string> rows[] = {
      {{{"flatten1", "fc1"}, {"fc2", "relu2", "fc3"}},
       "the stages do not cover " + name +
           ": layer relu1 is missing before fc2; list every layer in order, or give a number of stages, such "
           "as 2"},
      {{{"flatten1", "fc1"}, {"relu1", "fc2"}},
       "the stages do not cover " + name +
           ": layer relu2 is missing at the end; list every layer in order, or give a number of stages, such "
           "as 2"},
      {{{"flatten1", "zzzzzz"}, {"fc2"}}, name + " has no layer 'zzzzzz'; its layers are " + layers},
      {{{"flatten1", "fc1"}, {"fc1"}},
       "layer fc1 is listed twice, or after a later one; the layers of " + name + " are, in order, " +
           layers}};
  for (const auto& [stages, message] : rows)
    EXPECT_EQ(refusal(mlp, {.stages = {0, stages}}), "parallel.stages: " + message);
  EXPECT_EQ(refusal(mlp, {.stages = {2, {}}, .placement = {0, 1, 0}}),
            "parallel.placement: 3 ranks for 2 stages; give one for each");
  EXPECT_EQ(refusal(mlp, {.stages = {2, {}}, .placement = {0, 2}}),
            "parallel.placement: rank 1 has no stage; number the ranks of a pipeline from 0 on");
}

TEST(StagePlanTest, ACutThroughAConnectionIsRefusedWithStagesThatFit) {
  const Network network = Network::parse(
      "layers:\n  - linear: {name: in, out: 8}\n  - relu: {name: a}\n  - linear: {name: mid, out: 8}\n  - "
      "add: {name: sum, from: a}\n  - linear: {name: last, out: classes}\n",
      "my.yaml", {1, 4, 4}, 10);
  const PipelineOptions options{.stages = {0, {{"in"}, {"a", "mid"}, {"sum", "last"}}}};
  EXPECT_EQ(message_of<OptionError>([&] { plan_stages(options, network, 3); }),
            "parallel.stages: stage 2 begins between a and sum, which adds its output; put both into one "
            "stage, such as [[in], [a, mid, sum], [last]]");
}

TEST(HeldLayoutTest, UnitsOfItsTensorsAreTakenWhereTheyDiffer) {
  const Network network = Network::load("mlp", {1, 28, 28}, 10);
  const HeldLayout held = held_layout(network, plan_stages({.stages = {2, {}}}, network, 2), 1);
  GradientUnits whole = make_gradient_units(network.parameters(), 4),
                own = make_gradient_units(held.layout, 4);
  EXPECT_FALSE(held.take_units(whole, own));
  using Exponents = std::vector<std::int16_t>;
  whole.restore(Exponents{-41, -42, -43, -44, -45, -46}, 7);
  EXPECT_TRUE(held.take_units(whole, own));
  EXPECT_EQ(Exponents(own.exponents().begin(), own.exponents().end()), (Exponents{-43, -44, -45, -46}));
  EXPECT_EQ(own.changed_at(), 7);
  EXPECT_FALSE(held.take_units(whole, own));
}

/// Two pipelines. In each, one rank waits for the activations of the other, which waits for gradients.
TEST(StageLinksTest, AWaitInVainNamesBothStagesAndTheRank) {
  const Network network = Network::load("mlp", {1, 28, 28}, 10);
  const StagePlan plan = plan_stages({.stages = {2, {}}}, network, 4);
  std::array<std::string, 4> said;
  const auto wait_in_vain = [&](Communicator& comm) {
    const auto links = make_stage_links(plan, comm, nullptr, nullptr);
    std::array<float, 3> values{};
    const int stage = comm.rank() % 2;
    at(said, comm.rank()) = message_of<PeerLostError>([&] { links->receive(1 - stage, stage, values); });
  };
  run_thread_ranks(4, wait_in_vain, std::chrono::milliseconds(50));
  test::expect_words(
      said[2], {"stage 0 (flatten1 to fc1), which takes gradients from stage 1 (relu1 to fc3) on rank 3"});
  test::expect_words(
      said[3], {"stage 1 (relu1 to fc3), which takes activations from stage 0 (flatten1 to fc1) on rank 2"});
}

}  // namespace
}  // namespace lockstep
