// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Setup of a pipeline: what is refused, the memory of its ranks, its buckets.
#include "common/machine.hpp"
#include "models/device/device_execution.hpp"
#include "models/execution.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/trainer/training/setup_fixture.hpp"
#include "trainer/device/device_arena.hpp"
#include "trainer/setup/memory_need.hpp"
#include "trainer/training/worker_pool.hpp"

namespace lockstep::setup_test {
namespace {

TEST(PipelineChecksTest, EveryPipelineHasAMicroBatch) {
  Job job = job_of("pipeline", {{"conv1", "pool1", "relu1"}, {"fc1", "relu2", "fc2"}});
  EXPECT_EQ(refusal_of(job, 8), "");
  EXPECT_EQ(refusal_of(job, 10),
            "parallel.stages: a global batch of 64 samples in grains of 16 has micro-batches for 4 pipelines "
            "of 2 ranks, and 5 were started; start no more than 8 ranks, or add data.global_batch=80");
  job.data.global_batch = 65;
  EXPECT_EQ(refusal_of(job, 10), "") << "a grain of one sample more";
  job.train.freeze = {"nothing"};
  EXPECT_TRUE(refusal_of(job, 2).starts_with("train.freeze: ")) << "as with any strategy";
}

TEST(PipelineChecksTest, ChunksLeaveNoPipelineWithoutAMicroBatch) {
  Job job = job_of("pipeline", {{"conv1", "pool1", "relu1"}, {"fc1", "relu2", "fc2"}});
  EXPECT_EQ(refusal_of(job, 6), "");
  job.parallel.split = BatchSplit::kChunk;
  EXPECT_EQ(refusal_of(job, 4), "");
  EXPECT_EQ(
      refusal_of(job, 6),
      "parallel.split: chunk leaves 1 of 3 pipelines without a micro-batch, in a batch of 64 samples in "
      "grains of 16; use parallel.split=even");
  job.data.global_batch = 96;
  EXPECT_EQ(
      refusal_of(job, 6),
      "parallel.split: chunk leaves 1 of 3 pipelines without a micro-batch, in a batch of 32 samples in "
      "grains of 16; use parallel.split=even")
      << "the last one of an epoch";
}

TEST(PipelineChecksTest, MessagesBetweenGpusCannotBeCompared) {
  Job job = job_of("pipeline", {{"conv1", "pool1", "relu1"}, {"fc1", "relu2", "fc2"}});
  job.parallel.replay_every_steps = 10;
  const DeviceChoice device = emulated_gpu();
  EXPECT_EQ(refusal_of(job, 4, device), "") << "they go by way of the host";
  device.gpu->make_link = [](Communicator&, Device&, LinkEnd) { return std::unique_ptr<DeviceLink>(); };
  EXPECT_EQ(refusal_of(job, 4, device),
            "parallel.replay_every_steps: messages that go from GPU to GPU have no fingerprints, so a wrong "
            "stage could not be named; use parallel.backend=mpi, or remove the key");
  EXPECT_EQ(refusal_of(job, 2, device), "") << "one pipeline has none to compare with";
  job.parallel.placement = {0, 0};
  EXPECT_EQ(refusal_of(job, 4, device), "") << "no message leaves its rank";
}

TEST(PipelineChecksTest, ADeviceStreamsWhereTheJobSaysSo) {
  Job job = pipeline_job();
  job.data.on_device = OnDevice::kStream;
  const DeviceChoice device = emulated_gpu();
  EXPECT_TRUE(check_of(job, six_layers(), 3, device).streams);
  EXPECT_FALSE(check_of(job, six_layers(), 3).streams);
  job.data.on_device = OnDevice::kAuto;
  EXPECT_FALSE(check_of(job, six_layers(), 3, device).streams);
}

TEST(PipelineChecksTest, TooManyMicroBatchesInFlightAreRefused) {
  const Network network =
      network_of("  - conv2d: {out: 1500, kernel: 1}\n  - relu\n  - global_avg_pool\n  - linear: classes\n");
  Job job = job_of("pipeline", {{"conv1"}, {"relu1", "pool1", "fc1"}});
  job.parallel.schedule = PipelineOrder::kGPipe;
  const auto expect_refusal = [&](int ranks, const DeviceChoice& device, const std::string& begin,
                                  std::string_view end) {
    const std::string text = check_of(job, network, ranks, device, job.data.global_batch).refusal;
    EXPECT_TRUE(text.starts_with(begin)) << text;
    EXPECT_TRUE(text.ends_with(end)) << text;
  };
  job.data.global_batch = 2'000'000;
  const StagePlan plan = plan_stages(job.parallel, network, 2);
  const auto bytes = [&](int rank) {
    return pipeline_memory(job, network, {.train_samples = 2'000'000, .sample_bytes = 0}, plan, nullptr, rank)
        .host.total();
  };
  expect_refusal(2, {},
                 "not enough memory: training cut in 2 stages with 2 ranks on this machine would take " +
                     format_memory(bytes(0) + bytes(1)) + ", and ",
                 "; use fewer ranks on this machine, a smaller parallel.grain, or a smaller model");
  job.parallel.grain = 1024;
  job.data.global_batch = 16 * 1024;
  expect_refusal(1, emulated_gpu(), "not enough memory on Emulated GPU: training cut would take about ",
                 "; lower parallel.grain, use more stages, a smaller model, or data.on_device=stream");
}

/// By the second one of two ranks.
TEST(PipelineChecksTest, TheMemoryOfAHostIsThatOfItsRanks) {
  const Network network =
      network_of("  - conv2d: {out: 1500, kernel: 1}\n  - relu\n  - global_avg_pool\n  - linear: classes\n");
  Job job = job_of("pipeline", {{"conv1"}, {"relu1", "pool1", "fc1"}});
  job.parallel.schedule = PipelineOrder::kGPipe;
  job.data.global_batch = 2'000'000;
  const StagePlan plan = plan_stages(job.parallel, network, 2);
  const auto bytes = [&](int rank) {
    return pipeline_memory(job, network, {.train_samples = 2'000'000, .sample_bytes = 0}, plan, nullptr, rank)
        .host.total();
  };
  run_thread_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 0) return;
    const auto expect_refusal = [&](const Communicator& rank, const char* ranks, std::uint64_t of_host) {
      const std::string text = test::error_of<MemoryError>(
          [&] { kPipelineSetup.check(job, network, samples_of(network, job.data.global_batch), {}, rank); });
      EXPECT_TRUE(text.starts_with(fmt::format(
          "not enough memory: training cut in 2 stages with {} on this machine would take {}, and ", ranks,
          format_memory(of_host))))
          << text;
    };
    expect_refusal(comm, "2 ranks", bytes(0) + bytes(1));
    expect_refusal(LonelyRank(comm), "1 rank", bytes(1));
  });
}

