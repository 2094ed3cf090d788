// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The library by its public headers: training with data, layers and losses of a program's own, and exact sums.
#include "tests/support/temporary_directory.hpp"
#include "tests/trainer/library/samples.hpp"

namespace {

using namespace lockstep_test;  // NOLINT(google-build-using-namespace)

/// Rank 0's result after so many epochs on threads.
struct Trained {
  std::string sha256;
  lockstep::Evaluation found;
};

Trained train(int ranks, const lockstep::Network& network, const lockstep::Dataset& data,
              const lockstep::TrainerOptions& options, int epochs = 3) {
  Trained trained;
  lockstep::run_on_threads(ranks, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(network, data, world, options);
    for (int epoch = 0; epoch < epochs; ++epoch) trainer.epoch();
    const auto found = trainer.evaluate(data);
    if (world.rank() == 0) trained = {trainer.weights_sha256(), found};
  });
  return trained;
}

lockstep::Network net_of(const std::string& middle, const std::vector<lockstep::LayerKind>& own = {}) {
  return lockstep::Network::parse(
      "layers:\n  - linear: {name: a, out: 16}\n  - " + middle + "\n  - linear: {name: b, out: classes}\n",
      kShape, kClasses, own);
}

TEST(LibraryTest, TrainsToTheSameWeightsOnAnyRanks) {
  const auto data = bytes_set(100);
  const Trained alone = train(1, net_of("tanh"), data, kOptions);
  EXPECT_EQ(alone.found.samples, 100);
  EXPECT_GT(alone.found.accuracy, 0.9);
  for (const int ranks : {2, 3, 5}) {
    const Trained shared = train(ranks, net_of("tanh"), data, kOptions);
    EXPECT_EQ(shared.sha256, alone.sha256) << ranks << " ranks";
    EXPECT_EQ(shared.found.loss, alone.found.loss);
  }
}

TEST(LibraryTest, SamplesOfAFunctionAreThoseInMemory) {
  std::vector<float> samples;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 60; ++i) {
    samples.resize(samples.size() + kFeatures);
    make_sample(i, std::span(samples).last(kFeatures));
    labels.push_back(i % kClasses);
  }
  const auto in_memory = lockstep::Dataset::from_floats(kShape, kClasses, samples, labels);
  const auto made = lockstep::Dataset::from_function(
      kShape, kClasses, 60, make_sample, [](std::int64_t i) { return static_cast<int>(i % kClasses); });
  EXPECT_EQ(train(2, net_of("relu"), made, kOptions).sha256,
            train(1, net_of("relu"), in_memory, kOptions).sha256);
}

/// y = max(x, 0), as Lockstep's own layer.
class OwnRelu final : public lockstep::Layer {
 public:
  explicit OwnRelu(const lockstep::ImageShape& input) : Layer(input) {}
  void forward(const lockstep::ForwardPass& pass) const override {
    for (int i = 0; i < output().features() * pass.columns; ++i) pass.y[i] = std::max(pass.x[i], 0.0F);
  }
  void backward_data(const lockstep::BackwardPass& pass) const override {
    for (int i = 0; i < output().features() * pass.columns; ++i) pass.dx[i] = pass.x[i] > 0 ? pass.dy[i] : 0;
  }
};

TEST(LibraryTest, OwnLayerThatComputesReluTrainsToItsWeights) {
  const lockstep::LayerKind kind{.name = "my_relu", .make = [](const auto& input, const auto&) {
                                   return std::make_unique<OwnRelu>(input);
                                 }};
  const auto data = bytes_set(100);
  EXPECT_EQ(train(2, net_of("my_relu", {kind}), data, kOptions).sha256,
            train(1, net_of("relu"), data, kOptions).sha256);
}

