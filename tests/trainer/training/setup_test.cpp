// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Setup of a job: checks of each strategy, the memory of a pipeline, data that come from another rank.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "data/sets/leave_out.hpp"
#include "data/shared_set.hpp"
#include "models/device/device_execution.hpp"
#include "models/execution.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "trainer/device/device_arena.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/memory_need.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/training/worker_pool.hpp"

namespace lockstep {
namespace {

constexpr ImageShape kInput{1, 28, 28};

Network network_of(const std::string& layers) {
  return Network::parse("name: cut\nlayers:\n" + layers, "cut.yaml", kInput, 10);
}

Network six_layers() {
  return network_of(
      "  - conv2d: {out: 3, kernel: 3}\n  - max_pool: 2\n  - relu\n  - linear: 20\n  - relu\n"
      "  - linear: classes\n");
}

Job job_of(const std::string& strategy, std::vector<std::vector<std::string>> stages = {}) {
  Job job;
  job.data.set = "synthetic";
  job.data.global_batch = 64;
  job.data.train_samples = 128;
  job.data.test_samples = 64;
  job.parallel.device = "cpu";
  job.parallel.grain = 16;
  job.parallel.strategy = strategy;
  job.parallel.stages.layers = std::move(stages);
  return job;
}

Job pipeline_job() {
  return job_of("pipeline", {{"conv1"}, {"pool1", "relu1", "fc1"}, {"relu2", "fc2"}});
}

DeviceChoice emulated_gpu() {
  DeviceChoice device;
  device.description = "Emulated GPU";
  device.gpu = std::make_shared<Gpu>();
  device.gpu->device = emulated::platform().make_device(0);
  return device;
}

TrainTestData samples_of(const Network& network, std::int64_t samples) {
  TrainTestData data;
  data.train.shape = data.test.shape = network.input_shape();
  data.train.labels.resize(static_cast<std::size_t>(samples));
  data.test.labels.resize(10);
  return data;
}

struct Verdict {
  bool streams = false;
  std::string refusal;
};

/// The strategy's check, as rank 0 of so many gets it.
Verdict check_of(const Job& job, const Network& network, int ranks, const DeviceChoice& device = {},
                 std::int64_t samples = 128) {
  Verdict check;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    if (comm.rank() != 0) return;
    try {
      check.streams =
          find_strategy(job).setup.check(job, network, samples_of(network, samples), device, comm);
    } catch (const Error& error) {
      check.refusal = error.what();
    }
  });
  return check;
}

std::string refusal_of(const Job& job, int ranks, const DeviceChoice& device = {}) {
  return check_of(job, six_layers(), ranks, device).refusal;
}

