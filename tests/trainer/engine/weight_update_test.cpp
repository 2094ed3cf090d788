// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Optimisers and schedules, from their keys in a job file on, against PyTorch in double
/// (tests/golden/make_optimizer_golden.py); and the device against the CPU, bit for bit.
#include "trainer/engine/weight_update.hpp"

#include "common/safetensors.hpp"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/device/rig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

constexpr std::size_t kSteps = 100, kParameters = 40;
constexpr std::int64_t kStepsPerEpoch = 5, kEpochs = 20;

const SafetensorsFile& golden() {
  static const SafetensorsFile file = SafetensorsFile::read(std::string(std::getenv("LOCKSTEP_SOURCE_DIR")) +
                                                            "/tests/golden/optimizers.safetensors");
  return file;
}

template <typename T>
std::vector<T> values_of(const std::string& name, const char* dtype, const std::vector<std::size_t>& shape) {
  const TensorView& tensor = golden().require(name, dtype, shape);
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

ParameterLayout layout() {
  return {.parameters = {{.name = "weight", .shape = {5, 7}, .offset = 0, .size = 35},
                         {.name = "bias", .shape = {5}, .offset = 35, .size = 5}},
          .size = kParameters,
          .kept = {}};
}

/// @param train  the keys of the section train
Job job_with(const std::string& train) {
  return parse_job("{model: net, train: {epochs: " + std::to_string(kEpochs) + ", " + train + "}}",
                   "job.yaml");
}

struct Trained {
  std::vector<float> first, last;  ///< weights after the first and after the last step
};

Trained train_on_cpu(const WeightUpdate& update) {
  auto w = values_of<float>("initial", "F32", {kParameters});
  const auto gradients = values_of<float>("gradients", "F32", {kSteps, kParameters});
  OptimizerBuffers buffers(update.buffer_names(), kParameters);
  Trained trained;
  for (std::size_t step = 0; step < kSteps; ++step) {
    cpu::update(update.rule(), update.scalars(static_cast<std::int64_t>(step)), update.tensors(),
                gradients.data() + step * kParameters, buffers.pointers(), w.data());
    if (step == 0) trained.first = w;
  }
  trained.last = w;
  return trained;
}

/// With a count of 1 the mean gradient is the fp32 sum. The state is written once, as for one series, and
/// then every 64 steps.
Trained train_on_device(const WeightUpdate& update) {
  test::DeviceRig rig;
  auto w = rig.upload(values_of<float>("initial", "F32", {kParameters}));
  const auto gradients = rig.upload(values_of<float>("gradients", "F32", {kSteps, kParameters}));
  std::vector<DeviceBuffer<float>> buffers;
  for (std::size_t i = 0; i < update.buffer_names().size(); ++i)
    buffers.push_back(rig.zeroed<float>(kParameters));
  std::vector<std::int32_t> range_of;
  for (std::size_t i = 0; i < update.tensors().size(); ++i)
    range_of.insert(range_of.end(), update.tensors()[i].size, static_cast<std::int32_t>(i));
  const auto ranges = rig.upload(update.tensors());
  const auto of = rig.upload(range_of);
  auto factors = rig.upload(std::vector<TensorFactors>(update.tensors().size(), {NAN, NAN}));
  std::vector<std::int64_t> counters(kCounterSlots + kParameters);
  counters[kSamples] = 1;
  DeviceBuffer<StepState> state(rig.device(), 1);
  Trained trained;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const auto now = static_cast<std::int64_t>(step);
    if (step % kLongestSeries == 0) {
      StepState start;
      start.scalars = update.scalars(now);
      for (int i = 1; i < kLongestSeries; ++i) start.ahead[i - 1] = update.scalars(now + i);
      state = rig.upload(std::vector<StepState>{start});
    }
    auto sums = rig.upload(counters);
    UpdateArgs args{.parameters = kParameters,
                    .sums = sums.data(),
                    .fp32_sums = gradients.data() + step * kParameters,
                    .weights = w.data(),
                    .rule = update.rule(),
                    .tensors = {.count = static_cast<int>(ranges.size()),
                                .ranges = ranges.data(),
                                .range_of = of.data(),
                                .factors = factors.data()},
                    .state = state.data()};
    for (std::size_t i = 0; i < buffers.size(); ++i) args.buffers[i] = buffers[i].data();
    rig.ops().update(rig.stream(), args);
    if (step == 0) trained.first = rig.download(w);
    rig.stream().synchronize();
  }
  trained.last = rig.download(w);
  return trained;
}

/// Relative to the largest weight of the tensor.
double relative_error(const std::vector<float>& actual, const std::vector<double>& expected) {
  double worst = 0;
  for (const Parameter& parameter : layout().parameters) {
    double largest = 0, error = 0;
    for (std::size_t i = parameter.offset; i < parameter.offset + parameter.size; ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      error = std::max(error, std::abs(static_cast<double>(actual[i]) - expected[i]));
    }
    worst = std::max(worst, error / largest);
  }
  return worst;
}

struct OptimizerCase {
  const char *name, *train;
};

class OptimizerGoldenTest : public testing::TestWithParam<OptimizerCase> {};

TEST_P(OptimizerGoldenTest, TrainsAsPytorchInDoubleDoesOnEveryDevice) {
  const std::string name = GetParam().name;
  const Job job = job_with(GetParam().train);
  const WeightUpdate update(job, layout(), kStepsPerEpoch);
  const Trained on_cpu = train_on_cpu(update);
  EXPECT_LT(relative_error(on_cpu.first, values_of<double>("first." + name, "F64", {kParameters})), 1e-6);
  EXPECT_LT(relative_error(on_cpu.last, values_of<double>("last." + name, "F64", {kParameters})), 1e-5);
  const Trained on_device = train_on_device(update);
  EXPECT_EQ(on_device.first, on_cpu.first);
  EXPECT_EQ(on_device.last, on_cpu.last);
}

