// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each wrong input of a program that uses the library is told in a sentence that names it.
#include "tests/trainer/library/samples.hpp"

namespace {

using namespace lockstep_test;  // NOLINT(google-build-using-namespace)

/// A trainer on one rank with these options.
void make_trainer(const lockstep::TrainerOptions& options, int ranks = 1) {
  lockstep::run_on_threads(ranks, [&](lockstep::Communicator& world) {
    const lockstep::Trainer trainer(small_net(), bytes_set(100), world, options);
  });
}

TEST(LibraryInputTest, OptionsThatDoNotFitAreNamed) {
  const auto with = [](const auto& change) {
    lockstep::TrainerOptions options = kOptions;
    change(options);
    return options;
  };
  const std::vector<std::pair<std::vector<std::string>, lockstep::TrainerOptions>> wrong = {
      {{"global_batch: 0; expected 1 or more"}, with([](auto& o) { o.global_batch = 0; })},
      {{"grain: 0; expected a whole number from 1 to 4096"}, with([](auto& o) { o.grain = 0; })},
      {{"grain: 2147483647;"}, with([](auto& o) { o.grain = INT32_MAX; })},
      {{"threads: 0; expected a whole number from 1 to 1024"}, with([](auto& o) { o.threads = 0; })},
      {{"threads: 1025;"}, with([](auto& o) { o.threads = 1025; })},
      {{"epochs: 0; expected a whole number from 1 to 1000000000"}, with([](auto& o) { o.epochs = 0; })},
      {{"clip_norm: -1; expected a number from 0, at most 1e+09"}, with([](auto& o) { o.clip_norm = -1; })},
      {{"optimizer: 'sdg' is none; there are sgd, adam"}, with([](auto& o) { o.optimizer.kind = "sdg"; })},
      {{"optimizer.lr: 0"}, with([](auto& o) { o.optimizer.lr = 0; })},
      {{"optimizer.lr: nan"}, with([](auto& o) { o.optimizer.lr = NAN; })},
      {{"optimizer.momentum: 1;"}, with([](auto& o) { o.optimizer.momentum = 1; })},
      {{"optimizer.momentum: -0.5;"}, with([](auto& o) { o.optimizer.momentum = -0.5; })},
      {{"optimizer.beta1: 1;"}, with([](auto& o) { o.optimizer = {.kind = "lion", .beta1 = 1}; })},
      {{"optimizer.beta2: 1;"}, with([](auto& o) { o.optimizer = {.kind = "lamb", .beta2 = 1}; })},
      {{"optimizer.weight_decay: -0.5;"}, with([](auto& o) { o.optimizer.weight_decay = -0.5; })},
      {{"train.optimizer.nesterov"},
       with([](auto& o) { o.optimizer = lockstep::sgd(0.1, 0, lockstep::nesterov); })},
      {{"schedule: 'cos' is none"}, with([](auto& o) { o.schedule.kind = "cos"; })},
      {{"schedule: 'multistep' is none"}, with([](auto& o) { o.schedule.kind = "multistep"; })},
      {{"schedule.warmup_epochs: -1;"}, with([](auto& o) { o.schedule.warmup_epochs = -1; })},
      {{"schedule.every: 0 epochs"}, with([](auto& o) { o.schedule = lockstep::step_decay(0); })},
      {{"train.schedule.min_lr, 0.5, must not"},
       with([](auto& o) { o.schedule = lockstep::cosine(0, 0.5); })},
      {{"schedule.warmup_epochs: 3; expected 0 or more, fewer than epochs"},
       with([](auto& o) { o.schedule = lockstep::cosine(/*warmup_epochs=*/3); })},
      {{"label_smoothing: 1;"}, with([](auto& o) { o.loss = lockstep::cross_entropy(1); })},
      {{"epochs: 9223372036854775807;"}, with([](auto& o) { o.epochs = INT64_MAX; })},
      {{"clip_norm: inf;"}, with([](auto& o) { o.clip_norm = INFINITY; })},
      {{"optimizer.lr: inf;"}, with([](auto& o) { o.optimizer.lr = INFINITY; })},
      {{"optimizer.lr: 1e-60, which is 0 as fp32"}, with([](auto& o) { o.optimizer.lr = 1e-60; })},
      {{"optimizer.beta2: 0.9999999999, which is 1 as fp32"},
       with([](auto& o) { o.optimizer = {.kind = "adam", .beta2 = 0.9999999999}; })},
      {{"optimizer.weight_decay: inf;"}, with([](auto& o) { o.optimizer.weight_decay = INFINITY; })},
      {{"optimizer.eps: 0;"}, with([](auto& o) { o.optimizer = lockstep::adam(), o.optimizer.eps = 0; })},
      {{"schedule.gamma: -0.5;"}, with([](auto& o) { o.schedule = lockstep::step_decay(1, -0.5); })},
      {{"schedule.min_lr: -0.1;"}, with([](auto& o) { o.schedule = lockstep::cosine(0, -0.1); })}};
  for (const auto& [parts, options] : wrong)
    expect_error(kUsage, parts, [&given = options] { make_trainer(given); });
  EXPECT_NO_THROW(
      make_trainer({.global_batch = 1, .schedule = lockstep::step_decay(1), .epochs = 1, .grain = 1}));
  EXPECT_NO_THROW(make_trainer(with([](auto& o) {
    o.optimizer.eps = o.schedule.gamma = 0, o.optimizer.beta1 = o.optimizer.beta2 = 1, o.schedule.min_lr = -1;
  }))) << "sgd and a constant rate have none of these";
  EXPECT_NO_THROW(make_trainer(with([](auto& o) { o.optimizer = {.kind = "adam", .momentum = 1}; })));
}

TEST(LibraryInputTest, MoreRanksThanGrainsAreRefused) {
  expect_error(kUsage, {"grain: ", "; add grain=3, or add global_batch=24, or start no more than 5"},
               [] { make_trainer(kOptions, 6); });
}

/// Ranks agree that each one's options fit before they compare them.
TEST(LibraryInputTest, OptionsOfOneRankThatDoNotFitAreNamed) {
  expect_error(
      kUsage,
      {"rank 1 on ",
       ": grain: a global batch of 4 samples in grains of 4 has work for 1 rank at most, and 2 were started"},
      [] {
        lockstep::run_on_threads(2, [](lockstep::Communicator& world) {
          lockstep::TrainerOptions options = kOptions;
          if (world.rank() == 1) options.global_batch = 4;
          const lockstep::Trainer trainer(small_net(), bytes_set(100), world, options);
        });
      });
}

/// The last step of an epoch has one sample.
TEST(LibraryInputTest, ABatchThatIsTooSmallForANormIsRefused) {
  const auto network = lockstep::Network::parse(
      "layers: [{linear: {name: a, out: 8}}, {batch_norm: {name: n}}, {linear: {name: b, out: classes}}]",
      kShape, kClasses);
  lockstep::TrainerOptions options = kOptions;
  options.global_batch = 33;
  expect_error(kUsage, {"33 leaves a batch of 1 of the 100 training samples, and layer n "}, [&] {
    lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
      const lockstep::Trainer trainer(network, bytes_set(100), world, options);
    });
  });
}