/// y = x + the option `by` + a trained shift.
class Shift final : public lockstep::Layer {
 public:
  Shift(const lockstep::ImageShape& input, float by)
      : Layer(input, {{.name = "shift", .shape = {1}, .initial = lockstep::LayerParameter::Initial::kZeros}}),
        by_(by) {}
  void forward(const lockstep::ForwardPass& pass) const override {
    for (int i = 0; i < output().features() * pass.columns; ++i)
      pass.y[i] = pass.x[i] + by_ + pass.weights[0];
  }
  void backward_weights(const lockstep::BackwardPass& pass) const override {
    pass.gradients[0] = 0;
    for (int i = 0; i < output().features() * pass.columns; ++i) pass.gradients[0] += pass.dy[i];
  }
  void backward_data(const lockstep::BackwardPass& pass) const override {
    std::copy_n(pass.dy, output().features() * pass.columns, pass.dx);
  }

 private:
  float by_;
};

TEST(LibraryTest, OwnLayerTakesOptionsAndTrainsItsParameter) {
  float by = 0;
  const lockstep::LayerKind kind{
      .name = "shift", .keys = {"by"}, .make = [&](const auto& input, const lockstep::LayerOptions& options) {
        by = static_cast<float>(options.number("by", -10, 10, 1));
        return std::make_unique<Shift>(input, by);
      }};
  const auto network = net_of("shift: {by: 2.5}", {kind});
  EXPECT_EQ(by, 2.5F);
  EXPECT_EQ(network.tensors()[2].name, "shift1.shift");
  const auto data = bytes_set(100);
  lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(network, data, world, kOptions);
    const auto at = network.tensors()[2].offset;
    EXPECT_EQ(trainer.weights()[at], 0);
    trainer.step();
    EXPECT_NE(trainer.weights()[at], 0);
  });
}

/// (output - target)^2 over the classes, as mean_squares().
class Squares final : public lockstep::OwnLoss {
 public:
  double compute(std::span<const float> outputs, std::int32_t label,
                 std::span<float> gradient) const override {
    double loss = 0;
    for (std::size_t c = 0; c < outputs.size(); ++c) {
      const float error = outputs[c] - (static_cast<std::int32_t>(c) == label ? 1.0F : 0.0F);
      loss += static_cast<double>(error) * error / static_cast<double>(outputs.size());
      if (!gradient.empty()) gradient[c] = 2 * error / static_cast<float>(outputs.size());
    }
    return loss;
  }
};

TEST(LibraryTest, OwnLossIsTrainedAndEvaluated) {
  const auto data = bytes_set(100);
  lockstep::TrainerOptions own = kOptions, ours = kOptions;
  own.loss = lockstep::own_loss(std::make_shared<Squares>());
  ours.loss = lockstep::mean_squares();
  const Trained mine = train(2, net_of("tanh"), data, own), theirs = train(1, net_of("tanh"), data, ours);
  EXPECT_EQ(mine.sha256, train(3, net_of("tanh"), data, own).sha256);
  EXPECT_NEAR(mine.found.loss, theirs.found.loss, 1e-4);
  EXPECT_EQ(mine.found.correct, theirs.found.correct);
}

TEST(LibraryTest, ObserverSeesEachStep) {
  const auto data = bytes_set(100);
  lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(net_of("tanh"), data, world, kOptions);
    std::vector<lockstep::StepReport> seen;
    trainer.observe([&](const lockstep::StepReport& step) { seen.push_back(step); });
    trainer.step();
    const auto epoch = trainer.epoch();
    trainer.step();
    ASSERT_EQ(std::ssize(seen), trainer.steps_per_epoch() + 1);
    EXPECT_EQ(epoch.samples, 100);
    EXPECT_EQ(epoch.epoch, 1);
    EXPECT_EQ(seen.front().step, 1);
    EXPECT_EQ(seen.back().epoch, 2);
    double sum = 0;
    for (const auto& step : seen) {
      EXPECT_GT(step.gradient_norm, 0);
      if (step.epoch == 1) sum += step.loss * static_cast<double>(step.samples);
    }
    EXPECT_NEAR(sum / 100, epoch.loss, 1e-9);
  });
}