TEST(PipelineChecksTest, EveryPipelineHasAMicroBatch) {
  Job job = job_of("pipeline", {{"conv1", "pool1", "relu1"}, {"fc1", "relu2", "fc2"}});
  EXPECT_EQ(refusal_of(job, 8), "");
  EXPECT_EQ(refusal_of(job, 10),
            "parallel.stages: a global batch of 64 samples in grains of 16 has micro-batches for 4 pipelines "
            "of 2 ranks, and 5 were started; start no more than 8 ranks, or add data.global_batch=80");
  job.data.global_batch = 65;
  EXPECT_EQ(refusal_of(job, 10), "") << "a grain of one sample more";
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
  const auto expect_refusal = [&](const DeviceChoice& device, std::string_view begin, std::string_view end) {
    const std::string text = check_of(job, network, 1, device, job.data.global_batch).refusal;
    EXPECT_TRUE(text.starts_with(begin)) << text;
    EXPECT_TRUE(text.ends_with(end)) << text;
  };
  job.data.global_batch = 2'000'000;
  expect_refusal({}, "not enough memory: training cut in 2 stages with 1 rank on this machine would take ",
                 "; use fewer ranks on this machine, a smaller parallel.grain, or a smaller model");
  job.parallel.grain = 1024;
  job.data.global_batch = 16 * 1024;
  expect_refusal(emulated_gpu(), "not enough memory on Emulated GPU: training cut would take about ",
                 "; lower parallel.grain, use more stages, a smaller model, or data.on_device=stream");
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
    EXPECT_EQ(host.parameters, (8 + 24) * held(rank) + (rank == 0 ? 16 * all_ : 0)) << rank;
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

TEST_F(PipelineMemoryTest, ReplicasHaveResultsAndReplays) {
  EXPECT_EQ(need(6, 3).host.parameters, (8 + 24 + 8) * held(0)) << "the state is rank 0's to save";
  job_.parallel.replay_every_steps = 10;
  EXPECT_EQ(need(6, 3).host.parameters, (8 + 24 + 8 + 8) * held(0));
  EXPECT_EQ(need(3, 1).host.parameters, (8 + 24) * held(1)) << "there is no other replica";
  job_.parallel.determinism = Determinism::kOff;
  EXPECT_EQ(need(6, 3).host.parameters, (8 + 24) * held(0));
}

TEST_F(PipelineMemoryTest, AStageThatIsNotTrainedKeepsNothing) {
  const Network network = network_of("  - max_pool: 2\n  - linear: classes\n");
  job_ = job_of("pipeline", {{"pool1"}, {"fc1"}});
  const StagePlan plan = plan_stages(job_.parallel, network, 2);
  const MemoryNeed host = pipeline_memory(job_, network, sizes_, plan, nullptr, 0).host;
  EXPECT_EQ(host.activations,
            execution_bytes(network, ThreadContext::columns_for(16), plan.stages.front().part));
  EXPECT_EQ(host.parameters, 16 * network.parameters().size);
}

TEST_F(PipelineMemoryTest, ADeviceHasTheStageAndTheFirstOneTheSet) {
  const Gpu gpu;
  const std::uint64_t trail = device_fingerprint_bytes(network_.parameters(), 1, 1);
  const TrainingMemory first = need(3, 0, &gpu), second = need(3, 1, &gpu);
  EXPECT_EQ(first.device.activations, 3 * on_gpu(0));
  EXPECT_EQ(first.device.parameters, 16 * held(0) + trail);
  EXPECT_EQ(first.device.data, 198U * 788);
  EXPECT_EQ(first.host.parameters, 16 * all_ + 8 * held(0));
  EXPECT_EQ(first.host.activations, 0U);
  EXPECT_EQ(first.host.data, 0U);
  EXPECT_EQ(second.device.activations, 2 * on_gpu(1));
  EXPECT_EQ(second.device.parameters, 16 * held(1) + trail);
  EXPECT_EQ(second.device.data, 0U);
  EXPECT_EQ(second.host.parameters, 8 * held(1));
  job_.parallel.replay_every_steps = 10;
  EXPECT_EQ(need(6, 4, &gpu).device.parameters, 24 * held(1) + trail);
  job_.parallel.determinism = Determinism::kOff;
  EXPECT_EQ(need(6, 4, &gpu).device.parameters, 20 * held(1));
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

/// The rank of several hosts, of which this one has one rank.
class LonelyRank final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  int local_size() const override { return 1; }
};

TEST(HogwildChecksTest, ItNeedsCpusOfOneHost) {
  const Job job = job_of("hogwild");
  EXPECT_EQ(refusal_of(job, 2), "");
  EXPECT_EQ(refusal_of(job, 2, emulated_gpu()),
            "parallel.strategy: hogwild trains on CPUs, and parallel.device chose Emulated GPU; add "
            "parallel.device=cpu");
  const Network network = six_layers();
  run_thread_ranks(2, [&](Communicator& comm) {
    EXPECT_EQ(test::error_of<OptionError>([&] {
                find_strategy(job).setup.check(job, network, samples_of(network, 128), {}, LonelyRank(comm));
              }),
              "parallel.strategy: hogwild shares the memory of one host, and 1 of 2 ranks are on " +
                  comm.host() + "; start all ranks on one host, or use parallel.strategy=data");
    EXPECT_TRUE(find_strategy(job).setup.plan(job, network, {}, comm).buckets.empty());
  });
}

TEST(DataParallelChecksTest, AGpuDoesNotRecompute) {
  Job job = job_of("data");
  EXPECT_EQ(refusal_of(job, 1, emulated_gpu()), "");
  job.train.recompute = true;
  EXPECT_EQ(refusal_of(job, 1), "");
  EXPECT_EQ(refusal_of(job, 1, emulated_gpu()),
            "train.recompute: a GPU keeps all activations; remove the key, and where they do not fit, use "
            "data.micro_batch, more GPUs, or parallel.device=cpu");
}

/// Epochs are of two steps.
TEST(SamplingChecksTest, ARunIsLongEnoughForItsPatienceAndWarmup) {
  for (const char* strategy : {"data", "hogwild"}) {
    Job job = job_of(strategy);
    job.train.patience = 1;
    EXPECT_EQ(refusal_of(job, 1), "");
    job.train.max_steps = 2;
    EXPECT_EQ(refusal_of(job, 1), "");
    job.train.max_steps = 1;
    const std::string too_short =
        "train.patience: a run of train.max_steps=1 ends before its first evaluation, which is after 2 "
        "steps; set train.evaluate_every_steps=1 or less, or leave train.patience out";
    EXPECT_EQ(refusal_of(job, 1), too_short);
    job.train.evaluate_every_steps = 5;
    EXPECT_EQ(refusal_of(job, 1), too_short);
    job.train.evaluate_every_steps = 1;
    EXPECT_EQ(refusal_of(job, 1), "");
    job.train.evaluate_every_steps = 0;
    job.train.patience = 0;
    EXPECT_EQ(refusal_of(job, 1), "");
    job.train.max_steps = 0;
    job.train.epochs = 3;
    job.train.schedule.warmup_steps = 6;
    EXPECT_EQ(
        refusal_of(job, 1),
        "train.schedule.warmup_steps: 6 is not shorter than the run, which has 6 steps (train.epochs: 3 "
        "of 2)");
    job.train.schedule.warmup_steps = 5;
    EXPECT_EQ(refusal_of(job, 1), "");
    job.train.freeze = {"nothing"};
    EXPECT_EQ(refusal_of(job, 1).substr(0, 14), "train.freeze: ");
    job.train.freeze = {};
    EXPECT_NE(refusal_of(job, 5), "") << "four grains";
  }
}

TEST(PlacesTest, StagesMayFollowFromTheStrategyAlone) {
  Job job;
  const auto text = [&](const char* option) { return std::string(with_place(job, {option, "no"}).what()); };
  EXPECT_EQ(text("parallel.stages"), "parallel.stages: no");
  job.places["parallel.strategy"] = "job.yaml:3:5: ";
  EXPECT_EQ(text("parallel.stages"), "job.yaml:3:5: parallel.stages: no");
  EXPECT_EQ(text("parallel.placement"), "job.yaml:3:5: parallel.placement: no");
  EXPECT_EQ(text("train.freeze"), "train.freeze: no");
  job.places["parallel.stages"] = "job.yaml:4:5: ";
  EXPECT_EQ(text("parallel.stages"), "job.yaml:4:5: parallel.stages: no");
}

TEST(PlanBucketsTest, ASizeThatIsGivenCounts) {
  const Network network = six_layers();
  run_thread_ranks(1, [&](Communicator& comm) {
    Job job = job_of("data");
    const auto buckets = [&](const DeviceChoice& device) {
      return plan_buckets(job, network, device, comm).buckets.size();
    };
    EXPECT_EQ(buckets({}), 1U);
    EXPECT_EQ(buckets(emulated_gpu()), 1U);
    job.parallel.bucket_bytes = 1;
    EXPECT_EQ(buckets({}), 3U);
    EXPECT_EQ(buckets(emulated_gpu()), 3U);
  });
}

TEST(ArithmeticTest, KernelsOfTheVendorHaveTheirs) {
  Job job;
  EXPECT_EQ(arithmetic_of(job, 10, emulated_gpu()), Arithmetic::kCanonical);
  job.parallel.kernels = Kernels::kVendor;
  EXPECT_EQ(arithmetic_of(job, 10, emulated_gpu()), Arithmetic::kVendor);
  EXPECT_EQ(arithmetic_of(job, 10, {}), Arithmetic::kCanonical);
  EXPECT_EQ(describe(Arithmetic::kVendor), "that of cuDNN and cuBLAS");
  EXPECT_EQ(describe(static_cast<Arithmetic>(99)), "version 99, which this program does not know");
  EXPECT_EQ(how_to_have(Arithmetic::kVendor, Arithmetic::kCanonical),
            "--device cuda --kernels vendor, on such a GPU");
  EXPECT_EQ(how_to_have(Arithmetic::kSmoothedPair, Arithmetic::kVendor),
            "the kernels of this program: leave out --kernels vendor");
}

// Options, and data on their way.

TEST(SetUpTest, TheJobsOptionsReachItsSteps) {
  Job job = job_of("data");
  job.model = "linear";
  job.train.seed = 77;
  job.data.on_device = OnDevice::kStream;
  job.data.augment = {{.kind = AugmentKind::kFlip}, {.kind = AugmentKind::kMixup, .values = {{{1, 1}}}}};
  job.parallel.graph = GraphUse::kOff;
  const TrainingOptions options = training_options(job);
  EXPECT_EQ(options.seed, 77U);
  EXPECT_TRUE(options.mixes && options.fingerprints && !options.recompute);
  const DatasetFuture data = load_in_advance(job);
  for (const bool on_gpu : {false, true}) {
    job.parallel.device = on_gpu ? "emulated" : "cpu";
    run_thread_ranks(1, [&](Communicator& comm) {
      const JobSetup setup = set_up(job, comm, data);
      EXPECT_EQ(setup.streams, on_gpu);
      EXPECT_EQ(setup.on_device().streams, on_gpu);
      EXPECT_EQ(setup.on_device().graph, GraphUse::kOff);
      EXPECT_EQ(setup.processor, setup.device.description);
      EXPECT_TRUE(setup.augment.has_value() && setup.mixer.mixes());
      EXPECT_EQ(setup.fingerprints, data.get().fingerprints);
      EXPECT_EQ(setup.network.input_shape(), kInput);
    });
  }
  run_thread_ranks(1, [&](Communicator& comm) {
    const JobSetup setup =
        set_up(job, comm, data, kDataParallelSetup, [](const Dataset&) { return six_layers(); });
    EXPECT_EQ(setup.network.layers().size(), 6U);
  });
  Dataset features;
  features.shape = kInput;
  EXPECT_EQ(message_of<ConfigError>([&] { augment_plan_of(job, features); }),
            "data.augment: only images of bytes can be augmented, and this set has features; remove "
            "data.augment");
}

TEST(DatasetOptionsTest, TheListIsReadWhereTheJobHasNot) {
  const testing::TemporaryDirectory directory;
  Job job = job_of("data");
  job.train.seed = 77;
  EXPECT_EQ(dataset_options(job).leave_out, nullptr);
  EXPECT_EQ(dataset_options(job).seed, 77U);
  EXPECT_EQ(dataset_options(job).cache, user_cache());
  job.data.leave_out_file = directory.path() + "/list";
  std::ofstream(job.data.leave_out_file) << "3\n5\n";
  const auto list = dataset_options(job).leave_out;
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->entries.size(), 2U);
  job.data.leave_out = std::make_shared<LeaveOutList>();
  EXPECT_EQ(dataset_options(job).leave_out, job.data.leave_out);
}

