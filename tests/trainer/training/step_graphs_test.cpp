// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Steps through graphs, series of them too, leave the bits of steps without. With all-reduces on a stream of
/// their own, as NCCL's are, of which no order that the streams allow loses a gradient.
#include "tests/trainer/training/device_training.hpp"

namespace lockstep::step_graphs_test {
namespace {

using namespace test;

/// Full batches, the last one of an epoch, and once more.
std::vector<float> train(Reduce reduce, GraphUse graphs, Buckets buckets = Buckets::kEach,
                         int at_a_time = kBatch, const Model& model = {}) {
  constexpr BatchShare kFull = {kBatch, 0, kBatch}, kLast = {kLastBatch, 0, kLastBatch};
  Training training(reduce, graphs, buckets, at_a_time, model);
  training.queue(kFull, kSteps);
  training.queue(kLast, 1);
  training.queue(kFull, 2);
  training.queue(kLast, 2);
  return training.weights(kSteps + 5);
}

/// Control for these comparisons: no step's images are lost on a layer.
TEST(StepGraphsTest, ImagesOfEachStepReachEveryLayer) {
  for (int steps = 1; steps <= kSteps; ++steps) {
    Training training(Reduce::kNone, GraphUse::kOff), with_others(Reduce::kNone, GraphUse::kOff);
    for (Training* one : {&training, &with_others}) {
      one->queue({kBatch, 0, kBatch}, steps - 1);
      if (one == &with_others) one->turn_order();
      one->queue({kBatch, 0, kBatch}, 1);
    }
    const std::vector<float> weights = training.weights(steps), others = with_others.weights(steps);
    for (const Parameter& each : training.layout().parameters)
      EXPECT_FALSE(std::equal(&weights[each.offset], &weights[each.offset] + each.size, &others[each.offset]))
          << each.name << ", step " << steps;
  }
}

TEST(StepGraphsTest, LeaveTheBitsOfDirectSteps) {
  const std::vector<float> expected = train(Reduce::kNone, GraphUse::kOff);
  EXPECT_EQ(train(Reduce::kNone, GraphUse::kOn), expected);
  EXPECT_EQ(train(Reduce::kExact, GraphUse::kOff), expected);
  const std::vector<float> fp32 = train(Reduce::kFp32, GraphUse::kOff);
  EXPECT_EQ(train(Reduce::kFp32, GraphUse::kOn), fp32);
}

TEST(StepGraphsTest, AllReducesBesideBackwardLoseNothing) {
  const std::vector<float> expected = train(Reduce::kNone, GraphUse::kOff);
  for (const Buckets buckets : {Buckets::kOne, Buckets::kEach})
    EXPECT_EQ(same_in_every_order([&] { return train(Reduce::kExact, GraphUse::kOn, buckets); }), expected);
}

/// The emulator carries out at once what is queued, so the sums show how far backward had come.
TEST(StepGraphsTest, ABucketLeavesBeforeTheBackwardPassOfEarlierLayers) {
  if (platform_under_test().make_device(0)->kind() == "cuda")
    GTEST_SKIP() << "a GPU may be faster than its host";
  Training training(Reduce::kExact, GraphUse::kOff);
  training.copy_sums_at_first_all_reduce();
  training.queue({kBatch, 0, kBatch}, 1);
  const auto is_there = [](std::int64_t sum) { return sum != 0; };
  const std::vector<std::int64_t> sums = training.copied_sums();
  const auto last_layer =
      sums.begin() + static_cast<std::ptrdiff_t>(training.layout().parameters.end()[-2].offset);
  EXPECT_TRUE(std::any_of(last_layer, sums.end(), is_there)) << "the bucket left too early";
  EXPECT_TRUE(std::none_of(sums.begin(), last_layer, is_there)) << "it left when backward had ended";
}

TEST(StepGraphsTest, MicroBatchesLeaveTheBitsOfWholeBatches) {
  const std::vector<float> expected = train(Reduce::kNone, GraphUse::kOff);
  for (const int at_a_time : {2, 4}) {
    SCOPED_TRACE(at_a_time);
    for (const GraphUse graphs : {GraphUse::kOff, GraphUse::kOn}) {
      EXPECT_EQ(train(Reduce::kNone, graphs, Buckets::kEach, at_a_time), expected);
      EXPECT_EQ(train(Reduce::kExact, graphs, Buckets::kOne, at_a_time), expected);
    }
  }
}

/// The emulator carries out at once what is queued. A bucket that leaves with an earlier micro-batch lacks
/// the rest, and one that leaves at the end comes with the gradient of earlier layers for the last one.
TEST(StepGraphsTest, ABucketLeavesInTheBackwardPassOfTheLastMicroBatch) {
  if (platform_under_test().make_device(0)->kind() == "cuda")
    GTEST_SKIP() << "a GPU may be faster than its host";
  const auto sums_when_the_first_leaves = [](int at_a_time, int columns) {
    Training training(Reduce::kExact, GraphUse::kOff, Buckets::kEach, at_a_time);
    training.copy_sums_at_first_all_reduce();
    training.queue({columns, 0, kBatch}, 1);
    EXPECT_EQ(training.all_reduces(), kLayers);
    const std::size_t first_of_last_layer = training.layout().parameters.end()[-2].offset;
    const std::vector<std::int64_t> sums = training.copied_sums();
    const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(first_of_last_layer);
    return std::pair(std::vector(sums.begin(), begin), std::vector(begin, sums.end()));
  };
  const auto [nothing, of_four] = sums_when_the_first_leaves(kBatch, 4);
  const auto [behind_two, of_four_in_twos] = sums_when_the_first_leaves(2, 4);
  EXPECT_EQ(of_four_in_twos, of_four) << "the bucket left before the last micro-batch";
  EXPECT_NE(behind_two, nothing) << "of earlier layers there is the gradient of earlier micro-batches";
  EXPECT_EQ(behind_two, sums_when_the_first_leaves(2, 3).first) << "the bucket left when backward had ended";
}

/// The emulator carries out at once what is queued. When the first bucket of a step leaves, the next step's
/// samples have been gathered by the order as it was.
TEST(StepGraphsTest, ASeriesGathersTheNextSamplesBesideItsGradients) {
  if (platform_under_test().make_device(0)->kind() == "cuda")
    GTEST_SKIP() << "a GPU may be faster than its host";
  const auto train_series = [](int steps, bool turns) {
    Training training(Reduce::kExact, GraphUse::kOn);
    if (turns) training.turn_order_at_first_all_reduce();
    training.queue_series({kBatch, 0, kBatch}, steps);
    return training.weights(steps);
  };
  EXPECT_EQ(train_series(2, true), train_series(2, false)) << "gathered behind the first step";
  EXPECT_NE(train_series(3, true), train_series(3, false)) << "the order did not turn";
}

/// Samples of a network whose side stream has nothing else to do, and mixed images, which have second labels.
TEST(StepGraphsTest, SamplesThatAreGatheredAheadAreThoseOfTheirStep) {
  const Augmentation mixup{.kind = AugmentKind::kMixup, .values = {{{1, 1}, {1, 1}}}};
  for (const Model& model : {Model{.layers = "  - linear: classes\n"}, Model{.augment = {mixup}}}) {
    const auto train_model = [&](GraphUse graphs) {
      return train(Reduce::kNone, graphs, Buckets::kEach, kBatch, model);
    };
    EXPECT_EQ(same_in_every_order([&] { return train_model(GraphUse::kOn); }), train_model(GraphUse::kOff));
  }
}

TEST(StepGraphsTest, SamplesAreGatheredAheadUpTo64MiB) {
  const Network network = Network::parse("layers:\n  - linear: classes\n", "test.yaml", {1, 28, 28}, 10);
  constexpr std::int64_t kMost = 21'372;  // times 785 numbers, with the label
  const auto bytes = [&](GraphUse graph, std::int64_t samples, bool long_steps) {
    return bytes_gathered_ahead(graph, network, samples, long_steps);
  };
  EXPECT_EQ(bytes(GraphUse::kOn, kMost, false), std::uint64_t{kMost} * 785 * 4);
  EXPECT_EQ(bytes(GraphUse::kOn, kMost + 1, false), 0U);
  EXPECT_EQ(bytes(GraphUse::kOn, 1, true), 0U);
  EXPECT_EQ(bytes(GraphUse::kOff, 1, false), 0U);
}

/// As two ranks plan them that have a GPU each. @param on_stream  how these sum
std::size_t buckets_of(const std::string& model, bool on_stream) {
  const Network network = Network::load(model, {3, 32, 32}, 10);
  DeviceChoice device;
  device.gpu = std::make_shared<Gpu>();
  device.gpu->device = platform_under_test().make_device(0);
  device.gpu->all_reduce = std::make_unique<LoneAllReduce>(*device.gpu->device, 1, on_stream);
  std::size_t buckets = 0;
  run_thread_ranks(2, [&](Communicator& comm) {
    const BucketPlan plan = plan_buckets(make_job(Reduce::kExact), network, device, comm);
    if (comm.rank() == 0) buckets = plan.buckets.size();
  });
  return buckets;
}

TEST(StepGraphsTest, GradientsOfALargeNetworkLeaveWhileBackwardRuns) {
  EXPECT_EQ(buckets_of("net", true), 1U);
  EXPECT_EQ(buckets_of("resnet18", true), 3U);  // 85 MiB in all
  EXPECT_EQ(buckets_of("resnet18", false), 1U) << "the host sends when backward has ended";
}

TEST(StepGraphsTest, RanksWithoutSamplesTakePart) {
  constexpr BatchShare kIdle = {0, 0, kBatch};
  Training training(Reduce::kExact, GraphUse::kOn);
  training.queue({kBatch, 0, kBatch}, 1);
  training.queue(kIdle, 1);
  EXPECT_EQ(training.all_reduces(), 2 * kLayers);
}

/// All ranks must agree on capturing an all-reduce. This rank's columns are equal in both batches; another
/// rank's may not be.
TEST(StepGraphsTest, ShareOfABatchOfAnotherSizeIsCapturedAnew) {
  Training training(Reduce::kExact, GraphUse::kOn);
  training.queue({kLastBatch, 0, kBatch}, 3);
  const int calls = training.all_reduces();
  EXPECT_EQ(calls, (1 + 1 + 8) * kLayers) << "a step by itself, a graph of one and one of eight";
  training.queue({kLastBatch, 0, kBatch}, 1);
  EXPECT_EQ(training.all_reduces(), calls) << "captured again";
  training.queue({kLastBatch, 0, kLastBatch}, 1);
  EXPECT_EQ(training.all_reduces(), calls + kLayers) << "not run directly";
}

/// Layers whose steps have some 300 kernels.
std::string a_hundred_layers() {
  std::string layers;
  for (int i = 0; i < 100; ++i) layers += "  - linear: 3\n  - relu\n";
  return layers + "  - linear: classes\n";
}

/// A graph has at most 2,048 nodes. One rank has no samples, and few nodes a step; but NCCL wants the same captures.
TEST(StepGraphsTest, SeriesOfALargeNetworkAreShorterOnEveryRank) {
  constexpr int kRun = 9;  // one that runs directly, a series, and the rest
  const std::string layers = a_hundred_layers();
  const Model model{.layers = layers.c_str()};
  int with_samples = 0, without = 0;
  std::vector<float> weights;
  run_thread_ranks(2, [&](Communicator& comm) {
    const bool is_idle = comm.rank() == 1;
    Training training(Reduce::kExact, GraphUse::kOn, Buckets::kOne, kBatch, model, &comm);
    training.queue({is_idle ? 0 : kBatch, 0, kBatch}, kRun);
    (is_idle ? without : with_samples) = training.all_reduces();
    if (!is_idle) weights = training.weights(kRun);
  });
  const int in_series = with_samples - 2;  // but for a step by itself and a graph of one
  EXPECT_GT(in_series, 1);
  EXPECT_LT(in_series, 8);
  EXPECT_EQ(without, with_samples);
  Training direct(Reduce::kNone, GraphUse::kOff, Buckets::kOne, kBatch, model);
  direct.queue({kBatch, 0, kBatch}, kRun);
  EXPECT_EQ(weights, direct.weights(kRun));
}

TEST(StepGraphsTest, FailureDuringCaptureLeavesTheStreamUsable) {
  Training training(Reduce::kExact, GraphUse::kOn);
  training.fail_at_all_reduce(kLayers + 2);
  EXPECT_THROW(training.queue({kBatch, 0, kBatch}, 2), PeerLostError);
  training.weights(1);
}

}  // namespace
}  // namespace lockstep::step_graphs_test
