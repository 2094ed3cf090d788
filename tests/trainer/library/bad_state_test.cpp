// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Terms, units and checkpoints that do not fit are told in a sentence that names them.
#include "tests/support/temporary_directory.hpp"
#include "tests/trainer/library/samples.hpp"

#include <fmt/ranges.h>
#include <openssl/sha.h>

namespace {

using namespace lockstep_test;  // NOLINT(google-build-using-namespace)

TEST(LibraryInputTest, TermsThatDoNotFitAreNamed) {
  lockstep::run_on_threads(1, [](lockstep::Communicator& world) {
    const std::array<std::size_t, 2> tensors = {3, 2};
    expect_error(kUsage, {"tensors of one number or more"}, [&] {
      const lockstep::GradientReducer none(world, std::array<std::size_t, 2>{0, 3}, 4);
    });
    expect_error(kUsage, {"tensors of one number or more"},
                 [&] { const lockstep::GradientReducer none(world, {}, 4); });
    for (const std::int64_t terms : {std::int64_t{0}, (std::int64_t{1} << 31) + 1})
      expect_error(kUsage, {fmt::format("{} terms a step; expected 1 to 2^31", terms)},
                   [&] { const lockstep::GradientReducer none(world, tensors, terms); });
    EXPECT_NO_THROW(lockstep::GradientReducer(world, tensors, std::int64_t{1} << 31));
    lockstep::GradientReducer reducer(world, tensors, 4);
    std::vector<float> term(5), few(4);
    const auto expect_none_to_add = [&] {
      expect_error(kUsage, {"announced 0 terms, and here is one more"}, [&] { reducer.add(term, 1); });
    };
    expect_none_to_add();
    expect_error(kUsage, {"begin_step: 5 terms; expected 0 to 4"}, [&] { reducer.begin_step(5); });
    expect_error(kUsage, {"begin_step: -1 terms"}, [&] { reducer.begin_step(-1); });
    expect_error(kUsage, {"restore: 1 units for 2 tensors"}, [&] { reducer.restore({.exponents = {-40}}); });
    for (const std::int16_t exponent : {std::int16_t{-150}, std::int16_t{128}})
      expect_error(kUsage, {"restore: its units are none"}, [&] {
        reducer.restore({.exponents = {-40, exponent}});
      });
    reducer.begin_step(1);
    expect_error(kUsage, {"add: 4 numbers", "expected 5"}, [&] { reducer.add(few, 1); });
    for (const std::int64_t samples : {std::int64_t{-1}, std::int64_t{1} << 31})
      expect_error(kUsage, {fmt::format("add: 5 numbers of {} samples", samples)},
                   [&] { reducer.add(term, samples); });
    expect_error(kUsage, {"mean: room for 4 numbers; expected 5"}, [&] { reducer.mean(few); });
    expect_error(kUsage, {"announced 1 terms, and there were 0"}, [&] { reducer.mean(term); });
    term[4] = NAN;
    reducer.add(term, INT32_MAX);
    expect_error(kUsage, {"here is one more"}, [&] { reducer.add(term, 1); });
    const auto expect_not_finite = [&](const std::string& numbers) {
      expect_error(lockstep::ExitCode::kInternal,
                   {"step 1: NaN or infinite: " + numbers + " of the terms, the last in tensor 1"},
                   [&] { reducer.mean(term); });
    };
    expect_not_finite("1 number");
    term[0] = INFINITY;
    reducer.begin_step(1);
    reducer.add(term, 1);
    expect_not_finite("2 numbers");
    term[0] = 0, term[4] = 1;
    reducer.begin_step(2);
    reducer.add(term, 2);
    reducer.add(std::vector<float>(5), 0);
    EXPECT_EQ(reducer.mean(term), 2);
    EXPECT_EQ(term[4], 0.5F);
    expect_none_to_add();
  });
}

TEST(LibraryInputTest, StepsOutOfTheirOrderAreNamed) {
  lockstep::run_on_threads(1, [](lockstep::Communicator& world) {
    lockstep::GradientReducer reducer(world, std::array<std::size_t, 1>{2}, 4);
    std::vector<float> numbers = {3, 6};
    const auto expect_none_to_end = [&] {
      expect_error(kUsage, {"mean: no step has begun; call begin_step() first"},
                   [&] { reducer.mean(numbers); });
    };
    expect_none_to_end();
    reducer.begin_step(1);
    expect_error(kUsage, {"begin_step: the step before has not ended; call mean() first"},
                 [&] { reducer.begin_step(2); });
    expect_error(kUsage, {"restore: a step is under way"}, [&] { reducer.restore(reducer.units()); });
    reducer.add(numbers, 3);
    EXPECT_EQ(reducer.mean(numbers), 3);
    EXPECT_EQ(numbers, (std::vector<float>{1, 2}));
    expect_none_to_end();
    reducer.begin_step(1);
    reducer.add(numbers, 0);
    expect_error(kUsage, {"mean: the terms of all ranks are of no samples"}, [&] { reducer.mean(numbers); });
    expect_none_to_end();
    EXPECT_EQ(reducer.units().steps, 1);
    for (const lockstep::GradientReducer::Units& units :
         {lockstep::GradientReducer::Units{.exponents = {-40}, .changed_at = -1},
          {.exponents = {-40}, .steps = -1}})
      expect_error(kUsage, {"restore: its units are none"}, [&] { reducer.restore(units); });
  });
}

/// Units have room for so many terms, and sums of more might overflow.
TEST(LibraryInputTest, MoreTermsOnAllRanksThanAnnouncedAreRefused) {
  lockstep::run_on_threads(2, [](lockstep::Communicator& world) {
    lockstep::GradientReducer reducer(world, std::array<std::size_t, 1>{1}, 3);
    std::vector<float> number = {4};
    const auto mean_of = [&](int terms) {
      reducer.begin_step(terms);
      for (int term = 0; term < terms; ++term) reducer.add(std::array<float, 1>{4}, 2);
      return reducer.mean(number);
    };
    expect_error(kUsage, {"mean: 4 terms on all ranks together, and the reducer was made for 3"},
                 [&] { mean_of(2); });
    EXPECT_EQ(mean_of(world.rank() + 1), 6);
    EXPECT_EQ(number[0], 2.0F);
  });
}

TEST(LibraryInputTest, CheckpointsThatDoNotFitAreNamed) {
  const lockstep::testing::TemporaryDirectory directory;
  expect_error(kUsage, {"a checkpoint of 1 tensor has 3 weights", "have 4 numbers"}, [&] {
    lockstep::save_checkpoint(directory.path(),
                              {.tensors = {{"w", {4}}}, .weights = {1, 2, 3}, .units = {.exponents = {0}}});
  });
  const std::vector<lockstep::Checkpoint> wrong = {
      {.tensors = {{"w", {1}}}, .weights = {1}},
      {.step = -1, .tensors = {{"w", {1}}}, .weights = {1}, .units = {.exponents = {0}}},
      {.tensors = {{"w", {1}}},
       .weights = {1},
       .optimizer = {{"momentum", {1, 2}}},
       .units = {.exponents = {0}}}};
  for (const lockstep::Checkpoint& checkpoint : wrong)
    expect_error(kUsage, {"a checkpoint of 1 tensor has 1 weights"},
                 [&] { lockstep::save_checkpoint(directory.path(), checkpoint); });
  expect_error(lockstep::ExitCode::kIo, {"/dev/null/x: cannot be made: "},
               [] { lockstep::save_checkpoint("/dev/null/x", {}); });
  const std::string other = lockstep::save_checkpoint(
      directory.path("other"), {.tensors = {{"w", {1}}}, .weights = {1}, .units = {.exponents = {-40}}});
  lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(small_net(), bytes_set(100), world, kOptions);
    expect_error(kUsage, {other, "its tensors are not those of network"}, [&] { trainer.load(other); });
    expect_error(lockstep::ExitCode::kDataMissing, {"/nowhere"}, [&] { trainer.load("/nowhere"); });
  });
}

