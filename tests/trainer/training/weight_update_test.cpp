// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Optimisers and schedules, from their keys in a job file on, against PyTorch in double
/// (tests/golden/make_golden.py). The device is compared with the CPU, bit for bit.
#include "trainer/training/weight_update.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/safetensors.hpp"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/training/host_arena.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kSteps = 100;
constexpr std::int64_t kStepsPerEpoch = 5, kEpochs = 20;

ParameterLayout layout() {
  return {.parameters = {{.name = "weight", .shape = {5, 7}, .offset = 0, .size = 35},
                         {.name = "bias", .shape = {5}, .offset = 35, .size = 5}},
          .size = 40,
          .kept = {}};
}

ParameterLayout layout_of_two_layers() {
  return {.parameters = {{.name = "conv.weight", .shape = {4, 3, 2, 2}, .offset = 0, .size = 48},
                         {.name = "conv.bias", .shape = {4}, .offset = 48, .size = 4},
                         {.name = "fc.weight", .shape = {5, 7}, .offset = 52, .size = 35},
                         {.name = "fc.bias", .shape = {5}, .offset = 87, .size = 5}},
          .size = 92,
          .kept = {}};
}

/// Result of PyTorch's training: a file of tests/golden.
struct Golden {
  explicit Golden(const std::string& name, ParameterLayout trained)
      : file(test::read_safetensors(test::source_path(name))), layout(std::move(trained)) {}

  template <typename T>
  std::vector<T> values_of(const std::string& name, const char* dtype,
                           const std::vector<std::size_t>& shape) const {
    return test::values_of<T>(file, name, dtype, shape);
  }
  std::vector<float> initial() const { return values_of<float>("initial", "F32", {layout.size}); }
  /// One step's behind the other.
  std::vector<float> gradients() const { return values_of<float>("gradients", "F32", {kSteps, layout.size}); }
  std::vector<double> weights(const std::string& name) const {
    return values_of<double>(name, "F64", {layout.size});
  }

  SafetensorsFile file;
  ParameterLayout layout;
};

const Golden& golden_optimizers() {
  static const Golden golden("tests/golden/optimizers.safetensors", layout());
  return golden;
}

const Golden& golden_updates() {
  static const Golden golden("tests/golden/updates.safetensors", layout_of_two_layers());
  return golden;
}

