// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A Trainer on GPUs, by the public headers: the emulated one has the bits of the CPU.
#include "tests/support/messages.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/trainer/library/samples.hpp"

#include <lockstep/gpu.hpp>

namespace {

using namespace lockstep_test;  // NOLINT(google-build-using-namespace)

lockstep::Network network(const std::vector<lockstep::LayerKind>& own = {}) {
  return lockstep::Network::parse(
      "layers:\n  - linear: {name: a, out: 16}\n  - relu\n  - linear: {name: b, out: classes}\n", kShape,
      kClasses, own);
}

lockstep::TrainerOptions on(const lockstep::Device& device) {
  lockstep::TrainerOptions options = kOptions;
  options.device = device;
  return options;
}

struct Trained {
  std::string sha256;
  lockstep::EpochReport epoch;
  lockstep::Evaluation found, found_in_more;
};

/// Rank 0's result. The last step of an epoch has a smaller batch.
Trained train(int ranks, const char* device_name) {
  const auto data = bytes_set(90), more = bytes_set(110);
  Trained trained;
  lockstep::run_on_threads(ranks, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(network(), data, world, on(lockstep::gpu(world, device_name)));
    trainer.epoch();
    const auto found = trainer.evaluate(data);
    const auto epoch = trainer.epoch();
    const auto found_in_more = trainer.evaluate(more);
    if (world.rank() == 0) trained = {trainer.weights_sha256(), epoch, found, found_in_more};
  });
  return trained;
}

TEST(LibraryGpuTest, TrainsAndEvaluatesToTheBitsOfTheCpuOnAnyRanks) {
  const Trained cpu = train(1, "cpu");
  EXPECT_EQ(cpu.found.samples, 90);
  EXPECT_EQ(cpu.found_in_more.samples, 110);
  for (const int ranks : {1, 2, 3}) {
    const Trained gpu = train(ranks, "emulated");
    EXPECT_EQ(gpu.sha256, cpu.sha256) << ranks << " ranks";
    EXPECT_EQ(gpu.epoch.loss, cpu.epoch.loss);
    EXPECT_EQ(gpu.epoch.steps, 5);
    EXPECT_EQ(gpu.epoch.samples, 90);
    EXPECT_EQ(gpu.found.loss, cpu.found.loss);
    EXPECT_EQ(gpu.found_in_more.loss, cpu.found_in_more.loss);
    EXPECT_EQ(gpu.found_in_more.samples, 110);
  }
}

TEST(LibraryGpuTest, GoesOnFromACheckpointOfTheCpuAndTheOtherWayRound) {
  const auto data = bytes_set(90);
  const lockstep::testing::TemporaryDirectory folder;
  const auto half = [&](const char* device, const std::string& from, const std::string& to) {
    std::pair<std::string, std::string> end;  // the checkpoint, and the weights
    lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
      lockstep::Trainer trainer(network(), data, world, on(lockstep::gpu(world, device)));
      if (!from.empty()) trainer.load(from);
      std::int64_t seen = 0;
      trainer.observe([&](const lockstep::StepReport& report) { seen = report.step; });
      trainer.epoch();
      EXPECT_EQ(seen, trainer.steps());
      const std::string saved = trainer.save(folder.path(to));
      if (world.rank() == 0) end = {saved, trainer.weights_sha256()};
    });
    return end;
  };
  const auto expected = half("cpu", half("cpu", "", "a").first, "b").second;
  EXPECT_EQ(half("emulated", half("cpu", "", "c").first, "d").second, expected);
  EXPECT_EQ(half("cpu", half("emulated", "", "e").first, "f").second, expected);
}