/// They take some 650 MiB together, where each of two processes would have 512.
TEST(PipelineChecksTest, RanksThatAreThreadsShareTheLimitOfTheirProcess) {
  const SoftLimit data = limit_on_more_data(512 << 20);
  if (!data.is_set()) GTEST_SKIP() << "a hard limit is lower";
  const Network network = network_of("  - linear: 18000\n  - linear: classes\n");
  test::expect_words(check_of(job_of("pipeline", {{"fc1"}, {"fc2"}}), network, 2).refusal,
                     {"training cut in 2 stages with 2 ranks on this machine"});
}

TEST(PipelineChecksTest, WhatAGpusGridCannotHaveIsRefusedThere) {
  const Network network = network_of(
      "  - global_avg_pool\n  - linear: 65536\n  - conv2d: {out: 1, kernel: 1}\n  - linear: classes\n");
  const Job job = job_of("pipeline", {{"pool1", "fc1"}, {"conv1", "fc2"}});
  EXPECT_EQ(check_of(job, network, 2).refusal, "");
  test::expect_words(check_of(job, network, 2, emulated_gpu()).refusal,
                     {"layer conv1 (", "is beyond what a GPU's grid can have (65535)"});
}

/// Sizes of a set of 28 x 28 bytes.
constexpr DataSizes kSizes{.train_samples = 128, .test_samples = 70, .sample_bytes = 788};

/// A stage's share of the memory of its rank.
class PipelineMemoryTest : public ::testing::Test {
 protected:
  TrainingMemory need(int world, int rank, const Gpu* gpu = nullptr) const {
    return pipeline_memory(job_, network_, sizes_, plan_stages(job_.parallel, network_, world), gpu, rank);
  }
  StagePlan plan() const { return plan_stages(job_.parallel, network_, 3); }
  std::uint64_t on_cpu(int stage) const {
    return execution_bytes(network_, ThreadContext::columns_for(16), at(plan().stages, stage).part);
  }
  std::uint64_t on_gpu(int stage) const {
    return device_execution_bytes(network_, 16, true, at(plan().stages, stage).part);
  }
  std::uint64_t held(int stage) const { return at(plan().stages, stage).arena.size; }

  const Network network_ = six_layers();
  const std::uint64_t all_ = network_.parameters().size;
  Job job_ = pipeline_job();
  DataSizes sizes_ = kSizes;
};

