// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Numbers that the library reports, its defaults, and the limits of its calls.
#include "tests/trainer/library/samples.hpp"

namespace {

using namespace lockstep_test;  // NOLINT(google-build-using-namespace)

/// 90 samples in steps of 20: the last step of an epoch has 10. The rate is halved after each epoch.
TEST(LibraryNumbersTest, ReportsCountStepsSamplesAndEpochs) {
  const auto data = bytes_set(90);
  const auto network = lockstep::Network::parse("layers: [{linear: classes}]", kShape, kClasses);
  lockstep::TrainerOptions options = kOptions;
  options.schedule = lockstep::step_decay(1, 0.5);
  lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(network, data, world, options);
    std::vector<lockstep::StepReport> seen;
    trainer.observe([&](const lockstep::StepReport& step) { seen.push_back(step); });
    EXPECT_EQ(trainer.steps_per_epoch(), 5);
    EXPECT_EQ(trainer.epochs(), 0);
    const lockstep::EpochReport first = trainer.epoch();
    EXPECT_EQ(trainer.epochs(), 1);
    EXPECT_EQ(trainer.epoch().epoch, 2);
    EXPECT_EQ(trainer.epochs(), 2);
    ASSERT_EQ(seen.size(), 10U);
    std::int64_t correct = 0;
    for (std::int64_t i = 0; i < 10; ++i) {
      const lockstep::StepReport& step = seen[static_cast<std::size_t>(i)];
      EXPECT_EQ(step.step, i + 1);
      EXPECT_EQ(step.epoch, i < 5 ? 1 : 2);
      EXPECT_EQ(step.samples, i % 5 == 4 ? 10 : 20);
      EXPECT_FLOAT_EQ(static_cast<float>(step.learning_rate), i < 5 ? 0.2F : 0.1F);
      if (i < 5) correct += step.correct;
    }
    EXPECT_EQ(std::tuple(first.epoch, first.steps, first.samples, first.correct),
              std::tuple(1, 5, 90, correct));
  });
}

TEST(LibraryNumbersTest, AStepHasItsGradientsNormWhetherItIsObservedOrNot) {
  const auto data = bytes_set(100);
  std::array<double, 2> norms{};
  for (const bool observed : {false, true})
    lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
      lockstep::Trainer trainer(small_net(), data, world, kOptions);
      if (observed && world.rank() == 1) trainer.observe([](const lockstep::StepReport&) {});
      const double norm = trainer.step().gradient_norm;
      if (world.rank() == 0) norms[observed ? 1 : 0] = norm;
    });
  EXPECT_GT(norms[0], 0);
  EXPECT_EQ(norms[0], norms[1]);
}

/// Adam has no momentum of this name, and the schedule says what its beta1 is.
TEST(LibraryNumbersTest, OneCycleMovesBeta1WhateverTheNumbersThatAdamDoesNotHave) {
  const auto data = bytes_set(100);
  const auto weights_by = [&](const lockstep::Optimizer& optimizer) {
    lockstep::TrainerOptions options = kOptions;
    options.optimizer = optimizer;
    options.schedule.kind = "one_cycle";
    std::string sha256;
    lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
      lockstep::Trainer trainer(small_net(), data, world, options);
      for (int step = 0; step < 3; ++step) trainer.step();
      sha256 = trainer.weights_sha256();
    });
    return sha256;
  };
  const std::string usual = weights_by(lockstep::adam());
  EXPECT_EQ(weights_by({.kind = "adam", .lr = 0.001, .momentum = 0.5, .nesterov = true}), usual);
  EXPECT_EQ(weights_by({.kind = "adam", .lr = 0.001, .beta1 = 0.5}), usual);
}

TEST(LibraryNumbersTest, NormalisationIsMeasuredWhereItIsNotGiven) {
  const auto of = [](const lockstep::Normalisation& given) {
    const std::vector<std::uint8_t> bytes = {0, 255, 0, 255};
    const auto used =
        lockstep::Dataset::from_bytes({1, 1, 2}, 2, bytes, std::vector<std::int32_t>{0, 1}, given)
            .normalisation();
    return std::pair(used.mean.at(0), used.std.at(0));
  };
  EXPECT_EQ(of({}), std::pair(0.5, 0.5));
  EXPECT_EQ(of({.mean = {0.25}}), std::pair(0.25, 0.5));
  EXPECT_EQ(of({.std = {2}}), std::pair(0.5, 2.0));
  const auto two =
      lockstep::Dataset::from_bytes({2, 1, 1}, 2, std::vector<std::uint8_t>(4),
                                    std::vector<std::int32_t>{0, 1}, {.mean = {0.25}, .std = {1, 2}});
  EXPECT_EQ(two.normalisation().std, (std::vector<double>{1, 2}));
}