TEST(LibraryInputTest, CheckpointsThatCouldNotBeReadAreNotWritten) {
  const lockstep::testing::TemporaryDirectory directory;
  const auto refused = [&](const std::string& words, const auto& change, lockstep::ExitCode code = kUsage) {
    lockstep::Checkpoint checkpoint{.tensors = {{"w", {2}}},
                                    .weights = {1, 2},
                                    .optimizer = {{"momentum", {0, 0}}},
                                    .units = {.exponents = {-40}}};
    change(checkpoint);
    expect_error(code, {words}, [&] { lockstep::save_checkpoint(directory.path(), checkpoint); });
  };
  for (const char* name : {"Momentum", "adam.m", ""})
    refused(fmt::format("buffers of the optimizer are called {}; expected", name), [&](auto& checkpoint) {
      checkpoint.optimizer = {{name, {0, 0}}};
    });
  refused("the name 'w' is taken", [](auto& checkpoint) {
    checkpoint.tensors = {{"w", {1}}, {"w", {1}}}, checkpoint.units.exponents = {-40, -40};
  });
  refused("the name '__metadata__' is taken",
          [](auto& checkpoint) { checkpoint.tensors[0].name = "__metadata__"; });
  refused("tensor 'w' has a shape", [](auto& checkpoint) { checkpoint.tensors[0].shape.assign(33, 1); });
  refused("tensor 'w' has a shape", [](auto& checkpoint) {
    checkpoint.tensors[0].shape = {std::size_t{1} << 62, 8};
  });
  for (const std::int16_t exponent : {std::int16_t{-150}, std::int16_t{128}})
    refused("its units are none", [&](auto& checkpoint) { checkpoint.units.exponents = {exponent}; });
  refused("its units are none", [](auto& checkpoint) { checkpoint.units.changed_at = -1; });
  refused("its units are none", [](auto& checkpoint) { checkpoint.units.steps = -1; });
  refused(
      "1 of 2 numbers of w is NaN or infinite", [](auto& checkpoint) { checkpoint.weights[1] = NAN; },
      lockstep::ExitCode::kInternal);
  EXPECT_FALSE(std::filesystem::exists(directory.path("checkpoints")));
}

