// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Schedules of pipelines: complete, in order, without circles; cuts; a pipeline of two stages, and its evaluation.
#include "comm/thread/thread_ranks.hpp"
#include "models/layer.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"
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

/// Two ranks have a stage each. As many samples are for validation as for the test.
void with_pipeline(const std::function<void(ParallelStrategy&)>& check) {
  const Job job = parse_job(
      "model: mlp\n"
      "data: {set: synthetic, train_samples: 64, validation: 8, test_samples: 8, global_batch: 16}\n"
      "parallel: {device: cpu, grain: 4, strategy: pipeline}\n",
      "test.yaml", {});
  const DatasetFuture data = load_in_advance(job);
  run_thread_ranks(2, [&](Communicator& comm) {
    const StrategyEntry& entry = find_strategy(job);
    const JobSetup setup = set_up(job, comm, data, entry.setup);
    const auto pipeline = entry.make(setup, comm);
    if (comm.rank() == 0) setup.network.initialise(job.train.seed, pipeline->whole_state().weights);
    pipeline->distribute();
    check(*pipeline);
  });
}

TEST(PipelineTest, EachStageIsDescribedWithItsRankAndItsShare) {
  with_pipeline([](const ParallelStrategy& pipeline) {
    EXPECT_EQ(
        pipeline.describe().lines,
        (std::vector<std::string>{"stage 0 (flatten1 to fc1) on rank 0: 200,960 parameters, 80 % of the work",
                                  "stage 1 (relu1 to fc3) on rank 1: 34,186 parameters, 20 % of the work"}));
  });
}

TEST(PipelineTest, EvaluatesThePartThatIsAskedFor) {
  with_pipeline([](ParallelStrategy& pipeline) {
    const Evaluation test = pipeline.evaluate(EvaluatedPart::kTest, never_leave),
                     validation = pipeline.evaluate(EvaluatedPart::kValidation, never_leave);
    EXPECT_EQ(validation.samples, test.samples);
    EXPECT_NE(validation.loss, test.loss) << "they are other samples";
  });
}

}  // namespace
}  // namespace lockstep
