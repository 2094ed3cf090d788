// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Schedules of pipelines: complete, in order, without circles; cuts; pipelines of two stages, and what they tell.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "models/layer.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"
#include "trainer/parallel/stage_links.hpp"
#include "trainer/parallel/stage_plan.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/strategies.hpp"

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

/// Each rank takes its passes in order, as soon as what they read is there. @returns how many are never taken
std::size_t passes_left(const PipelineSchedule& schedule, int stages) {
  std::vector<std::vector<PipelinePass>> left = schedule.ranks;
  std::set<std::string> done;
  const auto is_ready = [&](const PipelinePass& pass) {
    if (!pass.backward)
      return pass.stage == 0 || done.contains(text_of({{false, pass.stage - 1, pass.grain}}));
    const bool is_last = pass.stage + 1 == stages;
    return done.contains(text_of({{!is_last, is_last ? pass.stage : pass.stage + 1, pass.grain}}));
  };
  for (bool moved = true; std::exchange(moved, false);) {
    for (auto& passes : left) {
      if (passes.empty() || !is_ready(passes.front())) continue;
      done.insert(text_of({passes.front()}));
      passes.erase(passes.begin());
      moved = true;
    }
  }
  std::size_t count = 0;
  for (const auto& passes : left) count += passes.size();
  return count;
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
        EXPECT_EQ(passes_left(schedule, static_cast<int>(ranks.size())), 0U);
      }
    }
  }
}