TEST(LibraryInputTest, RanksWithOtherOptionsAreRefused) {
  using Change = void (*)(lockstep::TrainerOptions&);
  const std::vector<Change> changes = {[](auto& options) { ++options.seed; },
                                       [](auto& options) { options.loss.label_smoothing = 0.1; },
                                       [](auto& options) { options.loss = lockstep::mean_squares(); },
                                       [](auto& options) { options.optimizer.eps = 1e-7; },
                                       [](auto& options) { options.schedule.gamma = 0.2; }};
  for (const Change change : changes)
    expect_error(kUsage, {"rank 1 has other options than rank 0"}, [&] {
      lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
        lockstep::TrainerOptions options = kOptions;
        if (world.rank() == 1) change(options);
        const lockstep::Trainer trainer(small_net(), bytes_set(100), world, options);
      });
    });
}

TEST(LibraryInputTest, ANumberOfAFunctionThatIsNoneIsNamed) {
  const auto with_nan = [](std::int64_t index, std::span<float> sample) {
    make_sample(index, sample);
    if (index == 7) sample[3] = NAN;
  };
  const auto data = lockstep::Dataset::from_function(
      kShape, kClasses, 40, with_nan, [](std::int64_t i) { return static_cast<int>(i % kClasses); });
  lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(small_net(), data, world, kOptions);
    expect_error(lockstep::ExitCode::kDataDamaged, {"a data set: value 3 of sample 7 is nan"},
                 [&] { trainer.evaluate(data); });
  });
}

