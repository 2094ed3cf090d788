// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The memory that a training says it takes is the memory that it takes.
#include "trainer/setup/memory_need.hpp"

#include "comm/agreement.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "kernels/cpu/ops.hpp"
#include "models/device/device_execution.hpp"
#include "models/execution.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/training/memory_need_fixture.hpp"
#include "trainer/device/device_arena.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/training/data_parallel.hpp"
#include "trainer/training/worker_pool.hpp"

#include <malloc.h>

namespace lockstep::memory_need_test {
namespace {

constexpr const char* kLayers =
    "layers:\n  - conv2d: {out: 40, kernel: 5, padding: 2}\n  - max_pool: 2\n  - relu\n  - linear: 300\n"
    "  - relu\n  - linear: classes\n";

Network small_network() {
  return Network::parse(kLayers, "test.yaml", {1, 28, 28}, 10);
}

std::shared_ptr<const TrainTestData> load(const Job& job) {
  return load_in_advance(job).get().sets;
}

JobSetup set_up(const Job& job, Communicator& comm, Network network = small_network()) {
  DeviceChoice device = choose_device(job.parallel, comm);
  BucketPlan plan = plan_buckets(job, network, device, comm);
  return make_setup(job, load(job), std::move(device), std::move(network), std::move(plan));
}

std::uint64_t bytes_from_malloc() {
  const struct mallinfo2 all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

/// Threads take grains as they come, and one that gets none keeps no scratch memory. All of that, with what malloc
/// keeps for itself, is less than half of a buffer of all parameters.
TEST(MemoryNeedTest, IsWhatTrainingOnACpuTakes) {
  run_thread_ranks(1, [](Communicator& comm) {
    const Job job = small_job("cpu");
    const JobSetup setup = set_up(job, comm);
    const TrainingMemory need = training_memory(job, setup.network, sizes_of(*setup.data), false, 1);
    const std::uint64_t before = bytes_from_malloc();
    const auto strategy = make_data_parallel(setup, comm);
    strategy->run({}, 2, false);
    const std::uint64_t taken = bytes_from_malloc() - before;
    if (before == 0) GTEST_SKIP() << "sanitizers have a malloc of their own, which does not count";
    const std::uint64_t for_checkpoints = checkpoint_bytes(job, 0) * setup.network.parameters().size;
    const std::uint64_t said = need.host.parameters - for_checkpoints + need.host.activations;
    const std::uint64_t half_a_buffer = sizeof(float) * setup.network.parameters().size / 2;
    EXPECT_LE(taken, said + half_a_buffer);
    EXPECT_GE(taken, said - half_a_buffer);
    EXPECT_EQ(need.host.data, (128 + 64) * (784U + 4));
  });
}

std::uint64_t free_on_device() {
  return emulated::platform().make_device(0)->properties().free_bytes;
}

/// With units that have changed, and biases that the update treats differently.
TEST(MemoryNeedTest, IsWhatTrainingOnADeviceTakes) {
  run_thread_ranks(1, [](Communicator& comm) {
    std::uint64_t least = ~std::uint64_t{0};
    for (const auto& [micro_batch, streams] :
         std::vector<std::pair<int, bool>>{{0, true}, {0, false}, {32, false}}) {
      Job job = small_job("emulated");
      job.data.micro_batch = micro_batch;
      job.train.optimizer.decay_biases = false;
      JobSetup setup = set_up(job, comm);
      setup.streams = streams;
      DataSizes sizes = sizes_of(*setup.data);
      sizes.streams = streams;
      const TrainingMemory need = training_memory(job, setup.network, sizes, true, 1);
      const std::uint64_t before = free_on_device();
      const auto strategy = make_data_parallel(setup, comm);
      GradientUnits& units = strategy->whole_state().units;
      units.restore(std::vector<std::int16_t>(units.tensors(), kExactExponent - 1), 0);
      strategy->distribute();
      const std::uint64_t taken = before - free_on_device();
      EXPECT_LE(taken, need.device.total() + (16 << 10));
      EXPECT_GE(taken, need.device.total() / 100 * 98);
      EXPECT_LT(taken, least) << micro_batch;
      least = taken;
    }
  });
}

/// A ring of 32 steps would have 8.4 MiB more.
TEST(MemoryNeedTest, PartnersOfSamplesAreInTheirStepsOfARing) {
  run_thread_ranks(1, [](Communicator& comm) {
    constexpr ImageShape kImage = {1, 28, 28};
    Job job = small_job("emulated");
    job.data.global_batch = 2816;
    job.data.train_samples = 2816;
    job.data.augment = {{.kind = AugmentKind::kMixup, .values = {{{1, 1}, {1, 1}}}}};
    JobSetup setup =
        set_up(job, comm, Network::parse("layers:\n  - linear: classes\n", "test.yaml", kImage, 10));
    setup.mixer = SampleMixer(job.data.augment, kImage, job.train.seed);
    setup.streams = true;
    DataSizes sizes = sizes_of(*setup.data);
    sizes.streams = true;
    const std::uint64_t before = free_on_device();
    const auto strategy = make_data_parallel(setup, comm);
    EXPECT_LE(before - free_on_device(),
              training_memory(job, setup.network, sizes, true, 1).device.total() + (1 << 20));
  });
}

TEST(MemoryNeedTest, AMicroBatchBoundsItWhateverTheBatch) {
  const Network network = small_network();
  const DataSizes data{.train_samples = 60000, .test_samples = 10000, .sample_bytes = 788};
  const auto activations = [&](std::int64_t global_batch, std::int64_t micro_batch) {
    Job job = small_job("emulated");
    job.data.global_batch = global_batch;
    job.data.micro_batch = micro_batch;
    return training_memory(job, network, data, true, 1).device.activations;
  };
  EXPECT_EQ(activations(8192, 64), activations(4096, 64));
  EXPECT_EQ(activations(64, 64), activations(4096, 64) + 64 * 4 * (784 + 1)) << "the next batch's samples";
  EXPECT_EQ(activations(4096, 95), activations(4096, 64)) << "not in whole grains of 32";
  EXPECT_EQ(activations(4096, 1), activations(4096, 32)) << "not a grain at least";
  EXPECT_LT(10 * activations(4096, 64), activations(4096, 0));
}

/// Sums of eight bytes a parameter. On a device: results, and their way through the host; on a CPU: terms and results.
TEST(MemoryNeedTest, OtherRanksTakeTheirSums) {
  const Job job = small_job("cpu");
  const Network network = small_network();
  const std::uint64_t sums = 8 * network.parameters().size;
  const auto more_by_a_rank = [&](bool on_device) {
    const auto need = [&](int ranks) {
      return training_memory(job, network, {128, 64, 0}, on_device, ranks);
    };
    const TrainingMemory alone = need(1), two = need(2);
    return std::pair(two.host.parameters - alone.host.parameters,
                     two.device.parameters - alone.device.parameters);
  };
  EXPECT_EQ(more_by_a_rank(true), std::pair(sums, sums));
  EXPECT_EQ(more_by_a_rank(false), std::pair(2 * sums, std::uint64_t{0}));
}

/// Weights and momentum are there three times where a checkpoint is read. Each of two threads has a gradient, and there
/// is the sum of these.
TEST(MemoryNeedTest, ACpuTakesItsBytesForEachParameter) {
  const Network network = small_network();
  const auto bytes_each = [&](int ranks, Determinism determinism, std::int64_t replay) {
    Job job = small_job("cpu");
    job.parallel.determinism = determinism;
    job.parallel.replay_every_steps = replay;
    const TrainingMemory need =
        training_memory(job, network, {.train_samples = 128, .sample_bytes = 0}, false, ranks);
    EXPECT_EQ(need.host.parameters % network.parameters().size, 0U);
    return need.host.parameters / network.parameters().size;
  };
  EXPECT_EQ(bytes_each(1, Determinism::kWorld, 100), 24U + 12 + 8);
  EXPECT_EQ(bytes_each(1, Determinism::kOff, 0), 24U + 12 + 4);
  EXPECT_EQ(bytes_each(2, Determinism::kWorld, 0), 24U + 12 + 8 + 16);
  EXPECT_EQ(bytes_each(2, Determinism::kOff, 0), 24U + 12 + 4 + 4);
  EXPECT_EQ(bytes_each(2, Determinism::kWorld, 100), 24U + 12 + 8 + 16 + 8);
  EXPECT_EQ(bytes_each(2, Determinism::kOff, 100), 24U + 12 + 4 + 4) << "nothing to compare";
  Job job;
  EXPECT_EQ(state_bytes(job), 8U);
  job.train.optimizer.kind = "adam";
  EXPECT_EQ(state_bytes(job), 12U);
}

/// It alone reads and writes them.
TEST(MemoryNeedTest, TheFirstRankHasTheCheckpoints) {
  const Job job = small_job("cpu");
  const Network network = small_network();
  for (const bool on_gpu : {false, true}) {
    const auto bytes = [&](int rank) {
      return training_memory(job, network, {128, 64, 0}, on_gpu, 3, rank).host.parameters;
    };
    EXPECT_EQ(bytes(0) - bytes(1), 16 * network.parameters().size);
    EXPECT_EQ(bytes(1), bytes(2));
  }
}

TEST(MemoryNeedTest, ACpuHasAGrainForEachThreadOrWithCutsAllOfItsGrains) {
  Job job = small_job("cpu");
  job.data.global_batch = 128;
  const int columns = ThreadContext::columns_for(job.parallel.grain);
  const auto activations = [&](const Network& network, std::int64_t samples, int ranks) {
    return training_memory(job, network, {.train_samples = samples, .sample_bytes = 0}, false, ranks)
        .host.activations;
  };
  const Network network = small_network();
  EXPECT_EQ(activations(network, 128, 1),
            2 * (execution_bytes(network, columns) + kernel_scratch_bytes(network, columns)));
  const Network cut =
      Network::parse("layers:\n  - conv2d: {out: 2, kernel: 3}\n  - batch_norm\n  - linear: classes\n",
                     "cut.yaml", {1, 28, 28}, 10);
  struct Row {
    std::int64_t samples;
    int threads, ranks;
    std::uint64_t grains;
  };
  for (const Row& row : std::vector<Row>{{128, 1, 1, 4},
                                         {128, 1, 2, 2},
                                         {128, 1, 3, 2},
                                         {200, 1, 1, 4},
                                         {97, 1, 1, 4},
                                         {96, 1, 1, 3},
                                         {33, 1, 1, 2},
                                         {32, 1, 1, 1},
                                         {32, 3, 1, 3}}) {
    job.parallel.threads = row.threads;
    const std::uint64_t scratch =
        static_cast<std::uint64_t>(row.threads) * kernel_scratch_bytes(cut, columns);
    EXPECT_EQ(activations(cut, row.samples, row.ranks), row.grains * execution_bytes(cut, columns) + scratch)
        << row.samples << " samples, " << row.threads << " threads, " << row.ranks << " ranks";
  }
}

TEST(MemoryNeedTest, ADeviceHasRoomForTrainingForEachEvaluatedPartAndForTheNextBatch) {
  const Network network = small_network();
  Job job = small_job("emulated");
  DataSizes data{.train_samples = 128, .test_samples = 70, .sample_bytes = 788, .validation_samples = 50};
  const auto activations = [&](int ranks) {
    return training_memory(job, network, data, true, ranks).device.activations;
  };
  const auto training = [&](int samples) { return device_execution_bytes(network, samples, true); };
  const auto evaluation = [&](int samples) { return device_execution_bytes(network, samples, false); };
  const std::uint64_t next_sample = 4 * (784 + 1);
  EXPECT_EQ(activations(1), training(64) + evaluation(70) + evaluation(50) + 64 * next_sample);
  EXPECT_EQ(activations(2), training(32) + evaluation(70) + evaluation(50) + 32 * next_sample);
  data.test_samples = 5000;
  data.validation_samples = 1001;
  EXPECT_EQ(activations(1), training(64) + 2 * evaluation(1000) + 64 * next_sample);
  job.parallel.graph = GraphUse::kOff;
  EXPECT_EQ(activations(1), training(64) + 2 * evaluation(1000));
  job.parallel.graph = GraphUse::kOn;
  job.data.micro_batch = 32;
  data.validation_samples = 0;
  EXPECT_EQ(activations(1), training(32) + evaluation(32));
}

/// Weights and momentum, sums and the exponents of their units.
TEST(MemoryNeedTest, ADeviceTakesItsBytesForEachParameterAndATrail) {
  const Network network = small_network();
  const std::uint64_t parameters = network.parameters().size;
  const auto need = [&](const Job& job, int ranks) {
    return training_memory(job, network, {.train_samples = 128, .sample_bytes = 0}, true, ranks);
  };
  Job job = small_job("emulated");
  EXPECT_EQ(need(job, 1).host.parameters, 24 * parameters);
  EXPECT_EQ(need(job, 1).device.parameters,
            18 * parameters + device_fingerprint_bytes(network.parameters(), 1, 64));
  job.run.trail = false;
  EXPECT_EQ(need(job, 1).device.parameters, 18 * parameters);
  job.train.freeze = {"conv1.*"};
  EXPECT_EQ(need(job, 1).device.parameters, 22 * parameters) << "and the range of each in the update";
  job.train.freeze = {};
  job.run.trail = true;
  job.parallel.determinism = Determinism::kOff;
  EXPECT_EQ(need(job, 1).device.parameters, 18 * parameters) << "no trail";
  EXPECT_EQ(need(job, 2).device.parameters, 22 * parameters) << "fp32 sums";
}

TEST(MemoryNeedTest, ADeviceHasTheSetOrARingOfSteps) {
  const Network network = small_network();
  Job job = small_job("emulated");
  DataSizes sizes{.train_samples = 128, .test_samples = 70, .sample_bytes = 788, .validation_samples = 50};
  const auto expect_data = [&](std::uint64_t device, std::uint64_t host) {
    const TrainingMemory need = training_memory(job, network, sizes, true, 1);
    EXPECT_EQ(need.device.data, device);
    EXPECT_EQ(need.host.data, host);
  };
  expect_data(248 * 788 + 128 * 4, 248 * 788);
  sizes.on_disk = true;
  expect_data(248 * 788 + 128 * 4, 248 * 4);
  sizes.kept_bytes = 1000;
  expect_data(248 * 788 + 128 * 4, 248 * 4 + 1000);
  sizes.streams = true;
  std::uint64_t ring = 32 * 64 * 784 + 64 * 784 + 4 * (70 + 50) * 784;
  expect_data(248 * 4 + 128 * 4 + ring, 248 * 4 + 1000 + ring);
  job.data.augment = {{.kind = AugmentKind::kMixup}};
  ring = 2 * (32 * 64 * 784 + 64 * 784) + 4 * (70 + 50) * 784;
  expect_data(248 * 4 + 128 * (4 + 20) + ring, 248 * 4 + 1000 + ring);
  job.data.micro_batch = 32;
  ring = 2 * (32 * 64 * 784 + 32 * 784) + 4 * (32 + 32) * 784;
  expect_data(248 * 4 + 128 * (4 + 20) + ring, 248 * 4 + 1000 + ring);
  job.data.augment = {};
  EXPECT_EQ(ring_bytes(job, sizes, 300'000, 0, 0), 2U * 300'000 * 784) << "few large steps";
}

TEST(DataSizesTest, AreThoseOfTheParts) {
  TrainTestData data;
  data.train.shape = {2, 3, 4};
  data.train.labels.resize(5);
  data.test.labels.resize(6);
  data.validation.labels.resize(7);
  EXPECT_EQ(sizes_of(data).sample_bytes, 24U * 4 + 4);
  data.train.images = AlignedBuffer<std::uint8_t>(5 * 24);
  const DataSizes sizes = sizes_of(data);
  EXPECT_EQ(sizes.sample_bytes, 24U + 4);
  EXPECT_EQ(sizes.train_samples, 5);
  EXPECT_EQ(sizes.test_samples, 6);
  EXPECT_EQ(sizes.validation_samples, 7);
  EXPECT_FALSE(sizes.on_disk);
}

TEST(MemoryNeedTest, ADeviceExecutionTakesWhatItsPlanSays) {
  const Network network = Network::parse(
      "layers:\n  - conv2d: {out: 3, kernel: 3, bias: false}\n  - relu\n  - max_pool: 2\n  - flatten\n"
      "  - conv2d: {out: 4, kernel: 1}\n  - max_pool: {kernel: 1}\n  - relu\n  - linear: classes\n  - "
      "dropout: 0.1\n",
      "test.yaml", {2, 9, 11}, 6);
  const auto device = emulated::platform().make_device(0);
  const auto ops = emulated::platform().make_ops(*device);
  using Purpose = DeviceExecution::Purpose;
  const NetworkPart part{.first = 2, .last = 6, .gives_input_gradient = true, .takes_output_gradient = true};
  for (const auto& [purpose, of] : {std::pair(Purpose::kTraining, NetworkPart()),
                                    {Purpose::kEvaluation, NetworkPart()},
                                    {Purpose::kTraining, part}}) {
    const std::uint64_t before = free_on_device();
    const DeviceExecution execution(network, *device, *ops, 17, purpose, of);
    EXPECT_EQ(before - free_on_device(),
              device_execution_bytes(network, 17, purpose == Purpose::kTraining, of));
  }
}

}  // namespace
}  // namespace lockstep::memory_need_test
