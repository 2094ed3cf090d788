// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Optimisers, from their keys in a job file on, against PyTorch in double. The device is compared with the CPU, bit
/// for bit.
#include "comm/thread/thread_ranks.hpp"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/trainer/training/weight_update_fixture.hpp"
#include "trainer/training/host_arena.hpp"

namespace lockstep {
namespace {

using namespace weight_update_test;

const Golden& golden_updates() {
  static const Golden golden("tests/golden/updates.safetensors", layout_of_two_layers());
  return golden;
}

struct Trained {
  std::vector<float> first, last;  ///< weights after the first and after the last step
};

Trained train_on_cpu(const Job& job, const Golden& golden) {
  Trained trained;
  run_thread_ranks(1, [&](Communicator& comm) {
    const TrainingOptions options = training_options(job);
    HostArena arena({.options = options,
                     .network = golden.layout,
                     .layout = golden.layout,
                     .held = held_tensors(golden.layout),
                     .plan = {},
                     .steps_per_epoch = kStepsPerEpoch,
                     .global_grains = 1},
                    comm);
    std::ranges::copy(golden.initial(), arena.weights().begin());
    const auto gradients = golden.gradients();
    for (std::size_t step = 0; step < kSteps; ++step) {
      std::ranges::copy(std::span(gradients).subspan(step * golden.layout.size, golden.layout.size),
                        arena.gradient().begin());
      arena.take_gradient(static_cast<std::int64_t>(step));
      if (step == 0) trained.first.assign(arena.weights().begin(), arena.weights().end());
    }
    trained.last.assign(arena.weights().begin(), arena.weights().end());
  });
  return trained;
}

/// With a count of 1 the mean gradient is the fp32 sum. The state is written once, as for one series, and
/// then every 64 steps.
Trained train_on_device(const WeightUpdate& update, const Golden& golden) {
  test::DeviceRig rig;
  const std::size_t parameters = golden.layout.size;
  auto w = rig.upload(golden.initial());
  const auto gradients = rig.upload(golden.gradients());
  std::vector<DeviceBuffer<float>> buffers;
  for (std::size_t i = 0; i < update.buffer_names().size(); ++i)
    buffers.push_back(rig.zeroed<float>(parameters));
  std::vector<std::int32_t> range_of;
  for (std::size_t i = 0; i < update.tensors().size(); ++i)
    range_of.insert(range_of.end(), update.tensors()[i].size, static_cast<std::int32_t>(i));
  const auto ranges = rig.upload(update.tensors());
  const auto of = rig.upload(range_of);
  auto factors = rig.upload(std::vector<TensorFactors>(update.tensors().size(), {NAN, NAN, NAN}));
  std::vector<UpdateTensor> measured(update.each().begin(), update.each().end());
  for (UpdateTensor& tensor : measured) tensor.size = tensor.moves ? tensor.size : 0;
  const auto measured_tensors = rig.upload(measured);
  DeviceBuffer<double> squares(rig.device(), measured.size());
  auto clip_factor = rig.poisoned<float>(1);
  std::vector<std::int64_t> counters(kCounterSlots + parameters);
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
    UpdateArgs args{.parameters = parameters,
                    .sums = sums.data(),
                    .fp32_sums = gradients.data() + step * parameters,
                    .weights = w.data(),
                    .rule = update.rule(),
                    .tensors = {.count = static_cast<int>(ranges.size()),
                                .ranges = ranges.data(),
                                .range_of = of.data(),
                                .factors = factors.data()},
                    .clip = {.limit = update.clip().step(1).limit},
                    .state = state.data()};
    for (std::size_t i = 0; i < buffers.size(); ++i) args.buffers[i] = buffers[i].data();
    if (update.clip().norm > 0) {
      rig.ops().gradient_norm(rig.stream(), args,
                              {.tensors = measured_tensors.data(),
                               .count = static_cast<int>(measured.size()),
                               .squares = squares.data(),
                               .most = update.clip().norm,
                               .factor = clip_factor.data()});
      args.clip.factor = clip_factor.data();
    }
    rig.ops().update(rig.stream(), args);
    if (step == 0) trained.first = rig.download(w);
    rig.stream().synchronize();
  }
  trained.last = rig.download(w);
  return trained;
}

/// Relative to the largest weight of the tensor.
double relative_error(const ParameterLayout& layout, const std::vector<float>& actual,
                      const std::vector<double>& expected) {
  double worst = 0;
  for (const Parameter& parameter : layout.parameters) {
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

void expect_pytorchs_way(const Golden& golden, const OptimizerCase& tested) {
  const std::string name = tested.name;
  const Job job = job_with(tested.train);
  const Trained on_cpu = train_on_cpu(job, golden);
  EXPECT_LT(relative_error(golden.layout, on_cpu.first, golden.weights("first." + name)), 1e-6);
  EXPECT_LT(relative_error(golden.layout, on_cpu.last, golden.weights("last." + name)), 1e-5);
  const Trained on_device =
      train_on_device(WeightUpdate(training_options(job), golden.layout, kStepsPerEpoch), golden);
  EXPECT_EQ(on_device.first, on_cpu.first);
  EXPECT_EQ(on_device.last, on_cpu.last);
}

class OptimizerGoldenTest : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(OptimizerGoldenTest, TrainsAsPytorchInDoubleDoesOnEveryDevice) {
  expect_pytorchs_way(golden_optimizers(), GetParam());
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

class UpdateGoldenTest : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(UpdateGoldenTest, MovesAsPytorchInDoubleDoesOnEveryDevice) {
  expect_pytorchs_way(golden_updates(), GetParam());
}

constexpr OptimizerCase kUpdates[] = {
    {"clip_norm", "clip_norm: 1, optimizer: {kind: sgd, lr: 0.02, momentum: 0.9, weight_decay: 0.01}"},
    {"clip_norm_adam", "clip_norm: 0.5, optimizer: {kind: adam, lr: 0.01}"},
    {"clip_norm_never", "clip_norm: 1000000, optimizer: {kind: sgd, lr: 0.02, momentum: 0}"},
    {"clip_value", "clip_value: 0.1, optimizer: {kind: sgd, lr: 0.02, momentum: 0.9}"},
    {"groups",
     "groups: [{match: conv*, lr_factor: 0.1}, {match: fc*, weight_decay: 0}], "
     "optimizer: {kind: sgd, lr: 0.02, momentum: 0.9, weight_decay: 0.1}"},
    {"groups_schedule",
     "groups: [{match: conv.*, lr_factor: 0.1, weight_decay: 0.3}], "
     "optimizer: {kind: adamw, lr: 0.01, weight_decay: 0.1}, "
     "schedule: {kind: exponential, gamma: 0.98, by: step}"},
    {"groups_decay_alone",
     "groups: [{match: 'fc.????*', weight_decay: 0.2}], optimizer: {kind: adam, lr: 0.01}"},
    {"groups_first",
     "groups: [{match: fc.bias, lr_factor: 2}, {match: '*fc*', lr_factor: 0.1}], "
     "optimizer: {kind: sgd, lr: 0.02, momentum: 0}"},
    {"freeze", "freeze: [conv*], optimizer: {kind: adam, lr: 0.01, weight_decay: 0.1}"},
    {"freeze_clip_norm", "freeze: fc.w*, clip_norm: 0.5, optimizer: {kind: sgd, lr: 0.02, momentum: 0.9}"},
    {"amsgrad", "optimizer: {kind: adam, lr: 0.01, betas: [0.9, 0.9], amsgrad: true}"},
    {"amsgrad_decay",
     "optimizer: {kind: adamw, lr: 0.01, betas: [0.8, 0.95], weight_decay: 0.1, amsgrad: true}"},
    {"amsgrad_climbing",
     "optimizer: {kind: adam, lr: 0.01, betas: [0.9, 0.9], weight_decay: 0.1, amsgrad: true, maximize: "
     "true}"},
    {"lamb", "optimizer: {kind: lamb}"},
    {"lamb_no_bias",
     "optimizer: {kind: lamb, lr: 0.01, betas: [0.8, 0.99], weight_decay: 0.1, decay_biases: false}"},
    {"lamb_no_decay", "optimizer: {kind: lamb, lr: 0.01, weight_decay: 0}"},
    {"lamb_clip_norm", "clip_norm: 1, optimizer: {kind: lamb, lr: 0.01}"},
    {"lamb_groups",
     "groups: [{match: conv*, lr_factor: 0.1}, {match: fc*, weight_decay: 0}], "
     "optimizer: {kind: lamb, lr: 0.01, weight_decay: 0.1}, schedule: {kind: exponential, gamma: 0.98, by: "
     "step}"},
    {"lion", "optimizer: {kind: lion}"},
    {"lion_decay", "optimizer: {kind: lion, lr: 0.01, betas: [0.5, 0.8], weight_decay: 0.3}"},
    {"lion_groups",
     "groups: [{match: conv*, lr_factor: 0.1}, {match: fc*, weight_decay: 0}], clip_value: 0.1, "
     "optimizer: {kind: lion, lr: 0.01, weight_decay: 0.1}, schedule: {kind: exponential, gamma: 0.98, by: "
     "step}"},
};
INSTANTIATE_TEST_SUITE_P(All, UpdateGoldenTest, testing::ValuesIn(kUpdates),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(ClippingTest, FactorIsNeverAboveOneAndOfNoGradientOne) {
  EXPECT_EQ(clip_factor(1, 0), 1);
  EXPECT_EQ(clip_factor(1, 0.5), 1);
  EXPECT_EQ(clip_factor(1, 1), static_cast<float>(1 / (1 + 1e-6)));
  EXPECT_EQ(clip_factor(0.5, 8), static_cast<float>(0.5 / (8 + 1e-6)));
  EXPECT_EQ(clip_factor(1, INFINITY), 0);
}

TEST(ClippingTest, NumbersAtTheEdgesOfFloatsAreClippedOnEveryDeviceAlike) {
  constexpr float kLeast = 1.4e-45F, kMost = 3.4e38F;
  const std::vector<float> numbers = {0, -0.0F, kLeast, -kLeast, 1e-38F, 0.1F, -0.1F, kMost, -kMost};
  std::vector<float> by_value = numbers, by_norm = numbers;
  cpu::clip(numbers.size(), {.limit = 0.1F}, by_value.data());
  EXPECT_EQ(by_value, (std::vector<float>{0, -0.0F, kLeast, -kLeast, 1e-38F, 0.1F, -0.1F, 0.1F, -0.1F}));
  const double squares = cpu::sum_of_squares(numbers);
  EXPECT_TRUE(std::isfinite(squares)) << "the square of a float fits a double";
  cpu::clip(numbers.size(), {.factor = clip_factor(1, std::sqrt(squares))}, by_norm.data());
  EXPECT_NEAR(std::sqrt(cpu::sum_of_squares(by_norm)), 1, 1e-6);
}

TEST(WeightUpdateTest, IsDescribedInALine) {
  const auto text = [](const std::string& train) {
    return WeightUpdate(training_options(job_with(train)), layout(), kStepsPerEpoch).describe();
  };
  EXPECT_EQ(text("optimizer: {lr: 0.05}"), "sgd, learning rate 0.05, constant");
  EXPECT_EQ(
      text("optimizer: {kind: adamw, lr_scaling: {rule: linear, base_batch: 64}}, schedule: {kind: cosine, "
           "warmup_epochs: 1}"),
      "adamw, learning rate 0.002 (0.001 for a global batch of 64, linear scaling to 128), cosine over 19 "
      "epochs after 1 epoch of warm-up");
  EXPECT_EQ(text("schedule: {kind: cosine, warmup_epochs: 19}"),
            "sgd, learning rate 0.02, cosine over 1 epoch after 19 epochs of warm-up");
  EXPECT_EQ(text("schedule: {kind: one_cycle, total: 1234567}"),
            "sgd, learning rate 0.02, one_cycle over 1,234,567 steps");
  EXPECT_EQ(text("schedule: {kind: cosine, warmup_steps: 1}"),
            "sgd, learning rate 0.02, cosine over 19.8 epochs after 1 step of warm-up");
  EXPECT_EQ(text("schedule: {kind: cosine, by: step, warmup_steps: 99}"),
            "sgd, learning rate 0.02, cosine over 1 step after 99 steps of warm-up");
  EXPECT_EQ(text("schedule: {kind: multistep, by: step, milestones: [3], warmup_steps: 2}"),
            "sgd, learning rate 0.02, multistep by step after 2 steps of warm-up");
  EXPECT_EQ(text("clip_norm: 0.5, freeze: [weight]"),
            "sgd, learning rate 0.02, constant, gradients clipped to a norm of 0.5, 1 of 2 tensors frozen");
  EXPECT_EQ(text("clip_value: 2"), "sgd, learning rate 0.02, constant, gradients clipped to values up to 2");
}

}  // namespace
}  // namespace lockstep
