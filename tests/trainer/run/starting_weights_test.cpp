// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Starting from a state_dict of PyTorch (tests/golden/make_golden.py made the files), and from the middle
/// of a run.
#include "comm/thread/thread_ranks.hpp"
#include "common/buffers.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/safetensors.hpp"
#include "kernels/cpu/ops.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/training/weight_update.hpp"

namespace lockstep {
namespace {

constexpr int kSamples = 16, kClasses = 5;
constexpr ImageShape kImage{2, 9, 12};

std::string network_with(const std::string& conv1) {
  return "layers:\n  - conv2d: {out: 4, kernel: 3, padding: 1" + conv1 +
         "}\n  - batch_norm\n  - relu\n  - max_pool: 2\n  - conv2d: {out: 6, kernel: [2, 3], stride: 2}\n"
         "  - tanh\n  - linear: 8\n  - relu\n  - linear: {out: classes, bias: false}\n";
}

std::string golden(const std::string& name) {
  return test::source_path("tests/golden/") + name;
}

AlignedBuffer<float> weights_from_pytorch(const Network& network) {
  Job job;
  job.train.initial_weights = golden("torch_state_dict.safetensors");
  AlignedBuffer<float> weights(network.parameters().weights_size());
  initialise_weights(job, network, weights.span());
  return weights;
}

TEST(StartingWeightsTest, StateDictOfPyTorchGivesItsLogits) {
  const Network network = Network::parse(network_with(", bias: false"), "torch.yaml", kImage, kClasses);
  const auto weights = weights_from_pytorch(network);
  const auto answers = test::read_safetensors(golden("torch_answers.safetensors"));
  const auto images = test::values_of<float>(answers, "images", "F32", {kSamples, 2, 9, 12});
  const auto logits = test::values_of<double>(answers, "logits", "F64", {kSamples, kClasses});
  Execution execution(network, kSamples);
  const auto features = static_cast<std::size_t>(kImage.features());
  for (std::size_t f = 0; f < features; ++f)
    for (std::size_t n = 0; n < kSamples; ++n) execution.input()[f * kSamples + n] = images[n * features + f];
  const float* computed = execution.forward_evaluation(weights.data(), kSamples);
  for (std::size_t n = 0; n < kSamples; ++n)
    for (std::size_t c = 0; c < kClasses; ++c)
      EXPECT_NEAR(computed[c * kSamples + n], logits[n * kClasses + c], 1e-5)
          << "sample " << n << " class " << c;
}

void expect_refusal(const std::string& conv1, const std::string& words) {
  const Network network = Network::parse(network_with(conv1), "torch.yaml", kImage, kClasses);
  test::expect_error<DataError>([&] { weights_from_pytorch(network); }, {words});
}

TEST(StartingWeightsTest, WhatTheFileLacksIsNamed) {
  expect_refusal(", bias: true", "conv1.bias");
}

/// As torch.compile around DistributedDataParallel makes them.
TEST(StartingWeightsTest, WordsThatBeginAllNamesAreLeftOutAndSaid) {
  const Network network = Network::parse(network_with(", bias: false"), "torch.yaml", kImage, kClasses);
  const auto file = test::read_safetensors(golden("torch_state_dict.safetensors"));
  std::vector<TensorView> tensors = file.tensors();
  for (TensorView& tensor : tensors) tensor.name = "_orig_mod.module." + tensor.name;
  Job job;
  const testing::TemporaryDirectory directory;
  job.train.initial_weights = directory.path("wrapped.safetensors");
  write_synced(Env::posix(), job.train.initial_weights, write_safetensors(tensors));
  for (const bool partial : {false, true}) {
    job.train.partial = partial;
    std::vector<float> weights(network.parameters().weights_size());
    const std::string line = initialise_weights(job, network, weights).lines.front();
    EXPECT_EQ(line, "initial weights: " + job.train.initial_weights + (partial ? ": 10 of 10" : ": 10") +
                        " tensors by name, without '_orig_mod.module.'" +
                        (partial ? " (train.partial)" : ""));
    EXPECT_TRUE(std::ranges::equal(weights, weights_from_pytorch(network).span()));
  }
}

TEST(StartingWeightsTest, OneLayerOfAnotherNameIsMissing) {
  expect_refusal(
      ", bias: false, name: first",
      "has nothing that fits the model's first.weight [4, 2, 3, 3]; it has, beside what fits, conv1.weight.");
}

TEST(StartingWeightsTest, OfWhatFitsInPartTheRestIsThatOfTheSeed) {
  const Network whole = Network::parse(network_with(", bias: false"), "torch.yaml", kImage, kClasses);
  const Network other = Network::parse(network_with(", bias: false"), "torch.yaml", kImage, kClasses + 1);
  Job job;
  job.train.initial_weights = golden("torch_state_dict.safetensors");
  job.train.partial = true;
  std::vector<float> weights(other.parameters().weights_size()), fresh(weights.size());
  const StartingWeights initial = initialise_weights(job, other, weights);
  other.initialise(job.train.seed, fresh, 0);
  const auto from_file = weights_from_pytorch(whole);
  EXPECT_EQ(initial.fresh, std::vector<std::string>{"fc2.weight [6, 8], of which the file has [5, 8]"});
  for (const Parameter& tensor : other.parameters().tensors()) {
    const bool is_new = tensor.name == "fc2.weight";
    const auto expected = whole.parameters().tensors();
    const auto same = std::ranges::find(expected, tensor.name, &Parameter::name);
    ASSERT_NE(same, expected.end());
    const auto numbers = std::span(weights).subspan(tensor.offset, tensor.size);
    EXPECT_TRUE(
        std::ranges::equal(numbers, is_new ? std::span<const float>(fresh).subspan(tensor.offset, tensor.size)
                                           : from_file.span().subspan(same->offset, same->size)))
        << tensor.name;
  }
}

TEST(StartingWeightsTest, FileOfTorchSaveIsRefusedWithTheWayOut) {
  Job job;
  const testing::TemporaryDirectory directory;
  job.train.initial_weights = directory.path("weights.pt");
  std::ofstream(job.train.initial_weights, std::ios::binary) << "PK\x03\x04 and more";
  const Network network = Network::parse("layers:\n  - linear: classes\n", "one.yaml", {1, 1, 2}, 2);
  std::vector<float> weights(network.parameters().weights_size());
  test::expect_error<DataError>([&] { initialise_weights(job, network, weights); },
                                {"save_file(torch.load("});
}

TEST(StartingWeightsTest, WeightsThatAreNotFiniteAreNamed) {
  const Network network = Network::parse("layers:\n  - linear: classes\n", "one.yaml", {1, 1, 2}, 2);
  const std::vector<float> weight = {1, std::numeric_limits<float>::quiet_NaN(), 2, 3}, bias = {0, 0};
  const std::vector<TensorView> tensors = {{"fc1.weight", "F32", {2, 2}, std::as_bytes(std::span(weight))},
                                           {"fc1.bias", "F32", {2}, std::as_bytes(std::span(bias))}};
  Job job;
  const testing::TemporaryDirectory directory;
  job.train.initial_weights = directory.path("not_finite.safetensors");
  write_synced(Env::posix(), job.train.initial_weights, write_safetensors(tensors));
  std::vector<float> weights(network.parameters().weights_size());
  EXPECT_EQ(test::error_of<DataError>([&] { initialise_weights(job, network, weights); }),
            job.train.initial_weights +
                ": 1 of 4 numbers of fc1.weight is NaN or infinite; give a file of finite weights");
}

TEST(StartingWeightsTest, NarrowerNumbersAreWidenedAndThatIsSaid) {
  const Network network = Network::parse("layers:\n  - linear: classes\n", "one.yaml", {1, 1, 2}, 2);
  const std::vector<std::uint16_t> half = {0x3c00, 0xb800, 0x0001, 0}, bfloat = {0x3f80, 0xbf00};
  std::vector<TensorView> tensors = {{"fc1.weight", "F16", {2, 2}, std::as_bytes(std::span(half))},
                                     {"fc1.bias", "BF16", {2}, std::as_bytes(std::span(bfloat))}};
  Job job;
  const testing::TemporaryDirectory directory;
  job.train.initial_weights = directory.path("narrow.safetensors");
  write_synced(Env::posix(), job.train.initial_weights, write_safetensors(tensors));
  std::vector<float> weights(network.parameters().weights_size());
  EXPECT_EQ(initialise_weights(job, network, weights).lines,
            std::vector{"initial weights: " + job.train.initial_weights +
                        ": 2 tensors by name, widened from bf16 and f16"});
  EXPECT_EQ(weights, (std::vector{1.F, -0.5F, 0x1p-24F, 0.F, 1.F, -0.5F}));
}

TEST(StartingWeightsTest, NothingOfALayerIsLeftOut) {
  const std::string yaml =
      "layers:\n  - conv2d: {out: 4, kernel: 3, padding: 1, bias: false}\n  - batch_norm: {affine: false}\n"
      "  - linear: classes\n";
  const Network network = Network::parse(yaml, "torch.yaml", kImage, kClasses);
  test::expect_error<DataError>([&] { weights_from_pytorch(network); },
                                {"'bn1.bias', but the model's bn1 has none"});
}

/// Four steps an epoch, of which the last has 4 samples.
Job job_of_100_samples() {
  Job job;
  job.data.set = "synthetic";
  job.data.global_batch = 32;
  job.data.train_samples = 100;
  job.data.test_samples = 20;
  job.parallel.device = "cpu";
  job.parallel.grain = 16;
  job.run.print_loss_every_steps = 3;
  return job;
}

/// A run on one rank, behind the second step of its second epoch, and its checkpoint.
struct MiddleOfARun {
  explicit MiddleOfARun(Communicator& comm)
      : setup(set_up(job, comm, load_in_advance(job), kDataParallelSetup,
                     [](const Dataset&) {
                       return Network::parse("layers:\n  - flatten\n  - linear: classes\n", "test.yaml",
                                             {1, 28, 28}, 10);
                     })),
        sampler(sampler_options(setup, comm)) {
    state.epoch = 1, state.step_in_epoch = 2, state.step = 6;
    state.epoch_samples = 64, state.epoch_correct = 17;
    state.epoch_loss_units.add(0x1p70), state.unprinted->loss_units.add(0x1p60);
    state.unprinted->steps = 2, state.unprinted->samples = 64;
    state.unlogged.steps = 1, state.unlogged.samples = 32, state.unlogged.correct = 5;
    state.test_accuracy = 0.75;
    GradientUnits then = fresh_units();
    then.restore(std::vector<std::int16_t>{-7, 3}, 5);
    checkpoint.facts = checkpoint_facts(state, job, setup, comm, then);
    const std::size_t count = setup.network.parameters().weights_size();
    for (std::size_t i = 0; i < count; ++i) checkpoint.weights.push_back(static_cast<float>(i) + 0.5F);
    checkpoint.optimizer = {{"momentum", checkpoint.weights}};
  }
  GradientUnits fresh_units() const { return make_gradient_units(setup.network.parameters(), 2); }