TEST(LoadInAdvanceTest, AnErrorComesWithTheDataAndNamesItsKey) {
  Job job = job_of("data");
  job.data.set = "mnist";
  job.data.root = "/nowhere";
  EXPECT_THROW(load_in_advance(job).get(), MissingDataError);
  job.data.train_samples = 11;
  job.places["data.train_samples"] = "job.yaml:2:9: ";
  const std::string text = message_of<ConfigError>([&] { parts_of(job, {10, 64, 0}); });
  EXPECT_EQ(text.substr(0, 34), "job.yaml:2:9: data.train_samples: ");
  job.data.train_samples = 9;
  EXPECT_EQ(parts_of(job, {10, 64, 0}).train, 9);
}

DatasetFuture ready(const LoadedData& loaded) {
  std::promise<LoadedData> promise;
  promise.set_value(loaded);
  return promise.get_future().share();
}

TEST(AwaitDataTest, HasEndedWhereTheDataAreThere) {
  std::promise<LoadedData> promise;
  const DatasetFuture data = promise.get_future().share();
  EXPECT_FALSE(has_ended(data));
  promise.set_value({.sets = nullptr});
  EXPECT_TRUE(has_ended(data));
}

/// A rank of another host.
class Stranger final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  const std::string& host() const override { return host_; }

 private:
  std::string host_ = "elsewhere";
};