TEST(StageBalanceTest, TheLargestStageIsAsSmallAsItCanBe) {
  const Network network = Network::load("mlp", {1, 28, 28}, 10);
  EXPECT_EQ(balance_stages(network, 2), (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(balance_stages(network, 4), (std::vector<std::size_t>{0, 1, 2, 4})) << "the others alike";
  EXPECT_EQ(balance_stages(network, 6), (std::vector<std::size_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(balance_stages(network, 7), std::nullopt);
  EXPECT_EQ(most_stages(network), 6U);
}

TEST(StageBalanceTest, ConnectionsAreNotCut) {
  const Network network = Network::parse(
      "layers:\n  - linear: {name: in, out: 8}\n  - relu: {name: a}\n  - linear: {name: mid, out: 8}\n  - "
      "add: a\n"
      "  - linear: classes\n",
      "my.yaml", {1, 4, 4}, 10);
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

/// Two ranks have a stage each. As many samples are for validation as for the test.
void with_pipeline(const std::function<void(ParallelStrategy&, Communicator&)>& check,
                   const std::vector<std::string>& more = {}, int ranks = 2) {
  const Job job = parse_job(
      "model: mlp\n"
      "data: {set: synthetic, train_samples: 64, validation: 8, test_samples: 8, global_batch: 16}\n"
      "parallel: {device: cpu, grain: 4, strategy: pipeline}\n",
      "test.yaml", more);
  const DatasetFuture data = load_in_advance(job);
  run_thread_ranks(ranks, [&](Communicator& comm) {
    const StrategyEntry& entry = find_strategy(job);
    const JobSetup setup = set_up(job, comm, data, entry.setup);
    const auto pipeline = entry.make(setup, comm);
    if (comm.rank() == 0) setup.network.initialise(job.train.seed, pipeline->whole_state().weights);
    pipeline->distribute();
    check(*pipeline, comm);
  });
}

TEST(PipelineTest, EachStageIsDescribedWithItsRankAndItsShare) {
  with_pipeline([](const ParallelStrategy& pipeline, Communicator&) {
    EXPECT_EQ(
        pipeline.describe().lines,
        (std::vector<std::string>{"stage 0 (flatten1 to fc1) on rank 0: 200,960 parameters, 80 % of the work",
                                  "stage 1 (relu1 to fc3) on rank 1: 34,186 parameters, 20 % of the work"}));
  });
  const auto check_two_pipelines = [](const ParallelStrategy& pipeline, Communicator&) {
    const StrategyDescription description = pipeline.describe();
    EXPECT_EQ(description.sums, "pipeline of 2 stages on 2 ranks, gpipe, 2 times");
    EXPECT_TRUE(description.lines[1].starts_with("stage 1 (relu1 to fc3) on ranks 1, 3: "))
        << description.lines[1];
    EXPECT_EQ(description.facts, (StrategyFacts{{"stages", "flatten1 to fc1; relu1 to fc3"},
                                                {"placement", "0, 1"},
                                                {"pipelines", "2"},
                                                {"pipeline_schedule", "gpipe"}}));
  };
  with_pipeline(check_two_pipelines, {"parallel.stages=2", "parallel.schedule=gpipe"}, 4);
}

TEST(PipelineTest, EvaluatesThePartThatIsAskedFor) {
  with_pipeline([](ParallelStrategy& pipeline, Communicator&) {
    const Evaluation test = pipeline.evaluate(EvaluatedPart::kTest, never_leave),
                     validation = pipeline.evaluate(EvaluatedPart::kValidation, never_leave);
    EXPECT_EQ(validation.samples, test.samples);
    EXPECT_NE(validation.loss, test.loss) << "they are other samples";
  });
}

/// Two ranks ask before every 16 of the 50 micro-batches.
TEST(PipelineTest, AnEvaluationEndsOnAllRanksWhereOneLeavesIt) {
  const auto leave_on_rank_1 = [](ParallelStrategy& pipeline, Communicator& comm) {
    int asked = 0;
    const Evaluation whole = pipeline.evaluate(EvaluatedPart::kTest, [&] { return ++asked < 0; });
    EXPECT_EQ(asked, 4);
    EXPECT_EQ(whole.samples, 200);
    EXPECT_FALSE(whole.interrupted);
    const Evaluation left =
        pipeline.evaluate(EvaluatedPart::kTest, [&] { return ++asked == 7 && comm.rank() == 1; });
    EXPECT_EQ(asked, 7);
    EXPECT_EQ(left.samples, 2 * 16 * 4);
    EXPECT_TRUE(left.interrupted);
  };
  with_pipeline(leave_on_rank_1, {"data.test_samples=200"});
}

/// Four micro-batches pass 256 numbers of 16 columns of four bytes, and as many gradients come back.
TEST(PipelineTest, TheSummaryOfAStepIsRankZeros) {
  const auto take_a_step = [](ParallelStrategy& pipeline, Communicator& comm) {
    EXPECT_TRUE(pipeline.summary().lines.empty()) << "no step was taken";
    pipeline.run({}, 1, false);
    const StrategySummary summary = pipeline.summary();
    EXPECT_EQ(summary.lines.size(), comm.rank() == 0 ? 3U : 0U);
    if (summary.lines.empty()) return;
    std::map<std::string, double> numbers(summary.numbers.begin(), summary.numbers.end());
    EXPECT_EQ(numbers["bytes_sent"], 2 * 4 * 256 * 16 * 4);
    EXPECT_EQ(numbers["micro_batches"], 4);
    EXPECT_EQ(numbers["stage_0_in_flight"], 2);
    EXPECT_EQ(numbers["stage_1_in_flight"], 1);
    EXPECT_EQ(summary.lines[0],
              fmt::format("pipeline: bubble {:.1f} % of the ranks' time in steps; 128 KiB of activations and "
                          "gradients sent",
                          100 * numbers["bubble"]));
    EXPECT_EQ(
        summary.lines[1],
        fmt::format("stage 0 (flatten1 to fc1) on rank 0: 200,960 parameters, 2 micro-batches in flight, "
                    "forward {:.2f} ms, backward {:.2f} ms",
                    1000 * numbers["stage_0_forward_seconds"], 1000 * numbers["stage_0_backward_seconds"]));
  };
  with_pipeline(take_a_step, {"parallel.determinism=off"});
}

TEST(PipelineTest, WhatARankHasNotCannotBeShown) {
  const auto refusal = [](ParallelStrategy& pipeline, Sight part) {
    return test::error_of<ConfigError>([&] { pipeline.require_sight(part); });
  };
  const std::string sends_none =
      "inject.what: this rank sends no sums; use more replicas of a pipeline, or the strategy data";
  with_pipeline([&](ParallelStrategy& pipeline, Communicator&) {
    for (const Sight part : {Sight::kSamples, Sight::kState, Sight::kMessages, Sight::kOutputs})
      EXPECT_EQ(refusal(pipeline, part), "");
    EXPECT_EQ(refusal(pipeline, Sight::kSumsOnTheirWay), sends_none);
    test::expect_words(refusal(pipeline, Sight::kSums),
                       {"this parallel.strategy cannot reach what it trains"});
  });
  const auto check_two_pipelines = [&](ParallelStrategy& pipeline, Communicator& comm) {
    const bool has_none = comm.rank() % 2 == 0;
    EXPECT_EQ(refusal(pipeline, Sight::kSumsOnTheirWay), has_none ? sends_none : "");
    EXPECT_EQ(refusal(pipeline, Sight::kState),
              has_none ? "inject.rank: the stages of this rank have no weights" : "");
  };
  with_pipeline(check_two_pipelines, {"parallel.stages=[[flatten1], [fc1, relu1, fc2, relu2, fc3]]"}, 4);
  const auto check_one_rank = [&](ParallelStrategy& pipeline, Communicator&) {
    EXPECT_EQ(refusal(pipeline, Sight::kMessages),
              "inject.what: this rank takes no messages of other stages in host memory");
  };
  with_pipeline(check_one_rank, {"parallel.stages=2"}, 1);
}

}  // namespace
}  // namespace lockstep
