// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Learning rates and momentum of every step, against PyTorch in double.
#include "tests/trainer/training/weight_update_fixture.hpp"

namespace lockstep {
namespace {

using namespace weight_update_test;

/// The keys of a schedule's section, with those that it needs.
std::string section_of(const ScheduleKind& kind) {
  std::string text = fmt::format("schedule: {{kind: {}", kind.name);
  for (const MemberKey& key : kind.keys) {
    if (key.required)
      text += fmt::format(", {}: {}", key.name,
                          key.name == "milestones" ? "[3, 8]"
                          : key.name == "gamma"    ? "0.9"
                                                   : "3");
  }
  return text + "}";
}

bool has_key(const OptimizerKind& kind, std::string_view name) {
  return std::ranges::find(kind.keys, name, &MemberKey::name) != kind.keys.end();
}

/// Scalars told to a job's rule must be the same as without a schedule of the momentum.
int steps_told_another_momentum(const std::string& optimizer, const ScheduleKind& schedule) {
  const Job job = job_with(optimizer + ", " + section_of(schedule));
  const WeightUpdate update(training_options(job), layout(), kStepsPerEpoch);
  const OptimizerKind& alone = find_optimizer(job.train.optimizer);
  int differing = 0;
  for (std::int64_t step = 0; step < static_cast<std::int64_t>(kSteps); ++step) {
    const auto expected = alone.scalars(job.train.optimizer, {.lr = update.learning_rate(step)}, step);
    if (!std::ranges::equal(update.scalars(step).at, expected.at)) ++differing;
  }
  return differing;
}

TEST(MomentumTest, NoScheduleGivesMomentumToAnOptimizerWhoseMomentumIsZero) {
  int with_momentum = 0;
  for (const OptimizerKind& optimizer : optimizer_kinds()) {
    if (!has_key(optimizer, "momentum")) continue;
    ++with_momentum;
    const std::string zero = fmt::format("optimizer: {{kind: {}, momentum: 0}}", optimizer.name);
    const std::string some = fmt::format("optimizer: {{kind: {}, momentum: 0.5}}", optimizer.name);
    for (const ScheduleKind& schedule : schedule_kinds()) {
      EXPECT_EQ(steps_told_another_momentum(zero, schedule), 0) << optimizer.name << ", " << schedule.name;
      if (schedule.name == "one_cycle") {
        EXPECT_GT(steps_told_another_momentum(some, schedule), 90) << optimizer.name;
      }
    }
  }
  EXPECT_GE(with_momentum, 3) << "sgd, rmsprop and lars at least";
}

/// The options of a program have a momentum for every kind, which is 0 unless it gives one.
TEST(MomentumTest, BetasFollowTheScheduleWhateverMomentumTheOptionsHave) {
  int with_betas = 0;
  for (const OptimizerKind& optimizer : optimizer_kinds()) {
    if (!has_key(optimizer, "betas")) continue;
    ++with_betas;
    Job job = job_with(fmt::format("optimizer: {{kind: {}}}, schedule: {{kind: one_cycle}}", optimizer.name));
    const StepScalars of_job = WeightUpdate(training_options(job), layout(), kStepsPerEpoch).scalars(3);
    job.train.optimizer.momentum = 0;
    const StepScalars of_program = WeightUpdate(training_options(job), layout(), kStepsPerEpoch).scalars(3);
    EXPECT_TRUE(std::ranges::equal(of_program.at, of_job.at)) << optimizer.name;
  }
  EXPECT_GE(with_betas, 4) << "adam, adamw, lion and lamb at least";
}

struct ScheduleCase {
  const char *name, *schedule;
  double behind;  ///< the rate at ten times the length of the run
};

class ScheduleGoldenTest : public ::testing::TestWithParam<ScheduleCase> {};

TEST_P(ScheduleGoldenTest, EveryStepHasPytorchsRate) {
  const Job job = job_with("optimizer: {lr: 0.1}, schedule: {" + std::string(GetParam().schedule) + "}");
  const RateSchedule schedule(job.train.schedule, job.train.optimizer.lr, {kEpochs, kStepsPerEpoch});
  const auto expected =
      golden_optimizers().values_of<double>(std::string("rates.") + GetParam().name, "F64", {kSteps});
  for (std::size_t step = 0; step < kSteps; ++step) {
    // A cosine comes to zero from 0.1, which leaves nothing of its last digits.
    EXPECT_NEAR(schedule.at(static_cast<std::int64_t>(step)).lr, expected[step],
                1e-10 * expected[step] + 1e-16)
        << "step " << step;
  }
  EXPECT_NEAR(schedule.at(10 * kSteps).lr, GetParam().behind, 1e-10 * GetParam().behind + 1e-16)
      << "behind the end of the run";
}

const ScheduleCase kSchedules[] = {
    {"constant", "kind: constant", 0.1},
    {"step", "kind: step, step_size: 6, gamma: 0.3", 0.1 * std::pow(0.3, 33)},
    {"step_by_step", "kind: step, by: step, step_size: 30", 0.1 * std::pow(0.1, 33)},
    {"multistep", "kind: multistep, milestones: [3, 4, 15], gamma: 0.5", 0.1 / 8},
    {"multistep_by_step", "kind: multistep, by: step, milestones: [10, 50]", 0.001},
    {"exponential", "kind: exponential, gamma: 0.9", 0.1 * std::pow(0.9, 200)},
    {"polynomial", "kind: polynomial, power: 2", 0},
    {"polynomial_by_step", "kind: polynomial, by: step, total: 60, power: 0.5", 0},
    {"cosine", "kind: cosine, min_lr: 0.001", 0.001},
    {"cosine_by_step", "kind: cosine, by: step", 0},
    {"one_cycle", "kind: one_cycle", 0.1 / 25 / 10000},
    {"one_cycle_linear",
     "kind: one_cycle, pct_start: 0.4, div_factor: 10, final_div_factor: 100, anneal: linear",
     0.1 / 10 / 100},
    {"cosine_after_epochs", "kind: cosine, warmup_epochs: 4, warmup_start: 0.1", 0},
    {"step_after_epochs", "kind: step, step_size: 5, gamma: 0.5, warmup_epochs: 5, warmup_start: 0.1",
     0.1 * std::pow(0.5, 39)},
    {"cosine_after_steps", "kind: cosine, by: step, warmup_steps: 10, warmup_start: 0.1", 0},
    {"constant_after_steps", "kind: constant, warmup_steps: 30, warmup_start: 0.1", 0.1},
};
INSTANTIATE_TEST_SUITE_P(All, ScheduleGoldenTest, testing::ValuesIn(kSchedules),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// The rate then rises at every step, over as many steps as those epochs have.
TEST(WarmupTest, EpochsByStepAreThatManySteps) {
  const auto rates = [](const std::string& warmup) {
    const Job job = job_with("optimizer: {lr: 0.1}, schedule: {kind: cosine, by: step, warmup_start: 0.1, " +
                             warmup + "}");
    const RateSchedule schedule(job.train.schedule, 0.1, {kEpochs, kStepsPerEpoch});
    EXPECT_EQ(schedule.warmup_steps(), 2 * kStepsPerEpoch);
    std::vector<double> all;
    for (std::size_t step = 0; step < kSteps; ++step)
      all.push_back(schedule.at(static_cast<std::int64_t>(step)).lr);
    return all;
  };
  const auto by_epochs = rates("warmup_epochs: 2");
  EXPECT_EQ(by_epochs, rates("warmup_steps: 10"));
  for (std::size_t step = 0; step < 10; ++step)
    EXPECT_NEAR(by_epochs[step], 0.1 * (0.1 + 0.09 * static_cast<double>(step)), 1e-12) << "step " << step;
}

TEST(OneCycleTest, MayBeginAtItsTop) {
  const Job job = job_with("optimizer: {lr: 0.1}, schedule: {kind: one_cycle, total: 10, pct_start: 0.1}");
  const RateSchedule schedule(job.train.schedule, 0.1, {kEpochs, kStepsPerEpoch});
  EXPECT_EQ(schedule.at(0).lr, 0.1);
  EXPECT_EQ(schedule.at(0).momentum, 0.85);
  EXPECT_NEAR(schedule.at(9).lr, 0.1 / 25 / 10000, 1e-16);
}

TEST(LrScalingTest, FollowsTheGlobalBatch) {
  const auto rate = [](const std::string& scaling) {
    return scaled_lr(job_with("optimizer: {lr: 0.1" + scaling + "}").train.optimizer, 1024);
  };
  EXPECT_EQ(rate(""), 0.1);
  EXPECT_EQ(rate(", lr_scaling: {rule: none}"), 0.1);
  EXPECT_EQ(rate(", lr_scaling: {rule: linear}"), 0.4);
  EXPECT_EQ(rate(", lr_scaling: {rule: sqrt, base_batch: 64}"), 0.4);
}

}  // namespace
}  // namespace lockstep