TEST(LibraryTest, TrainingGoesOnFromACheckpointOnOtherRanks) {
  const lockstep::testing::TemporaryDirectory directory;
  const std::string folder = directory.path("run");
  const auto data = bytes_set(100);
  std::string checkpoint, whole;
  lockstep::run_on_threads(2, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(net_of("tanh"), data, world, kOptions);
    trainer.epoch();
    trainer.step();
    const std::string saved = trainer.save(folder);
    trainer.epoch();
    trainer.epoch();
    if (world.rank() == 0) checkpoint = saved, whole = trainer.weights_sha256();
  });
  EXPECT_EQ(checkpoint, folder + "/checkpoints/step-00000006");
  lockstep::run_on_threads(3, [&](lockstep::Communicator& world) {
    lockstep::Trainer trainer(net_of("tanh"), data, world, kOptions);
    trainer.load(checkpoint);
    EXPECT_EQ(trainer.steps(), 6);
    EXPECT_EQ(trainer.epochs(), 1);
    trainer.epoch();
    trainer.epoch();
    EXPECT_EQ(trainer.weights_sha256(), whole);
  });
}

// Sums of buffers of one's own.

/// The mean of twelve terms over three steps, which ranks share; the second step's are huge.
std::vector<float> reduce(int ranks) {
  std::vector<float> all;
  lockstep::run_on_threads(ranks, [&](lockstep::Communicator& world) {
    const std::array<std::size_t, 2> tensors = {3, 2};
    lockstep::GradientReducer reducer(world, tensors, 12);
    std::vector<float> term(5), mean(5);
    for (int step = 0; step < 3; ++step) {
      const int first = 12 * world.rank() / world.size(), last = 12 * (world.rank() + 1) / world.size();
      reducer.begin_step(last - first);
      for (int t = first; t < last; ++t) {
        for (std::size_t i = 0; i < 5; ++i)
          term[i] = std::sin(static_cast<float>(t * 5) + static_cast<float>(i)) * (step == 1 ? 1e30F : 1e-6F);
        reducer.add(term, 10);
      }
      EXPECT_EQ(reducer.mean(mean), 120);
      if (world.rank() == 0) all.insert(all.end(), mean.begin(), mean.end());
    }
    EXPECT_EQ(reducer.units().steps, 3);
  });
  return all;
}

TEST(LibraryTest, SumsHaveTheSameBitsOnAnyRanksAndFollowTheSizeOfTerms) {
  const std::vector<float> alone = reduce(1);
  ASSERT_EQ(alone.size(), 15U);
  for (const int ranks : {2, 5, 12, 14}) EXPECT_EQ(reduce(ranks), alone) << ranks;
  for (std::size_t step = 0; step < 3; ++step) {
    const double scale = step == 1 ? 1e30 : 1e-6;
    for (std::size_t i = 0; i < 5; ++i) {
      double sum = 0;
      for (int t = 0; t < 12; ++t) sum += std::sin(static_cast<float>(t * 5) + static_cast<float>(i));
      EXPECT_NEAR(alone[step * 5 + i] / scale, sum / 120, 1e-6);
    }
  }
}

TEST(LibraryTest, RanksTellEachOtherNumbers) {
  lockstep::run_on_threads(3, [](lockstep::Communicator& world) {
    std::array<std::int64_t, 2> numbers = {world.rank(), 1};
    world.all_reduce(numbers);
    EXPECT_EQ(numbers, (std::array<std::int64_t, 2>{3, 3}));
    double of_rank_2 = world.rank() == 2 ? 0.5 : 0;
    world.broadcast(of_rank_2, 2);
    EXPECT_EQ(of_rank_2, 0.5);
    std::array<int, 2> of_rank_0 = {world.rank(), world.rank()};
    world.broadcast(of_rank_0[0]);
    EXPECT_EQ(of_rank_0, (std::array<int, 2>{0, world.rank()}));
    world.broadcast(std::as_writable_bytes(std::span(of_rank_0)));
    EXPECT_EQ(of_rank_0[1], 0);
    world.barrier();
  });
}

}  // namespace