/// Rank 0 has a set that is marked, and the others have none. Rank 2 may be on another host.
void expect_marked(bool offers, bool last_is_elsewhere, const std::array<bool, 3>& marked) {
  const Job job = job_of("data");
  run_thread_ranks(3, [&](Communicator& ranks) {
    LoadedData mine{.sets = std::make_shared<TrainTestData>(), .options = dataset_options(job)};
    if (ranks.rank() == 0) {
      mine = load_in_advance(job).get();
      mine.sets->class_names = {"marked"};
      if (offers) mine.of_host = move_to_memory_file(*mine.sets);
    }
    Stranger stranger(ranks);
    Communicator& comm = last_is_elsewhere && ranks.rank() == 2 ? stranger : ranks;
    const LoadedData loaded = await_data(job, comm, ready(mine)).get();
    EXPECT_EQ(loaded.sets, mine.sets);
    EXPECT_EQ(loaded.sets->train.size(), 128);
    EXPECT_EQ(loaded.sets->class_names == std::vector<std::string>{"marked"}, at(marked, ranks.rank()))
        << ranks.rank();
  });
}

TEST(AwaitDataTest, ComeFromTheMemoryOfTheHostOrAreLoadedThen) {
  expect_marked(true, false, {true, true, true});
  expect_marked(true, true, {true, true, false});
  expect_marked(false, false, {true, false, false});
}

TEST(AwaitDataTest, ARankThatFailedSaysSoAndTheOthersGoOn) {
  const Job job = job_of("data");
  run_thread_ranks(2, [&](Communicator& comm) {
    std::promise<LoadedData> promise;
    if (comm.rank() == 0)
      promise.set_value({.sets = std::make_shared<TrainTestData>(), .options = dataset_options(job)});
    else
      promise.set_exception(std::make_exception_ptr(IoError("a disk")));
    const DatasetFuture data = await_data(job, comm, promise.get_future().share());
    if (comm.rank() == 0)
      EXPECT_EQ(data.get().sets->train.size(), 0);
    else
      EXPECT_THROW(data.get(), IoError);
  });
}

}  // namespace
}  // namespace lockstep
