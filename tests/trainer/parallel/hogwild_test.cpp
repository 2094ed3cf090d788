// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Series of two ranks under hogwild: what they count together, and steps that cannot be taken.
#include "comm/thread/thread_ranks.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/strategies.hpp"

namespace lockstep {
namespace {

/// Rates are so small that no weight moves, whichever rank is faster.
constexpr const char* kJob =
    "model: net\n"
    "data: {set: synthetic, train_samples: 64, test_samples: 8, global_batch: 16, mean: 0, std: 0.1}\n"
    "train: {optimizer: {lr: 1.0e-30}}\n"
    "parallel: {device: cpu, backend: thread, grain: 4}\n";

/// Weights in the end, and their loss.
struct TrainedWeights {
  std::vector<float> weights;
  double loss = 0;
};

/// At most three steps, in which rank 1 wants to stop.
/// @param set_weights  of rank 0, from which all start
StepSeries series_of(const std::string& name, const std::function<void(std::span<float>)>& set_weights,
                     int ranks = 2, std::vector<std::string> keys = {}, TrainedWeights* trained = nullptr) {
  keys.push_back("parallel.strategy=" + name);
  if (name == "hogwild") keys.emplace_back("parallel.determinism=off");
  const Job job = parse_job(kJob, "test.yaml", keys);
  const DatasetFuture data = load_in_advance(job);
  StepSeries series;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    const StrategyEntry& entry = find_strategy(job);
    const JobSetup setup = set_up(job, comm, data, entry.setup, [](const Dataset& train) {
      return Network::parse("layers:\n  - linear: 4\n  - linear: classes\n", "test.yaml", train.shape,
                            train.classes);
    });
    const auto strategy = entry.make(setup, comm);
    if (comm.rank() == 0) set_weights(strategy->whole_state().weights);
    strategy->distribute();
    const StepSeries found = strategy->run({}, 3, comm.rank() == 1);
    EXPECT_EQ(strategy->longest_series(), name == "hogwild" && found.steps > 0 ? 2 : 1)
        << "a step takes less than a quarter of a second";
    const Evaluation judged = strategy->evaluate(EvaluatedPart::kTest, never_leave);
    EXPECT_EQ(judged.samples, 8);
    if (name == "hogwild") std::ranges::fill(strategy->whole_state().weights, 0.0F);  // a copy
    strategy->collect();
    if (comm.rank() != 0) return;
    series = found;
    const std::span<float> weights = strategy->whole_state().weights;
    if (trained != nullptr) *trained = {{weights.begin(), weights.end()}, judged.loss};
  });
  return series;
}

void count_up(std::span<float> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.001F * static_cast<float>(i % 17);
}

TEST(HogwildTest, StepsOfAllRanksAreCountedTogetherAsUnderData) {
  const StepSeries found = series_of("hogwild", count_up), expected = series_of("data", count_up);
  for (const StepSeries& series : {found, expected}) {
    EXPECT_EQ(series.steps, 3);
    EXPECT_EQ(series.samples, 48);
    EXPECT_EQ(series.last.samples, 16);
    EXPECT_TRUE(series.last.stop_requested);
    EXPECT_FALSE(series.failure);
  }
  EXPECT_EQ(found.correct, expected.correct);
  EXPECT_EQ(found.last.correct, expected.last.correct);
  EXPECT_GT(expected.loss_units.value(), kLossScale);
  EXPECT_NEAR(found.loss_units.value() / expected.loss_units.value(), 1, 1e-9);
  EXPECT_NEAR(found.last.loss() / expected.last.loss(), 1, 1e-9);
}

TEST(HogwildTest, RanksWithoutASampleInAStepWaitForTheOthers) {
  for (const char* name : {"hogwild", "data"}) {
    const StepSeries series = series_of(name, count_up, 4, {"data.train_samples=36"});
    EXPECT_EQ(series.samples, 36);
    EXPECT_EQ(series.last.samples, 4);
  }
}

/// Alone it is plain training, but for sums that are rounded in other places.
TEST(HogwildTest, OneRankEndsInTheWeightsOfDataParallelTraining) {
  const auto begin = [](std::span<float> weights) {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.02F * static_cast<float>(i % 7) - 0.06F;
    std::ranges::fill(weights.first(3), 1.0F);
  };
  for (const char* more : {"data.augment=[{mixup: {alpha: 0.5}}]",
                           "train.class_weights=[1, 0.5, 2, 0, 1, 3, 0.25, 1, 1.5, 1]"}) {
    const std::vector<std::string> keys = {more, "train.optimizer.lr=0.001", "train.optimizer.momentum=0.5",
                                           "data.mean=0.2", "data.train_samples=40"};
    TrainedWeights found, expected;
    series_of("hogwild", begin, 1, keys, &found);
    series_of("data", begin, 1, keys, &expected);
    ASSERT_EQ(found.weights.size(), expected.weights.size());
    for (std::size_t i = 0; i < found.weights.size(); ++i)
      ASSERT_NEAR(found.weights[i], expected.weights[i], 2e-6) << i;
    EXPECT_NEAR(found.loss, expected.loss, 1e-4);
  }
}

TEST(HogwildTest, SamplesWhoseLossIsNotFiniteEndTheSeries) {
  const auto set_weights = [](std::span<float> weights) {
    weights.back() = std::numeric_limits<float>::infinity();
  };
  const StepSeries one = series_of("hogwild", set_weights, 1, {"data.global_batch=1"});
  ASSERT_TRUE(one.failure);
  EXPECT_EQ(one.failure->losses, 1);
  EXPECT_EQ(one.failure->terms, 0);
  const StepSeries series = series_of("hogwild", set_weights);
  EXPECT_EQ(series.steps, 0);
  EXPECT_EQ(series.last.samples, 16);
  ASSERT_TRUE(series.failure);
  EXPECT_EQ(series.failure->losses, 16);
  EXPECT_EQ(series.failure->terms, 0);
}

/// The first step makes weights of the first layer too large for the second one.
TEST(HogwildTest, TheStepThatFailedIsCountedFromThoseBeforeIt) {
  const auto set_weights = [](std::span<float> weights) {
    std::ranges::fill(weights, 0.0F);
    for (std::size_t i = 0; i < 40; ++i) weights[784 * 4 + 4 + i] = i / 4 % 2 == 0 ? 1e30F : -1e30F;
  };
  const StepSeries series = series_of("hogwild", set_weights, 1, {"train.optimizer.lr=1000000"});
  EXPECT_EQ(series.steps, 1);
  ASSERT_TRUE(series.failure);
  EXPECT_GT(series.failure->losses, 0);
}

/// All outputs are 0, and gradients of the first layer beyond the largest float.
TEST(HogwildTest, AGradientThatIsNotFiniteIsNamedByItsTensor) {
  TrainedWeights left;
  const auto set_weights = [](std::span<float> weights) {
    std::ranges::fill(weights, 0.0F);
    for (std::size_t i = 0; i < 40; ++i) weights[784 * 4 + 4 + i] = i / 4 % 2 == 0 ? 3e38F : -3e38F;
  };
  const StepSeries series = series_of("hogwild", set_weights, 2, {}, &left);
  std::vector<float> before(left.weights.size());
  set_weights(before);
  EXPECT_TRUE(left.weights == before) << "the step was not taken";
  EXPECT_EQ(series.steps, 0);
  ASSERT_TRUE(series.failure);
  EXPECT_EQ(series.failure->losses, 0);
  EXPECT_EQ(series.failure->terms, 2) << "one on each rank";
  EXPECT_EQ(series.failure->tensor, 0U);
}

}  // namespace
}  // namespace lockstep