TEST_F(PipelineMemoryTest, OneForwardOneBackwardKeepsFewerMicroBatchesInLaterStages) {
  for (int rank = 0; rank < 3; ++rank) {
    const MemoryNeed host = need(3, rank).host;
    EXPECT_EQ(host.activations, static_cast<std::uint64_t>(3 - rank) * on_cpu(rank)) << rank;
    EXPECT_EQ(host.parameters, (8 + 16) * held(rank) + (rank == 0 ? 24 * all_ : 0)) << rank;
    EXPECT_EQ(host.data, 0U);
  }
}

TEST_F(PipelineMemoryTest, GPipeKeepsAllMicroBatchesOfItsPipeline) {
  job_.parallel.schedule = PipelineOrder::kGPipe;
  EXPECT_EQ(need(3, 1).host.activations, 4 * on_cpu(1));
  EXPECT_EQ(need(6, 1).host.activations, 2 * on_cpu(1));
  sizes_.train_samples = 40;
  EXPECT_EQ(need(3, 1).host.activations, 3 * on_cpu(1));
  EXPECT_EQ(need(6, 1).host.activations, 2 * on_cpu(1)) << "of three";
  sizes_.train_samples = 48;
  EXPECT_EQ(need(3, 1).host.activations, 3 * on_cpu(1));
}

TEST_F(PipelineMemoryTest, ReplicasHaveTermsOfOthersResultsAndReplays) {
  EXPECT_EQ(need(6, 3).host.parameters, (8 + 16 + 16) * held(0)) << "the state is rank 0's to save";
  job_.parallel.replay_every_steps = 10;
  EXPECT_EQ(need(6, 3).host.parameters, (8 + 16 + 16 + 8) * held(0));
  EXPECT_EQ(need(3, 1).host.parameters, (8 + 16) * held(1)) << "there is no other replica";
  job_.parallel.determinism = Determinism::kOff;
  EXPECT_EQ(need(6, 3).host.parameters, (8 + 8 + 4 + 4) * held(0)) << "fp32 sums";
}

TEST_F(PipelineMemoryTest, AStageThatIsNotTrainedKeepsNothing) {
  const Network network = network_of("  - max_pool: 2\n  - linear: classes\n");
  job_ = job_of("pipeline", {{"pool1"}, {"fc1"}});
  const StagePlan plan = plan_stages(job_.parallel, network, 2);
  const MemoryNeed host = pipeline_memory(job_, network, sizes_, plan, nullptr, 0).host;
  EXPECT_EQ(host.activations,
            execution_bytes(network, ThreadContext::columns_for(16), plan.stages.front().part));
  EXPECT_EQ(host.parameters, 24 * network.parameters().size);
}

TEST_F(PipelineMemoryTest, ADeviceHasTheStageAndTheFirstOneTheSet) {
  const Gpu gpu;
  const std::uint64_t trail = device_fingerprint_bytes(network_.parameters(), 1, 1);
  const TrainingMemory first = need(3, 0, &gpu), second = need(3, 1, &gpu);
  EXPECT_EQ(first.device.activations, 3 * on_gpu(0));
  EXPECT_EQ(first.device.parameters, 18 * held(0) + trail);
  EXPECT_EQ(first.device.data, 198U * 788);
  EXPECT_EQ(first.host.parameters, 24 * all_ + 8 * held(0));
  EXPECT_EQ(first.host.activations, 0U);
  EXPECT_EQ(first.host.data, 0U);
  EXPECT_EQ(second.device.activations, 2 * on_gpu(1));
  EXPECT_EQ(second.device.parameters, 18 * held(1) + trail);
  EXPECT_EQ(second.device.data, 0U);
  EXPECT_EQ(second.host.parameters, 8 * held(1));
  const TrainingMemory replica = need(6, 3, &gpu);
  EXPECT_EQ(replica.device.data, 198U * 788) << "each pipeline's first one";
  EXPECT_EQ(replica.host.parameters, 8 * held(0)) << "the whole state is rank 0's";
  job_.parallel.replay_every_steps = 10;
  EXPECT_EQ(need(6, 4, &gpu).device.parameters, 26 * held(1) + trail);
  job_.parallel.determinism = Determinism::kOff;
  EXPECT_EQ(need(6, 4, &gpu).device.parameters, 22 * held(1));
  sizes_.streams = true;
  const std::uint64_t ring = 32 * 64 * 784 + 4 * 16 * 784;
  EXPECT_EQ(need(3, 0, &gpu).device.data, 198U * 4 + ring);
  EXPECT_EQ(need(3, 0, &gpu).host.data, ring);
}

