// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Evaluation on a device: how far the host is ahead, and streamed sets.
#include "trainer/device/device_evaluator.hpp"

#include "common/machine.hpp"
#include "tests/trainer/training/data_parallel_fixture.hpp"
#include "tests/trainer/training/sample_ring_fixture.hpp"
#include "trainer/training/evaluator.hpp"

namespace lockstep {

namespace {

using namespace data_parallel_test;

/// A request to stop is heard while the device works on two batches, not when all are queued.
TEST(DeviceEvaluatorTest, TheHostIsAtMostTwoBatchesAhead) {
  run_thread_ranks(1, [](Communicator& comm) {
    const std::shared_ptr<Gpu> late = late_gpu();
    const Gpu& gpu = *late;
    std::atomic<bool>& is_held = static_cast<testing::HeldDevice&>(*gpu.device).held;
    const Dataset set = make_set(4000);  // four batches
    const Network network = Network::parse("layers:\n  - linear: classes\n", "test.yaml", kImage, kClasses);
    const auto stream = gpu.device->make_stream();
    DeviceEvaluator evaluator(network, gpu, *stream, set, LossKind::kCrossEntropy);
    const DeviceBuffer<float> weights(*gpu.device, network.parameters().weights_size());
    stream->fill_zero(weights.data(), weights.bytes());
    is_held = true;
    std::atomic<int> asked = 0;
    int asked_while_held = 0;
    std::thread release([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      asked_while_held = asked;
      is_held = false;
    });
    const Evaluation evaluation = evaluator.evaluate(comm, weights.data(), [&] { return ++asked == 4; });
    release.join();
    EXPECT_LE(asked_while_held, 2);
    EXPECT_EQ(asked, 4);
    EXPECT_EQ(evaluation.samples, 3000);
    EXPECT_TRUE(evaluation.interrupted);
  });
}

/// Six batches a rank, which the ring has to take in turn, and that twice.
TEST(DeviceEvaluatorTest, AStreamedSetHasTheNumbersOfAWholeOne) {
  run_thread_ranks(2, [](Communicator& comm) {
    const std::shared_ptr<Gpu> late = late_gpu();
    const Gpu& gpu = *late;
    Dataset set = make_set(53);
    for (std::size_t i = 0; i < set.images.size(); ++i)
      set.images.span()[i] = static_cast<std::uint8_t>(37 * i % 251);
    for (std::size_t i = 0; i < set.labels.size(); i += 3) set.labels[i] = 0;
    const Network network = Network::parse(kOneLayer, "test.yaml", kImage, kClasses);
    std::vector<float> weights(network.parameters().weights_size());
    network.initialise(5, weights);
    const auto stream = gpu.device->make_stream();
    const auto on_device = upload(*gpu.device, *stream, weights);
    std::vector<Evaluation> found;
    for (const Communicator* streams_to : {static_cast<const Communicator*>(nullptr), &std::as_const(comm)}) {
      DeviceEvaluator evaluator(network, gpu, *stream, set, LossKind::kCrossEntropy, 5, streams_to);
      for (int i = 0; i < 2; ++i) found.push_back(evaluator.evaluate(comm, on_device.data()));
    }
    for (const Evaluation& evaluation : found) {
      EXPECT_EQ(evaluation.samples, 53);
      EXPECT_EQ(evaluation.correct, found.front().correct);
      EXPECT_EQ(evaluation.loss, found.front().loss);
      EXPECT_FALSE(evaluation.interrupted);
    }
  });
}

/// When the fourth batch of two samples is asked for, the second and the third may still be computed.
TEST(DeviceEvaluatorTest, TwoBatchesAreReadBesideThoseThatAreComputed) {
  run_thread_ranks(1, [](Communicator& comm) {
    const auto store = std::make_shared<sample_ring_test::CountingStore>();
    Dataset set;
    set.shape = sample_ring_test::kShape;
    set.classes = kClasses;
    set.labels.resize(sample_ring_test::kStoredSamples);
    set.store = store;
    const std::shared_ptr<Gpu> late = late_gpu();
    const Network network = Network::parse(kOneLayer, "test.yaml", set.shape, kClasses);
    const auto stream = late->device->make_stream();
    const DeviceBuffer<float> weights(*late->device, network.parameters().weights_size());
    stream->fill_zero(weights.data(), weights.bytes());
    DeviceEvaluator evaluator(network, *late, *stream, set, LossKind::kCrossEntropy, 2, &comm);
    constexpr std::int64_t kEndOfFifth = 9;
    int asked = 0;
    const auto await_fifth = [&] {
      if (++asked < 4) return false;
      const auto start = Clock::now();
      while (store->last_read < kEndOfFifth && seconds_since(start) < 20) std::this_thread::yield();
      return true;
    };
    EXPECT_TRUE(evaluator.evaluate(comm, weights.data(), await_fifth).interrupted);
    EXPECT_EQ(store->last_read, kEndOfFifth);
  });
}

}  // namespace

}  // namespace lockstep