TEST(LibraryInputTest, RanksWithOtherDataOrNetworksAreRefused) {
  const auto ours = bytes_set(100);
  const auto black = lockstep::Dataset::from_bytes(kShape, kClasses, std::vector<std::uint8_t>(1600),
                                                   ours.labels(), {.mean = {0}, .std = {1}});
  const auto other =
      lockstep::Network::parse("layers: [{linear: {name: b, out: classes}}]", kShape, kClasses);
  const auto refused = [&](const std::string& what, const auto& data, const auto& network) {
    expect_error(kUsage, {"rank 1 has " + what + " than rank 0"}, [&] {
      lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
        const bool is_first = world.rank() == 0;
        const lockstep::Trainer trainer(is_first ? small_net() : network, is_first ? ours : data, world,
                                        kOptions);
      });
    });
  };
  refused("other data", black, small_net());
  refused("another network", ours, other);
}

/// The samples are the same bytes.
TEST(LibraryInputTest, RanksWithOtherLabelsOrAnotherNormalisationAreRefused) {
  const auto set_of = [](std::int32_t first_label, double mean, double deviation) {
    std::vector<std::int32_t> labels(40);
    labels[0] = first_label;
    return lockstep::Dataset::from_bytes(kShape, kClasses, std::vector<std::uint8_t>(40 * kFeatures), labels,
                                         {.mean = {mean}, .std = {deviation}});
  };
  const auto ours = set_of(0, 0, 1);
  for (const lockstep::Dataset& other : {set_of(1, 0, 1), set_of(0, 0.5, 1), set_of(0, 0, 0.5)}) {
    expect_error(kUsage, {"rank 1 has other data than rank 0"}, [&] {
      lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
        const lockstep::Trainer trainer(small_net(), world.rank() == 0 ? ours : other, world, kOptions);
      });
    });
    lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
      lockstep::Trainer trainer(small_net(), ours, world, kOptions);
      EXPECT_EQ(trainer.evaluate(ours).samples, 40);
      expect_error(kUsage, {"rank 1 has other data than rank 0; all ranks evaluate the same data"},
                   [&] { trainer.evaluate(world.rank() == 0 ? ours : other); });
      EXPECT_EQ(trainer.evaluate(set_of(0, 0, 1)).samples, 40);
    });
  }
}