TEST(LibraryNumbersTest, OwnLayersHaveOptionsWithinTheirLimitsAndInitialWeights) {
  std::string read;
  const lockstep::LayerKind kind{
      .name = "idle",
      .keys = {"by", "times", "quietly"},
      .make = [&](const lockstep::ImageShape& input, const lockstep::LayerOptions& options) {
        read = fmt::format("{} {} {}", options.number("by", -10, 10, 1), options.integer("times", 1, 9, 3),
                           options.yes_or_no("quietly", true));
        return std::make_unique<Uncomputed>(
            input, std::vector<lockstep::LayerParameter>{
                       {.name = "ones", .shape = {2}, .initial = lockstep::LayerParameter::Initial::kOnes},
                       {.name = "random", .shape = {8, 8}, .fan_in = 4}});
      }};
  const auto network_with = [&](const std::string& options) {
    return lockstep::Network::parse("layers: [{idle: {" + options + "}}, {linear: classes}]", kShape,
                                    kClasses, {kind});
  };
  network_with("by: -10, times: 9, quietly: false");
  EXPECT_EQ(read, "-10 9 false");
  for (const char* wrong : {"by: 10.5", "by: -10.5", "times: 0", "times: 10", "quietly: 2"})
    EXPECT_THROW(network_with(wrong), lockstep::ConfigError) << wrong;
  const auto network = network_with("name: own");
  EXPECT_EQ(read, "1 3 true");
  EXPECT_EQ(network.tensors()[1].name, "own.random");
  lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
    const lockstep::Trainer trainer(network, bytes_set(100), world, kOptions);
    const auto weights = trainer.weights();
    EXPECT_EQ(std::pair(weights[0], weights[1]), std::pair(1.0F, 1.0F));
    const auto [least, most] = std::ranges::minmax(weights.subspan(2, 64));
    EXPECT_TRUE(-0.5F <= least && least < -0.25F && 0.25F < most && most <= 0.5F) << least << " " << most;
  });
}

/// Three means of a term each, whose sizes differ. The reducer may be another one after the first two.
std::vector<float> means(bool restores) {
  std::vector<float> all;
  lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
    const std::array<std::size_t, 2> tensors = {3, 2};
    std::optional<lockstep::GradientReducer> reducer(std::in_place, world, tensors, 4);
    for (const float size : {1e-6F, 1e30F, 1e-3F}) {
      if (restores && size == 1e-3F) {
        const auto saved = reducer->units();
        reducer.emplace(world, tensors, 4);
        reducer->restore(saved);
        const auto units = reducer->units();
        EXPECT_EQ(std::tuple(units.exponents, units.changed_at, units.steps),
                  std::tuple(saved.exponents, saved.changed_at, 2));
      }
      std::vector<float> numbers = {size, size / 3, -size, size / 7, size / 9};
      reducer->begin_step(1);
      reducer->add(numbers, 3);
      EXPECT_EQ(reducer->mean(numbers), 3);
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
  });
  return all;
}

TEST(LibraryNumbersTest, AReducerGoesOnWithTheUnitsOfAnother) {
  EXPECT_EQ(means(true), means(false));
}

TEST(LibraryNumbersTest, DefaultsAndShortFormsAreKnown) {
  const lockstep::TrainerOptions given;
  EXPECT_EQ(fmt::format("{} {} {} {} {} {} {}", given.global_batch, given.seed, given.epochs, given.clip_norm,
                        given.shuffle, given.grain, given.threads),
            "128 1234 10 0 true 64 1");
  const auto optimizer = [](const lockstep::Optimizer& o) {
    return fmt::format("{} {} {} {} {} {} {} {}", o.kind, o.lr, o.momentum, o.nesterov, o.weight_decay,
                       o.beta1, o.beta2, o.eps);
  };
  EXPECT_EQ(optimizer({}), "sgd 0.02 0 false 0 0.9 0.999 1e-08");
  EXPECT_EQ(optimizer(lockstep::sgd(0.5, 0.25)), "sgd 0.5 0.25 false 0 0.9 0.999 1e-08");
  EXPECT_EQ(optimizer(lockstep::adam()), "adam 0.001 0 false 0 0.9 0.999 1e-08");
  EXPECT_EQ(optimizer(lockstep::adamw()), "adamw 0.001 0 false 0.01 0.9 0.999 1e-08");
  const auto schedule = [](const lockstep::Schedule& s) {
    return fmt::format("{} {} {} {} {}", s.kind, s.every, s.gamma, s.min_lr, s.warmup_epochs);
  };
  EXPECT_EQ(schedule({}), "constant 0 0.1 0 0");
  EXPECT_EQ(schedule(lockstep::step_decay(3)), "step 3 0.1 0 0");
  EXPECT_EQ(schedule(lockstep::cosine(1, 0.5)), "cosine 0 0.1 0.5 1");
  EXPECT_EQ(lockstep::cross_entropy(0.25).label_smoothing, 0.25);
  EXPECT_EQ(lockstep::cross_entropy().label_smoothing, 0);
  EXPECT_EQ(lockstep::mean_squares().label_smoothing, 0);
  const lockstep::DataOptions data;
  EXPECT_EQ(std::tuple(data.train_samples, data.test_samples, data.seed), std::tuple(0, 0, 1234U));
  EXPECT_EQ(lockstep::LayerParameter().fan_in, 1);
}

