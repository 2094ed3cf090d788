// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The core alone trains: no job file, no GPU, no format of pictures or tables is linked. And what it comes to does not
/// depend on the number of ranks.
#include "comm/thread/thread_ranks.hpp"
#include "data/dataset.hpp"
#include "data/normalisation.hpp"
#include "trainer/training/data_parallel.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep {
namespace {

constexpr ImageShape kImage = {1, 6, 6};
constexpr int kClasses = 3;
constexpr const char* kNetwork =
    "layers:\n  - conv2d: {out: 5, kernel: 3}\n  - max_pool: 2\n  - relu\n  - dropout: 0.1\n  - flatten\n"
    "  - linear: classes\n";

/// Images whose brightest row tells the class.
Dataset make_set(int samples) {
  Dataset set;
  set.shape = kImage;
  set.classes = kClasses;
  set.images = AlignedBuffer<std::uint8_t>(static_cast<std::size_t>(samples * kImage.features()));
  set.scales = scales_of({.mean = {0.5}, .std = {0.25}}, kImage.channels);
  for (int i = 0; i < samples; ++i) {
    set.labels.push_back(i % kClasses);
    for (int p = 0; p < kImage.features(); ++p) {
      const int noise = (i * 37 + p * 101) % 61, row = p / kImage.width;
      set.images[static_cast<std::size_t>(i * kImage.features() + p)] =
          static_cast<std::uint8_t>(noise + (row / 2 == i % kClasses ? 150 : 0));
    }
  }
  return set;
}

TrainingSetup make_setup() {
  Network network = Network::parse(kNetwork, "core_test", kImage, kClasses);
  auto data = std::make_shared<TrainTestData>();
  data->train = make_set(100);
  data->test = make_set(31);
  TrainingOptions options;
  options.batch.global_batch = 24;
  options.step.grain = 4;
  BucketPlan plan = plan_buckets_of_size(network, options.step, 256);
  options.update.optimizer = {.kind = "adamw", .lr = 0.01, .weight_decay = 0.01};
  return {
      .options = options, .data = std::move(data), .network = std::move(network), .plan = std::move(plan)};
}

struct Trained {
  std::vector<float> weights;
  Evaluation test;
  std::int64_t samples = 0;
};

Trained train(int ranks, int epochs) {
  Trained trained;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    const TrainingSetup setup = make_setup();
    const auto strategy = make_cpu_data_parallel(setup, comm);
    setup.network.initialise(setup.options.seed, strategy->whole_state().weights);
    strategy->distribute();
    const std::int64_t steps = strategy->sampler().steps_per_epoch();
    std::int64_t samples = 0;
    for (std::int64_t step = 0; step < epochs * steps; ++step)
      samples += strategy->run({step / steps, step % steps, step}, 1, false).samples;
    const Evaluation test = strategy->evaluate(EvaluatedPart::kTest, never_leave);
    strategy->collect();
    if (comm.rank() != 0) return;
    const auto weights = strategy->whole_state().weights;
    trained = {{weights.begin(), weights.end()}, test, samples};
  });
  return trained;
}

TEST(CoreTest, TrainsToTheSameBitsOnAnyRanks) {
  const Trained alone = train(1, 8);
  EXPECT_EQ(alone.samples, 800);
  EXPECT_EQ(alone.test.samples, 31);
  EXPECT_GT(alone.test.accuracy(), 0.9);
  for (const int ranks : {2, 3, 5}) {
    const Trained shared = train(ranks, 8);
    EXPECT_EQ(shared.weights, alone.weights) << ranks << " ranks";
    EXPECT_EQ(shared.test.loss, alone.test.loss) << ranks << " ranks";
    EXPECT_EQ(shared.samples, alone.samples);
  }
}

}  // namespace
}  // namespace lockstep
