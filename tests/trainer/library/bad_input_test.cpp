// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each wrong input of a program that uses the library is told in a sentence that names it.
#include "tests/support/temporary_directory.hpp"
#include "tests/trainer/library/samples.hpp"

namespace {

using namespace lockstep_test;  // NOLINT(google-build-using-namespace)

/// Calls it, and looks for the parts in what it throws.
template <class Action>
void expect_error(lockstep::ExitCode code, const std::vector<std::string>& parts, const Action& action) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown: " << parts.front();
  } catch (const lockstep::Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " in: " << error.what();
  }
}
constexpr auto kUsage = lockstep::ExitCode::kUsage;

lockstep::Network small_net() {
  return lockstep::Network::parse("layers: [{linear: classes}]", kShape, kClasses);
}

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
      {{"grain: -1"}, with([](auto& o) { o.grain = -1; })},
      {{"threads: 0; expected 1 to 1024"}, with([](auto& o) { o.threads = 0; })},
      {{"optimizer: 'sdg' is none; there are sgd, adam"}, with([](auto& o) { o.optimizer.kind = "sdg"; })},
      {{"optimizer.lr: 0"}, with([](auto& o) { o.optimizer.lr = 0; })},
      {{"optimizer.lr: nan"}, with([](auto& o) { o.optimizer.lr = NAN; })},
      {{"optimizer.momentum: 1;"}, with([](auto& o) { o.optimizer.momentum = 1; })},
      {{"train.optimizer.nesterov"},
       with([](auto& o) { o.optimizer = lockstep::sgd(0.1, 0, lockstep::nesterov); })},
      {{"schedule: 'cos' is none"}, with([](auto& o) { o.schedule.kind = "cos"; })},
      {{"schedule.every: 0 epochs"}, with([](auto& o) { o.schedule = lockstep::step_decay(0); })},
      {{"warm"}, with([](auto& o) { o.schedule = lockstep::cosine(/*warmup_epochs=*/3); })},
      {{"label_smoothing: 1;"}, with([](auto& o) { o.loss = lockstep::cross_entropy(1); })}};
  for (const auto& [parts, options] : wrong)
    expect_error(kUsage, parts, [&given = options] { make_trainer(given); });
}

TEST(LibraryInputTest, MoreRanksThanGrainsAreRefused) {
  expect_error(kUsage, {"rank", "5"}, [] { make_trainer(kOptions, 6); });
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

TEST(LibraryInputTest, DataThatDoNotFitAreNamed) {
  using lockstep::Dataset;
  const std::vector<std::uint8_t> bytes(32);
  const std::vector<std::int32_t> labels = {0, 1};
  expect_error(kUsage, {"31 numbers for 2 labels", "expected 32"},
               [&] { Dataset::from_bytes(kShape, 2, std::span(bytes).first(31), labels); });
  expect_error(kUsage, {"0 samples"}, [&] { Dataset::from_bytes(kShape, 2, {}, {}); });
  expect_error(kUsage, {"1 classes; expected 2"}, [&] { Dataset::from_bytes(kShape, 1, bytes, labels); });
  expect_error(kUsage, {"samples of"}, [&] { Dataset::from_bytes({0, 4, 4}, 2, bytes, labels); });
  expect_error(kUsage, {"samples of"}, [&] {
    Dataset::from_bytes({1 << 20, 1 << 20, 1 << 20}, 2, bytes, labels);
  });
  expect_error(kUsage, {"deviations above 0"},
               [&] { Dataset::from_bytes(kShape, 2, bytes, labels, {.mean = {0}, .std = {0}}); });
  expect_error(lockstep::ExitCode::kDataDamaged, {"label 2 of sample 1 is not in 0..1"}, [&] {
    Dataset::from_bytes(kShape, 2, bytes, std::vector<std::int32_t>{0, 2});
  });
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
  expect_error(kUsage, {"load it with the data's shape() and classes()"}, [] {
    lockstep::run_on_threads(2, [](lockstep::Communicator& world) {
      const auto net = lockstep::Network::parse("layers: [{linear: classes}]", {1, 5, 5}, kClasses);
      const lockstep::Trainer trainer(net, bytes_set(100), world, kOptions);
    });
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
}

/// Its gradient is NaN.
class Broken final : public lockstep::OwnLoss {
 public:
  double compute(std::span<const float> /*outputs*/, std::int32_t /*label*/,
                 std::span<float> gradient) const override {
    if (!gradient.empty()) gradient[0] = NAN;
    return 1;
  }
};

TEST(LibraryInputTest, LossThatGivesNanEndsTheStepOnAllRanks) {
  lockstep::TrainerOptions options = kOptions;
  options.loss = lockstep::own_loss(std::make_shared<Broken>());
  expect_error(lockstep::ExitCode::kInternal, {"step 1:", "NaN or infinite"}, [&] {
    lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
      lockstep::Trainer trainer(small_net(), bytes_set(100), world, options);
      trainer.step();
    });
  });
}

TEST(LibraryInputTest, TermsThatDoNotFitAreNamed) {
  lockstep::run_on_threads(1, [](lockstep::Communicator& world) {
    const std::array<std::size_t, 2> tensors = {3, 2};
    expect_error(kUsage, {"tensors of one number or more"}, [&] {
      const lockstep::GradientReducer none(world, std::array<std::size_t, 2>{0, 3}, 4);
    });
    lockstep::GradientReducer reducer(world, tensors, 4);
    std::vector<float> term(5), few(4);
    expect_error(kUsage, {"begin_step: 5 terms; expected 0 to 4"}, [&] { reducer.begin_step(5); });
    reducer.begin_step(1);
    expect_error(kUsage, {"add: 4 numbers", "expected 5"}, [&] { reducer.add(few, 1); });
    expect_error(kUsage, {"announced 1 terms, and there were 0"}, [&] { reducer.mean(term); });
    term[4] = NAN;
    reducer.add(term, 1);
    expect_error(kUsage, {"here is one more"}, [&] { reducer.add(term, 1); });
    expect_error(lockstep::ExitCode::kInternal, {"step 1", "tensor 1", "NaN"}, [&] { reducer.mean(term); });
    term[4] = 1;
    reducer.begin_step(1);
    reducer.add(term, 2);
    EXPECT_EQ(reducer.mean(term), 2);
    EXPECT_EQ(term[4], 0.5F);
  });
}

TEST(LibraryInputTest, CheckpointsThatDoNotFitAreNamed) {
  const lockstep::testing::TemporaryDirectory directory;
  expect_error(kUsage, {"a checkpoint of 1 tensor has 3 weights", "have 4 numbers"}, [&] {
    lockstep::save_checkpoint(directory.path(),
                              {.tensors = {{"w", {4}}}, .weights = {1, 2, 3}, .units = {.exponents = {0}}});
  });
  const std::string other = lockstep::save_checkpoint(
      directory.path("other"),
      {.step = 1, .tensors = {{"w", {1}}}, .weights = {1}, .units = {.exponents = {-40}}});
  lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(small_net(), bytes_set(100), world, kOptions);
    expect_error(kUsage, {other, "its tensors are not those of network"}, [&] { trainer.load(other); });
    expect_error(lockstep::ExitCode::kDataMissing, {"/nowhere"}, [&] { trainer.load("/nowhere"); });
  });
}

}  // namespace