/// Its gradient is finite, and a rate of a million makes it infinite.
class Steep final : public lockstep::OwnLoss {
 public:
  double compute(std::span<const float> /*outputs*/, std::int32_t /*label*/,
                 std::span<float> gradient) const override {
    if (!gradient.empty()) gradient[0] = 1e36F;
    return 1;
  }
};

TEST(LibraryInputTest, WeightsThatAreInfiniteAreNotSaved) {
  const lockstep::testing::TemporaryDirectory directory;
  lockstep::TrainerOptions options = kOptions;
  options.optimizer = lockstep::sgd(1e6);
  options.loss = lockstep::own_loss(std::make_shared<Steep>());
  lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(small_net(), bytes_set(100), world, options);
    trainer.step();
    expect_error(lockstep::ExitCode::kInternal, {"nothing is saved, for ", "numbers of fc1.", "infinite"},
                 [&] { trainer.save(directory.path("run")); });
  });
}

TEST(LibraryInputTest, CheckpointsOfOtherTrainingsAreRefused) {
  const lockstep::testing::TemporaryDirectory directory;
  std::string saved, at_end_of_epoch;
  lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(small_net(), bytes_set(100), world, kOptions);
    EXPECT_NO_THROW(trainer.load(trainer.save(directory.path("start"))));
    trainer.epoch();
    at_end_of_epoch = trainer.save(directory.path("run"));
    trainer.step();
    saved = trainer.save(directory.path("run"));
  });
  const auto refused = [&](const std::string& words, int samples, const lockstep::TrainerOptions& options) {
    expect_error(kUsage, {saved, words}, [&] {
      lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
        lockstep::Trainer trainer(small_net(), bytes_set(samples), world, options);
        trainer.load(saved);
      });
    });
  };
  lockstep::TrainerOptions options = kOptions;
  refused("whose epochs have 4 steps", 80, options);
  std::swap(saved, at_end_of_epoch);
  refused("whose epochs have 4 steps", 80, options);
  std::swap(saved, at_end_of_epoch);
  options.optimizer = lockstep::adam();
  refused("was saved with another optimizer", 100, options);
  options = kOptions, ++options.seed;
  refused(
      "seed 1234, epoch 1, step 6 cannot be of this training, whose seed is 1235 and whose epochs have 5 "
      "steps",
      100, options);
}

/// Changes the manifest of a checkpoint, and seals it again.
void forge(const std::string& checkpoint, const std::vector<std::pair<std::string, std::string>>& changes) {
  const std::string path = checkpoint + "/manifest.json";
  std::ifstream file(path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  for (const auto& [from, to] : changes) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    text.replace(at, from.size(), to);
  }
  text.resize(text.rfind(",\n \"manifest_sha256\""));
  std::array<unsigned char, SHA256_DIGEST_LENGTH> seal{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), seal.data());
  std::ofstream(path) << text
                      << fmt::format(",\n \"manifest_sha256\": \"{:02x}\"\n}}\n", fmt::join(seal, ""));
}

/// Five times the epoch is 2^64 + 4.
TEST(LibraryInputTest, PositionsBeyondAllTrainingsAreRefused) {
  const lockstep::testing::TemporaryDirectory directory;
  lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(small_net(), bytes_set(100), world, kOptions);
    for (int step = 0; step < 4; ++step) trainer.step();
    const std::string epoch = trainer.save(directory.path("epoch")),
                      samples = trainer.save(directory.path("samples"));
    forge(epoch, {{R"("epoch": 0)", R"("epoch": 3689348814741910324)"},
                  {R"("step_in_epoch": 4)", R"("step_in_epoch": 0)"}});
    forge(samples, {{R"("epoch_samples": 80)", R"("epoch_samples": 9223372036854775807)"}});
    for (const std::string& forged : {epoch, samples})
      expect_error(kUsage, {forged, "step 4 cannot be of this training"}, [&] { trainer.load(forged); });
  });
}

TEST(LibraryInputTest, CheckpointsOfOtherNetworksAreRefused) {
  const lockstep::testing::TemporaryDirectory directory;
  const auto network_with = [](const std::string& middle) {
    return lockstep::Network::parse(
        "layers: [{linear: {name: a, out: 8}}, " + middle + ", {linear: {name: b, out: classes}}]", kShape,
        kClasses);
  };
  lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
    const auto data = bytes_set(100);
    lockstep::Trainer relu(network_with("relu"), data, world, kOptions),
        again(network_with("relu"), data, world, kOptions), tanh(network_with("tanh"), data, world, kOptions);
    relu.step();
    const std::string saved = relu.save(directory.path("run"));
    again.load(saved);
    EXPECT_EQ(again.weights_sha256(), relu.weights_sha256());
    const std::string before = tanh.weights_sha256();
    expect_error(kUsage, {saved, "is of another network than", "by its yaml"}, [&] { tanh.load(saved); });
    EXPECT_EQ(tanh.weights_sha256(), before);
  });
}

}  // namespace