TEST(LibraryNumbersTest, WhatAProgramDoesNotSetIsZero) {
  const lockstep::StepReport step;
  const lockstep::EpochReport epoch;
  const lockstep::Evaluation found;
  const lockstep::Checkpoint saved;
  const lockstep::Tensor tensor;
  const lockstep::LayerPass pass;
  const lockstep::ImageShape shape;
  for (const auto number :
       {step.step, step.epoch, step.samples, step.correct, epoch.epoch, epoch.steps, epoch.samples,
        epoch.correct, found.samples, found.correct, saved.step, saved.units.changed_at, saved.units.steps})
    EXPECT_EQ(number, 0);
  for (const double number : {step.loss, step.gradient_norm, step.learning_rate, step.seconds, epoch.loss,
                              epoch.seconds, found.loss, found.accuracy})
    EXPECT_EQ(number, 0);
  EXPECT_EQ(saved.seed + tensor.offset + tensor.size, 0U);
  EXPECT_EQ(pass.columns + pass.samples + shape.channels + shape.height + shape.width, 0);
  EXPECT_FALSE(pass.training);
}

/// By the exit code, which scripts read.
TEST(LibraryNumbersTest, ErrorsHaveTheirExitCodes) {
  const std::pair<lockstep::Error, int> errors[] = {
      {lockstep::UsageError(""), 2},        {lockstep::ConfigError(""), 2},
      {lockstep::ShapeError(""), 2},        {lockstep::DataError(""), 65},
      {lockstep::MissingDataError(""), 66}, {lockstep::DeviceError(""), 69},
      {lockstep::MemoryError(""), 69},      {lockstep::InternalError(""), 70},
      {lockstep::PeerLostError(""), 71},    {lockstep::IoError(""), 74}};
  for (const auto& [error, code] : errors) EXPECT_EQ(static_cast<int>(error.code()), code);
}

TEST(LibraryNumbersTest, RanksThatAreNotThereAreRefused) {
  EXPECT_THROW(lockstep::run_on_threads(0, [](lockstep::Communicator&) {}), lockstep::UsageError);
  lockstep::run_on_threads(3, [](lockstep::Communicator& world) {
    int number = 1;
    for (const int root : {-1, 3}) EXPECT_THROW(world.broadcast(number, root), lockstep::UsageError);
  });
}

TEST(LibraryNumbersTest, AProcessHasOneMpiAtATimeWithATimeLimit) {
  int count = 1;
  std::string name = "test";
  std::array<char*, 2> words = {name.data(), nullptr};
  char** arguments = words.data();
  for (int time = 0; time < 2; ++time) {
    lockstep::Mpi mpi(count, arguments);
    EXPECT_EQ(std::pair(mpi.world().rank(), mpi.world().size()), std::pair(0, 1));
    EXPECT_THROW({ const lockstep::Mpi another(count, arguments); }, lockstep::UsageError);
  }
  const auto start = [&](double seconds) {
    const lockstep::Mpi mpi(count, arguments, std::chrono::duration<double>(seconds));
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& wrong : {std::pair(std::nan(""), "nan"), {0.0, "0"}, {-1.5, "-1.5"}, {-kInfinity, "-inf"}})
    expect_error(kUsage,
                 {fmt::format("lockstep::Mpi: a time limit of {} s; expected more than 0", wrong.second)},
                 [&] { start(wrong.first); });
  EXPECT_NO_THROW(start(kInfinity)) << "a program may do without";
}

}  // namespace