TEST(LibraryInputTest, DataThatDoNotFitAreNamed) {
  using lockstep::Dataset;
  const std::vector<std::uint8_t> bytes(32);
  const std::vector<std::int32_t> labels = {0, 1};
  const auto refused = [&](const std::string& words, const lockstep::ImageShape& shape, int classes,
                           const lockstep::Normalisation& by = {}) {
    expect_error(kUsage, {words}, [&] { Dataset::from_bytes(shape, classes, bytes, labels, by); });
  };
  refused("32 numbers for 2 labels of 1 x 4 x 5 (channels x rows x columns); expected 40", {1, 4, 5}, 2);
  for (const lockstep::ImageShape& none :
       {lockstep::ImageShape{0, 4, 4}, {1, 0, 4}, {1, 4, 0}, {1, 4096, 4097}})
    refused("samples of", none, 2);
  refused("32 numbers for 2 labels of 1 x 4096 x 4096", {1, 4096, 4096}, 2);
  refused("samples of", {1 << 20, 1 << 20, 1 << 20}, 2);
  refused("1 classes; expected 2 to 1048576", kShape, 1);
  refused("1048577 classes; expected 2 to 1048576", kShape, 1048577);
  EXPECT_NO_THROW(Dataset::from_bytes(kShape, 1048576, bytes, labels));
  refused("deviations above 0", kShape, 2, {.mean = {0}, .std = {0}});
  refused("means must be finite", kShape, 2, {.mean = {INFINITY}, .std = {1}});
  refused("2 means and 1 deviations for 1 channel;", kShape, 2, {.mean = {0, 0}, .std = {1}});
  expect_error(kUsage, {"0 samples; expected 1 to 2147483647"},
               [] { Dataset::from_function(kShape, 2, 0, make_sample, [](std::int64_t) { return 0; }); });
  const auto damaged = [&](const std::string& words, const std::vector<std::int32_t>& wrong) {
    expect_error(lockstep::ExitCode::kDataDamaged, {words},
                 [&] { Dataset::from_bytes(kShape, 2, bytes, wrong); });
  };
  damaged("label -1 of sample 0 is not in 0..1", {-1, 0});
  damaged("label 2 of sample 1 is not in 0..1", {0, 2});
  std::vector<float> floats(32);
  floats[20] = NAN;
  expect_error(lockstep::ExitCode::kDataDamaged, {"sample 1 has a number that is NaN"},
               [&] { Dataset::from_floats(kShape, 2, floats, labels); });
}

TEST(LibraryInputTest, SetsThatAreNotThereAreNamed) {
  expect_error(kUsage, {"unknown data set 'mnits'", "mnist"},
               [] { lockstep::load_dataset({.set = "mnits"}); });
  expect_error(kUsage, {"data set 'idx': root must name the folder"},
               [] { lockstep::load_dataset({.set = "idx"}); });
  expect_error(kUsage, {"'cifar10' is in the format cifar", "IDX"},
               [] { lockstep::load_dataset({.set = "cifar10"}); });
  expect_error(lockstep::ExitCode::kDataMissing, {"looked in", "/nowhere", "get-data mnist"},
               [] { lockstep::load_dataset({.set = "mnist", .root = "/nowhere"}); });
}

TEST(LibraryInputTest, NetworksThatDoNotFitAreNamed) {
  expect_error(kUsage, {"model 'ent': there is no such model", "did you mean", "net"},
               [] { lockstep::Network::load("ent", kShape, kClasses); });
  expect_error(kUsage, {"network:1:", "linaer"},
               [] { lockstep::Network::parse("layers: [{linaer: classes}]", kShape, kClasses); });
  const std::string other_shape =
      "network network is for samples of 1 x 5 x 5 (channels x rows x columns) in 4 classes, "
      "and the data have 1 x 4 x 4 (channels x rows x columns) in 4; load it with the data's shape() and "
      "classes()";
  expect_error(kUsage, {other_shape}, [] {
    lockstep::run_on_threads(2, [](lockstep::Communicator& world) {
      const auto net = lockstep::Network::parse("layers: [{linear: classes}]", {1, 5, 5}, kClasses);
      const lockstep::Trainer trainer(net, bytes_set(100), world, kOptions);
    });
  });
  lockstep::run_on_threads(1, [](lockstep::Communicator& world) {
    lockstep::Trainer trainer(small_net(), bytes_set(100), world, kOptions);
    const auto larger =
        lockstep::Dataset::from_bytes({1, 5, 5}, kClasses, std::vector<std::uint8_t>(25),
                                      std::vector<std::int32_t>{0}, {.mean = {0}, .std = {1}});
    const auto fewer = lockstep::Dataset::from_bytes(kShape, 3, std::vector<std::uint8_t>(16),
                                                     std::vector<std::int32_t>{0}, {.mean = {0}, .std = {1}});
    for (const lockstep::Dataset& other : {larger, fewer})
      expect_error(kUsage, {"load it with the data's shape() and classes()"},
                   [&] { trainer.evaluate(other); });
  });
}