/// All ranks pause after each step, too: with series of other lengths they would wait for each other.
TEST(LibraryGpuTest, ARankMayObserveAlone) {
  const auto data = bytes_set(90);
  lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(network(), data, world, on(lockstep::gpu(world, "emulated")));
    std::int64_t seen = 0;
    if (world.rank() == 1)
      trainer.observe([&](const lockstep::StepReport& step) {
        ++seen;
        EXPECT_EQ(step.gradient_norm, 0) << "it is not at hand";
      });
    for (int epoch = 0; epoch < 4; ++epoch) trainer.epoch();
    EXPECT_EQ(seen, world.rank() == 1 ? trainer.steps() : 0);
  });
}

TEST(LibraryGpuTest, DeviceSaysWhatItIs) {
  lockstep::run_on_threads(1, [](lockstep::Communicator& world) {
    const auto gpu = lockstep::gpu(world, "emulated"), cpu = lockstep::gpu(world, "cpu");
    EXPECT_TRUE(gpu.is_gpu());
    EXPECT_NE(gpu.name().find("Emulated"), std::string::npos) << gpu.name();
    EXPECT_FALSE(cpu.is_gpu());
    EXPECT_EQ(cpu.name(), lockstep::Device().name());
    EXPECT_EQ(cpu.name().rfind("cpu (", 0), 0U);
  });
}

class OwnTanh final : public lockstep::Layer {
 public:
  explicit OwnTanh(const lockstep::ImageShape& input) : Layer(input) {}
  void forward(const lockstep::ForwardPass& /*pass*/) const override {}
  void backward_data(const lockstep::BackwardPass& /*pass*/) const override {}
};

class OwnError final : public lockstep::OwnLoss {
 public:
  double compute(std::span<const float> /*outputs*/, std::int32_t /*label*/,
                 std::span<float> /*gradient*/) const override {
    return 0;
  }
};

TEST(LibraryGpuTest, LayersAndLossesOfAProgramAreRefusedByName) {
  const lockstep::LayerKind kind{.name = "my_tanh", .make = [](const auto& input, const auto&) {
                                   return std::make_unique<OwnTanh>(input);
                                 }};
  const auto own = lockstep::Network::parse("layers:\n  - my_tanh\n  - linear: {name: b, out: classes}\n",
                                            kShape, kClasses, {kind});
  lockstep::run_on_threads(1, [&](lockstep::Communicator& world) {
    lockstep::TrainerOptions options = on(lockstep::gpu(world, "emulated"));
    lockstep::expect_error<lockstep::DeviceError>(
        [&] { lockstep::Trainer(own, bytes_set(40), world, options); },
        {"my_tanh is the program's own, and no GPU has it"});
    options.loss = lockstep::own_loss(std::make_shared<const OwnError>());
    lockstep::expect_error<lockstep::Error>(
        [&] { lockstep::Trainer(network(), bytes_set(40), world, options); },
        {"loss: the program's own, and no GPU has it; leave out device"});
  });
}

TEST(LibraryGpuTest, NamesThatAreNoneAndGpusThatAreNotThereAreRefused) {
  std::vector<std::string> said(3);
  lockstep::run_on_threads(3, [&](lockstep::Communicator& world) {
    EXPECT_THROW(lockstep::gpu(world, "gpu"), lockstep::ConfigError);
    try {
      lockstep::gpu(world, "cuda:999");
    } catch (const lockstep::Error& error) {
      said[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  EXPECT_NE(said[0], "");
  EXPECT_EQ(said[1], said[0]) << "every rank has the sentence";
  EXPECT_EQ(said[2], said[0]);
}

TEST(LibraryGpuTest, RankThatForgetsTheDeviceIsNamed) {
  lockstep::run_on_threads(2, [](lockstep::Communicator& world) {
    const auto device = lockstep::gpu(world, "emulated");
    const auto options = on(world.rank() == 0 ? device : lockstep::Device());
    lockstep::expect_error<lockstep::Error>(
        [&] { lockstep::Trainer(network(), bytes_set(40), world, options); },
        {"rank 1 has other options than rank 0"});
  });
}

}  // namespace