constexpr OptimizerCase kOptimizers[] = {
    {"sgd", "optimizer: {kind: sgd, lr: 0.1, momentum: 0, weight_decay: 0.01}"},
    {"sgd_momentum", "optimizer: {kind: sgd, lr: 0.02, momentum: 0.9, weight_decay: 0.01}"},
    {"sgd_nesterov", "optimizer: {kind: sgd, lr: 0.02, momentum: 0.9, nesterov: true}"},
    {"sgd_dampened", "optimizer: {kind: sgd, lr: 0.02, momentum: 0.9, dampening: 0.4, weight_decay: 0.01}"},
    {"sgd_climbing", "optimizer: {kind: sgd, lr: 0.02, dampening: 0.1, weight_decay: 0.01, maximize: true}"},
    {"sgd_no_bias",
     "optimizer: {kind: sgd, lr: 0.02, momentum: 0.9, weight_decay: 0.1, decay_biases: false}"},
    {"adam", "optimizer: {kind: adam}"},
    {"adam_decay", "optimizer: {kind: adam, lr: 0.01, betas: [0.8, 0.99], eps: 1e-6, weight_decay: 0.1}"},
    {"adamw", "optimizer: {kind: adamw}"},
    {"adamw_no_bias", "optimizer: {kind: adamw, lr: 0.01, weight_decay: 0.1, decay_biases: false}"},
    {"adam_climbing", "optimizer: {kind: adam, lr: 0.01, weight_decay: 0.1, maximize: true}"},
    {"adamw_climbing", "optimizer: {kind: adamw, lr: 0.01, weight_decay: 0.1, maximize: true}"},
    {"rmsprop", "optimizer: {kind: rmsprop}"},
    {"rmsprop_momentum",
     "optimizer: {kind: rmsprop, lr: 0.001, alpha: 0.9, eps: 1e-6, momentum: 0.9, weight_decay: 0.01}"},
    {"rmsprop_climbing",
     "optimizer: {kind: rmsprop, lr: 0.001, momentum: 0.9, weight_decay: 0.01, maximize: true}"},
    {"rmsprop_one_cycle", "optimizer: {kind: rmsprop, lr: 0.01, momentum: 0.9}, schedule: {kind: one_cycle}"},
    {"lars", "optimizer: {kind: lars, lr: 2, weight_decay: 0.01}"},
    {"lars_no_bias", "optimizer: {kind: lars, lr: 0.1, weight_decay: 0.1, decay_biases: false}"},
    {"adam_one_cycle", "optimizer: {kind: adam, lr: 0.01}, schedule: {kind: one_cycle}"},
    {"sgd_one_cycle", "optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}, schedule: {kind: one_cycle}"},
};
INSTANTIATE_TEST_SUITE_P(All, OptimizerGoldenTest, testing::ValuesIn(kOptimizers),
                         [](const auto& tested) { return std::string(tested.param.name); });

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

/// What the rule of a job is told must be what it is told without a schedule of the momentum.
int steps_told_another_momentum(const std::string& optimizer, const ScheduleKind& schedule) {
  const Job job = job_with(optimizer + ", " + section_of(schedule));
  const WeightUpdate update(job, layout(), kStepsPerEpoch);
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

struct ScheduleCase {
  const char *name, *schedule;
  double behind;  ///< the rate at ten times the length of the run
};

class ScheduleGoldenTest : public testing::TestWithParam<ScheduleCase> {};

TEST_P(ScheduleGoldenTest, EveryStepHasPytorchsRate) {
  const Job job = job_with("optimizer: {lr: 0.1}, schedule: {" + std::string(GetParam().schedule) + "}");
  const RateSchedule schedule(job.train.schedule, job.train.optimizer.lr, {kEpochs, kStepsPerEpoch});
  const auto expected = values_of<double>(std::string("rates.") + GetParam().name, "F64", {kSteps});
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

TEST(LrScalingTest, FollowsTheGlobalBatch) {
  const auto rate = [](const std::string& scaling) {
    return scaled_lr(job_with("optimizer: {lr: 0.1" + scaling + "}").train.optimizer, 1024);
  };
  EXPECT_EQ(rate(""), 0.1);
  EXPECT_EQ(rate(", lr_scaling: {rule: none}"), 0.1);
  EXPECT_EQ(rate(", lr_scaling: {rule: linear}"), 0.4);
  EXPECT_EQ(rate(", lr_scaling: {rule: sqrt, base_batch: 64}"), 0.4);
}

TEST(WeightUpdateTest, IsDescribedInALine) {
  const auto text = [](const std::string& train) {
    return WeightUpdate(job_with(train), layout(), kStepsPerEpoch).describe();
  };
  EXPECT_EQ(text("optimizer: {lr: 0.05}"), "sgd, learning rate 0.05, constant");
  EXPECT_EQ(
      text("optimizer: {kind: adamw, lr_scaling: {rule: linear, base_batch: 64}}, schedule: {kind: cosine, "
           "warmup_epochs: 1}"),
      "adamw, learning rate 0.002 (0.001 for a global batch of 64, linear scaling to 128), cosine over 19 "
      "epochs after 1 epoch of warm-up");
  EXPECT_EQ(text("schedule: {kind: multistep, by: step, milestones: [3], warmup_steps: 2}"),
            "sgd, learning rate 0.02, multistep by step after 2 steps of warm-up");
}

}  // namespace
}  // namespace lockstep