TEST_F(PipelineMemoryTest, MessagesFromDeviceToDeviceHaveCopiesThere) {
  Gpu gpu;
  gpu.make_link = [](Communicator&, Device&, LinkEnd) { return std::unique_ptr<DeviceLink>(); };
  const std::uint64_t after_conv1 = 3 * 26 * 26 * 16 * 4, after_fc1 = 20 * 16 * 4;
  EXPECT_EQ(need(3, 0, &gpu).device.activations, 3 * on_gpu(0) + 3 * after_conv1);
  EXPECT_EQ(need(3, 1, &gpu).device.activations, 2 * on_gpu(1) + 2 * after_fc1 + 3 * after_conv1);
  EXPECT_EQ(need(3, 2, &gpu).device.activations, on_gpu(2) + 2 * after_fc1);
}

TEST_F(PipelineMemoryTest, ThatOfTheLargestRankIsForeseen) {
  sizes_.on_disk = true;
  sizes_.kept_bytes = 1000;
  const auto foreseen = [&](int ranks, bool on_gpu = false) {
    return foreseen_memory(job_, network_, sizes_, on_gpu, ranks);
  };
  EXPECT_EQ(foreseen(0).host.parameters, need(3, 0).host.parameters) << "a rank for each stage";
  EXPECT_EQ(foreseen(6).host.parameters, need(6, 0).host.parameters);
  EXPECT_EQ(foreseen(1).host.parameters, need(1, 0).host.parameters);
  EXPECT_EQ(foreseen(0).host.data, 198 * 4 + 1000U);
  const Gpu gpu;
  EXPECT_EQ(foreseen(0, true).device.total(),
            std::max(need(3, 0, &gpu).device.total(), need(3, 1, &gpu).device.total()));
  job_.parallel.stages = {.count = 3, .layers = {}};
  job_.parallel.placement = {0, 1, 0};
  EXPECT_EQ(foreseen(0).host.parameters, need(2, 0).host.parameters) << "as many as it names";
  job_.parallel.stages = {};
  job_.parallel.placement = {};
  EXPECT_EQ(foreseen(0).host.parameters, need(1, 0).host.parameters) << "of nothing, one";
  job_.parallel.placement = {0, 1, 0, 1};
  EXPECT_EQ(foreseen(0).host.parameters, need(4, 0).host.parameters) << "a stage for each rank";
  job_.parallel.strategy = "data";
  const auto parameters = [&](int ranks) {
    return training_memory(job_, network_, sizes_, false, ranks).host.parameters;
  };
  EXPECT_EQ(foreseen(0).host.parameters, parameters(1));
  EXPECT_EQ(foreseen(2).host.parameters, parameters(2));
}

TEST_F(PipelineMemoryTest, WhatCannotBeCutIsForeseen) {
  const auto refused = [&](const Network& network, int ranks) {
    return message_of<OptionError>([&] { foreseen_memory(job_, network, sizes_, false, ranks); });
  };
  EXPECT_EQ(refused(network_, 4),
            "parallel.stages: 3 stages do not come out on 4 ranks; start 1, 3, 6 (a multiple of 3, or a "
            "divisor), or "
            "ask for another number of stages");
  job_.parallel.stages = {.count = 300, .layers = {}};
  EXPECT_EQ(refused(network_, 0),
            "parallel.stages: 300 stages, but cut has only 6 layers; ask for 6 or fewer");
  job_.parallel.stages = {.count = 3, .layers = {}};
  job_.parallel.placement = {0, 1};
  EXPECT_EQ(refused(network_, 0), "parallel.placement: 2 ranks for 3 stages; give one for each");
  const Network cut = network_of("  - conv2d: {out: 2, kernel: 3}\n  - batch_norm\n  - linear: classes\n");
  for (const char* strategy : {"pipeline", "hogwild"}) {
    job_.parallel.strategy = strategy;
    EXPECT_TRUE(contains(refused(cut, 0), {strategy, "looks at the whole global batch"}));
  }
  job_.parallel.strategy = "data";
  EXPECT_GT(foreseen_memory(job_, cut, sizes_, false, 0).host.activations, 0U) << "it takes any layer";
}

TEST(PipelineBucketsTest, EachStageWithParametersHasOneTheLastFirst) {
  const Job job = job_of("pipeline", {{"conv1"}, {"pool1", "relu1"}, {"fc1", "relu2", "fc2"}});
  const Network network = six_layers();
  run_thread_ranks(3, [&](Communicator& comm) {
    const BucketPlan buckets = kPipelineSetup.plan(job, network, {}, comm);
    ASSERT_EQ(buckets.buckets.size(), 2U);
    EXPECT_EQ(buckets.buckets[1].offset, 0U);
    EXPECT_EQ(buckets.buckets[1].size, buckets.buckets[0].offset);
    EXPECT_EQ(buckets.buckets[1].size + buckets.buckets[0].size, network.parameters().size);
  });
}

}  // namespace
}  // namespace lockstep::setup_test