TEST(LibraryInputTest, OwnLayersThatDoNotFitAreNamed) {
  const auto network_with = [](const lockstep::LayerKind& kind, const std::string& layer) {
    return lockstep::Network::parse("layers: [" + layer + ", {linear: classes}]", kShape, kClasses, {kind});
  };
  const auto nothing = [](const auto&, const auto&) { return nullptr; };
  expect_error(kUsage, {"two kinds of layers are called relu"},
               [&] { network_with({.name = "relu", .make = nothing}, "relu"); });
  expect_error(kUsage, {"layer kind 'mine' has no make()"}, [&] { network_with({.name = "mine"}, "mine"); });
  expect_error(kUsage, {"mine1", "gave nothing"},
               [&] { network_with({.name = "mine", .make = nothing}, "mine"); });
  expect_error(kUsage, {"network:1:", "unknown key 'factr' (did you mean 'factor'?)"}, [&] {
    network_with({.name = "mine", .keys = {"factor"}, .make = nothing}, "{mine: {factr: 2}}");
  });
  const auto refused = [&](const std::string& words, const lockstep::ImageShape& output,
                           const std::vector<lockstep::LayerParameter>& parameters) {
    const auto make = [&](const auto&, const auto&) {
      return std::make_unique<Uncomputed>(output, parameters);
    };
    expect_error(kUsage, {"layer mine1: mine, the program's own: " + words},
                 [&] { network_with({.name = "mine", .make = make}, "mine"); });
  };
  refused("an output of 0x1x2 has no numbers", {0, 1, 2}, {});
  refused("an output of 1x0x2 has no numbers", {1, 0, 2}, {});
  refused("an output of 1x2x0 has no numbers", {1, 2, 0}, {});
  refused("parameter '' needs a name", kShape, {{.name = "", .shape = {1}}});
  refused("parameter 'w' needs a name, a shape", kShape, {{.name = "w", .shape = {}}});
  refused("parameter 'w' needs a name, a shape", kShape, {{.name = "w", .shape = {2, 0}}});
  refused("parameter 'w' needs a name, a shape", kShape, {{.name = "w", .shape = {1 << 16, 1 << 15}}});
  refused("parameter 'w' needs a name, a shape", kShape, {{.name = "w", .shape = {1}, .fan_in = 0}});
  const auto twins = [&](const std::string& words, const std::string& layers,
                         const std::vector<lockstep::LayerParameter>& parameters) {
    const auto make = [&](auto&, auto&) { return std::make_unique<Uncomputed>(kShape, parameters); };
    expect_error(kUsage, {words}, [&] { network_with({.name = "mine", .make = make}, layers); });
  };
  twins("layer a: two tensors are called a.w; ", "{mine: {name: a}}",
        {{.name = "w", .shape = {1}}, {.name = "w", .shape = {2}}});
  twins("layer a.b: two tensors are called a.b.weight; ", "{mine: {name: a}}, {linear: {name: a.b, out: 2}}",
        {{.name = "b.weight", .shape = {1}}});
}

/// The loss of each sample, and the first number of its gradient.
class Broken final : public lockstep::OwnLoss {
 public:
  Broken(double loss, float gradient) : loss_(loss), gradient_(gradient) {}
  double compute(std::span<const float> /*outputs*/, std::int32_t /*label*/,
                 std::span<float> gradient) const override {
    if (!gradient.empty()) gradient[0] = gradient_;
    return loss_;
  }

 private:
  double loss_;
  float gradient_;
};

TEST(LibraryInputTest, LossThatGivesNanEndsTheStepOnAllRanks) {
  const auto refused = [](const std::string& what, double loss, float gradient) {
    lockstep::TrainerOptions options = kOptions;
    options.loss = lockstep::own_loss(std::make_shared<Broken>(loss, gradient));
    expect_error(lockstep::ExitCode::kInternal,
                 {"step 1: " + what, "NaN or infinite", "and at the initial weights. "}, [&] {
                   lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
                     lockstep::Trainer trainer(small_net(), bytes_set(100), world, options);
                     trainer.step();
                   });
                 });
  };
  refused("the gradient of ", 1, NAN);
  refused("the loss of 20 of ", NAN, 1);
  refused("the loss of 20 of ", 1e39, 1);
  refused("the loss of 20 of ", -1e300, 1);
}

}  // namespace