  /// Brings it back to where nothing is yet.
  RunState come_back() {
    weights.assign(checkpoint.weights.size(), 0);
    return restore(checkpoint, job, setup, sampler, {weights, buffers.views(), units});
  }

  Job job = job_of_100_samples();
  JobSetup setup;
  DistributedSampler sampler;
  RunState state;
  CheckpointState checkpoint;
  std::vector<float> weights;
  OptimizerBuffers buffers{{"momentum"}, setup.network.parameters().size};
  GradientUnits units = fresh_units();
};

TEST(RunStateTest, EverythingOfTheMiddleOfARunComesBack) {
  run_thread_ranks(1, [](Communicator& comm) {
    MiddleOfARun run(comm);
    const RunState back = run.come_back();
    EXPECT_EQ(back.epoch, 1);
    EXPECT_EQ(back.step_in_epoch, 2);
    EXPECT_EQ(back.step, 6);
    EXPECT_EQ(back.epoch_samples, 64);
    EXPECT_EQ(back.epoch_correct, 17);
    EXPECT_EQ(back.epoch_loss_units.limbs, run.state.epoch_loss_units.limbs);
    EXPECT_EQ(back.unprinted->steps, 2);
    EXPECT_EQ(back.unprinted->samples, 64);
    EXPECT_EQ(back.unlogged.steps, 1);
    EXPECT_EQ(back.unlogged.samples, 32);
    EXPECT_EQ(back.unlogged.correct, 5);
    EXPECT_EQ(back.unprinted->loss_units.limbs, run.state.unprinted->loss_units.limbs);
    EXPECT_EQ(back.test_accuracy, 0.75);
    EXPECT_EQ(run.weights, run.checkpoint.weights);
    const auto momentum = run.buffers.values(0);
    EXPECT_EQ(std::vector<float>(momentum.begin(), momentum.end()), run.checkpoint.weights);
    const auto exponents = run.units.exponents();
    EXPECT_EQ(std::vector<std::int16_t>(exponents.begin(), exponents.end()),
              (std::vector<std::int16_t>{-7, 3}));
    EXPECT_EQ(run.units.changed_at(), 5);
  });
}

TEST(RunStateTest, WhatIsOfAnotherRunOrCannotBeIsRefused) {
  run_thread_ranks(1, [](Communicator& comm) {
    MiddleOfARun run(comm);
    const CheckpointState good = run.checkpoint;
    const auto refused = [&](const std::function<void(CheckpointFacts&)>& change) {
      run.checkpoint = good;
      change(run.checkpoint.facts);
      EXPECT_THROW(run.come_back(), Error);
    };
    run.come_back();
    refused([](CheckpointFacts& facts) { facts.model["mean"] += "1"; });
    refused([](CheckpointFacts& facts) { facts.parameters.back().name = "other"; });
    refused([](CheckpointFacts& facts) { facts.data["train_labels_sha256"][0] ^= 1; });
    refused([](CheckpointFacts& facts) { facts.data["test_labels_sha256"][0] ^= 1; });
    refused([](CheckpointFacts& facts) { facts.data["test_samples_sha256"][0] ^= 1; });
    refused(
        [](CheckpointFacts& facts) { facts.step = 9, facts.step_in_epoch = 5, facts.epoch_samples = 100; });
    refused([](CheckpointFacts& facts) { facts.epoch = 2; });
    refused([](CheckpointFacts& facts) { facts.epoch_samples = 60; });
    refused([](CheckpointFacts& facts) { facts.epoch_correct = 65; });
    run.checkpoint = good;
    run.checkpoint.optimizer[0].name = "exp_avg";
    EXPECT_THROW(run.come_back(), DataError);
  });
}

}  // namespace
}  // namespace lockstep