/// @param train  the keys of the section train
Job job_with(const std::string& train) {
  return parse_job("{model: net, train: {epochs: " + std::to_string(kEpochs) + ", " + train + "}}",
                   "job.yaml");
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

class OptimizerGoldenTest : public testing::TestWithParam<OptimizerCase> {};

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

class UpdateGoldenTest : public testing::TestWithParam<OptimizerCase> {};

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

TEST(PatternTest, StarIsAnyCharactersAndQuestionMarkOne) {
  for (const char* pattern :
       {"fc1.weight", "fc*", "*", "**", "*weight", "f*1*t", "fc?.weight", "fc1.weigh?", "*.*"})
    EXPECT_TRUE(matches_pattern(pattern, "fc1.weight")) << pattern;
  for (const char* pattern :
       {"", "fc", "fc?", "c*", "*bias", "fc1.weight?", "fc??.weight", "FC*", "fc1.weight*x"})
    EXPECT_FALSE(matches_pattern(pattern, "fc1.weight")) << pattern;
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_FALSE(matches_pattern("?", ""));
  std::string hostile;
  for (int i = 0; i < 100; ++i) hostile += "*a";
  EXPECT_FALSE(matches_pattern(hostile + "b", std::string(200, 'a'))) << "at once, not after years";
}

TEST(GroupsTest, NeighboursThatAreTreatedAlikeAreOneRange) {
  const auto ranges = [](const std::string& train) {
    const WeightUpdate update(training_options(job_with(train)), layout_of_two_layers(), kStepsPerEpoch);
    std::vector<std::size_t> sizes;
    for (const UpdateTensor& range : update.tensors()) sizes.push_back(range.size);
    return sizes;
  };
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(ranges("optimizer: {weight_decay: 0.1}"), Sizes{92});
  EXPECT_EQ(ranges("groups: [{match: conv*, lr_factor: 0.1}]"), (Sizes{52, 40}));
  EXPECT_EQ(ranges("groups: [{match: conv*, lr_factor: 1}]"), Sizes{92});
  EXPECT_EQ(ranges("groups: [{match: conv*, weight_decay: 0}]"), Sizes{92}) << "none of the others decays";
  EXPECT_EQ(ranges("freeze: [conv.weight, fc*]"), (Sizes{48, 4, 40}));
  EXPECT_EQ(ranges("optimizer: {kind: lamb}"), (Sizes{48, 4, 35, 5}));
}

TEST(GroupsTest, BiasesAndNormsOfAnyShapeAreSparedDecay) {
  ParameterLayout layout = layout_of_two_layers();
  layout.parameters[2] = {.name = "ln.weight",
                          .shape = {5, 7, 1},
                          .offset = 52,
                          .size = 35,
                          .initial = Parameter::Initial::kOnes};
  const WeightUpdate update(training_options(job_with("optimizer: {weight_decay: 0.1, decay_biases: false}")),
                            layout, kStepsPerEpoch);
  std::vector<float> decays;
  for (const UpdateTensor& tensor : update.each()) decays.push_back(tensor.decay);
  EXPECT_EQ(decays, (std::vector<float>{1, 0, 0, 0}));
}

TEST(GroupsTest, PatternsThatMatchNothingAreRefusedWithNamesThatDo) {
  const auto error = [](const std::string& train) {
    return test::error_of<ConfigError>([&] {
      const Job job = job_with(train);
      with_places(job, [&] { require_patterns_that_match(job.train, layout_of_two_layers()); });
    });
  };
  const std::string names = "; there are conv.weight, conv.bias, fc.weight, fc.bias";
  EXPECT_EQ(error("groups: [{match: fc*, lr_factor: 0.1}], freeze: conv*"), "");
  EXPECT_EQ(
      error("freeze: [conv*, fd*]"),
      "job.yaml:1:42: train.freeze: no tensor of the network has a name like 'fd*' (did you mean 'fc*'?)" +
          names);
  EXPECT_EQ(
      error("groups: [{match: cnov.weight, lr_factor: 2}]"),
      "job.yaml:1:42: train.groups: no tensor of the network has a name like 'cnov.weight' (did you mean "
      "'conv.weight'?)" +
          names);
  EXPECT_EQ(error("groups: [{match: fc*, lr_factor: 2}, {match: '*.bias', lr_factor: 2}, {match: fc.b*}]"),
            "job.yaml:1:42: train.groups: groups before it take all tensors that 'fc.b*' matches, and the "
            "first one "
            "counts; move it up or remove it");
  EXPECT_EQ(
      error("freeze: ['*']"),
      "job.yaml:1:42: train.freeze: all tensors are frozen, and nothing is left to train; remove a pattern");
}

TEST(GroupsTest, OfManyTensorsTwelveAreNamed) {
  ParameterLayout layout;
  std::string names;
  for (int i = 0; i < 12; ++i) {
    layout.parameters.push_back(
        {.name = fmt::format("fc{}.weight", i), .shape = {1}, .offset = 0, .size = 1});
    names += (i == 0 ? "" : ", ") + layout.parameters.back().name;
  }
  const auto error = [&] {
    const Job job = job_with("freeze: [zz]");
    return message_of<OptionError>([&] { require_patterns_that_match(job.train, layout); });
  };
  const std::string none = "train.freeze: no tensor of the network has a name like 'zz'; there are ";
  EXPECT_EQ(error(), none + names);
  layout.parameters.push_back(layout.parameters.front());
  EXPECT_EQ(error(), none + names + ", ...");
}

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

struct ScheduleCase {
  const char *name, *schedule;
  double behind;  ///< the rate at ten times the length of the run
};

class ScheduleGoldenTest : public testing::TestWithParam<ScheduleCase> {};

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
  EXPECT_EQ(text("schedule: {kind: multistep, by: step, milestones: [3], warmup_steps: 2}"),
            "sgd, learning rate 0.02, multistep by step after 2 steps of warm-up");
  EXPECT_EQ(text("clip_norm: 0.5, freeze: [weight]"),
            "sgd, learning rate 0.02, constant, gradients clipped to a norm of 0.5, 1 of 2 tensors frozen");
  EXPECT_EQ(text("clip_value: 2"), "sgd, learning rate 0.02, constant, gradients clipped to values up to 2");
}

}  // namespace
}  // namespace lockstep
