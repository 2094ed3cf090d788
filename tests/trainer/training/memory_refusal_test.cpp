// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Training that does not fit is refused before anything is allocated. A checkpoint whose model is beyond the limits is
/// damaged data.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "models/device/device_execution.hpp"
#include "models/execution.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/trainer/training/memory_need_fixture.hpp"
#include "tests/trainer/training/setup_fixture.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/memory_need.hpp"

namespace lockstep::memory_need_test {
namespace {

TEST(MemoryNeedTest, ADeviceOfJustThatMuchIsEnough) {
  const MemoryNeed need{.parameters = 1 << 20, .activations = 5 << 20, .data = 55 << 20};
  DeviceProperties device;
  device.name = "Small GPU";
  device.free_bytes = 61 << 20;
  const Network network = Network::parse("name: big\nlayers:\n  - linear: classes\n", "", {1, 2, 2}, 2);
  require_device_memory(network, need, device, "help");
  --device.free_bytes;
  EXPECT_EQ(message_of<DeviceError>([&] { require_device_memory(network, need, device, "help"); }),
            "not enough memory on Small GPU: training big would take about 61 MiB (parameters 1.0 MiB, "
            "activations 5.0 MiB, data 55 MiB), and 61 MiB are free; help");
}

/// "65: WHAT" of the Error that it throws; empty: it throws nothing.
std::string coded_error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  }
  return "";
}

/// A set of which only the sizes are known.
TrainTestData data_of(const ImageShape& input, std::size_t samples) {
  TrainTestData data;
  data.train.shape = data.test.shape = input;
  data.train.labels.resize(samples);
  data.test.labels.resize(1000);
  return data;
}

/// By the last rank.
std::string refusal(const Job& job, const std::string& layers, const ImageShape& input = {1, 28, 28},
                    std::size_t samples = 1000, int ranks = 1) {
  std::string message;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    const DeviceChoice device = choose_device(job.parallel, comm);
    const Network network = Network::parse("name: big\nlayers:\n" + layers, "big.yaml", input, 10);
    const TrainTestData data = data_of(input, samples);
    const auto error = coded_error_of([&] { require_training_memory(job, network, data, device, comm); });
    if (comm.rank() == ranks - 1) message = error;
  });
  return message;
}

TEST(MemoryNeedTest, MoreThanTheMachineHasIsRefused) {
  Job job = small_job("cpu");
  job.parallel.threads = 1024;
  const std::string message = refusal(job, "  - linear: 1048576\n  - linear: 1000\n  - linear: classes\n");
  EXPECT_TRUE(message.starts_with(
      "69: not enough memory: training big with 1 rank on this machine (each: "
      "1,871,719,170 parameters with gradients and optimiser state 7.0 TiB, activations "))
      << message;
  EXPECT_EQ(refusal(small_job("cpu"), "  - linear: 10\n  - linear: classes\n"), "");
}

/// Grains of terabytes, and 40 bytes for each parameter, to which the first rank adds 16.
TEST(MemoryNeedTest, AllRanksOfAMachineAreCountedOfWhichTheFirstHasTheCheckpoints) {
  Job job = small_job("cpu");
  job.parallel.grain = 1 << 20;
  job.parallel.threads = 1;
  const ImageShape input{1, 28, 28};
  const std::string layers =
      "  - conv2d: {out: 1500, kernel: 1}\n  - relu\n  - global_avg_pool\n  - linear: classes\n";
  const Network network = Network::parse("layers:\n" + layers, "big.yaml", input, 10);
  const auto bytes = [&](int rank) {
    return training_memory(job, network, {.train_samples = 1000, .sample_bytes = 0}, false, 3, rank)
        .host.total();
  };
  EXPECT_EQ(bytes(0) - bytes(1), 16U * 18'010);
  test::expect_words(refusal(job, layers, input, 1000, 3),
                     {"training big with 3 ranks on this machine (each: 18,010 parameters with gradients and "
                      "optimiser state 985 KiB, ",
                      " would take " + format_memory(bytes(0) + 2 * bytes(1)) + ", and "});
}

/// 40 bytes for each parameter. The 16 for checkpoints are on the host of the first rank.
TEST(MemoryNeedTest, AHostWithoutTheFirstRankHasNoCheckpoints) {
  Job job = small_job("cpu");
  job.parallel.grain = 1 << 20;
  job.parallel.threads = 1;
  const ImageShape input{1, 28, 28};
  const Network network = Network::parse(
      "name: big\nlayers:\n  - conv2d: {out: 1500, kernel: 1}\n  - relu\n  - global_avg_pool\n"
      "  - linear: classes\n",
      "big.yaml", input, 10);
  const MemoryNeed need =
      training_memory(job, network, {.train_samples = 1000, .sample_bytes = 0}, false, 2, 1).host;
  run_thread_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == 0) return;
    const setup_test::LonelyRank alone(comm);
    const std::string message =
        coded_error_of([&] { require_training_memory(job, network, data_of(input, 1000), {}, alone); });
    EXPECT_TRUE(message.starts_with(
        fmt::format("69: not enough memory: training big with 1 rank on this machine (each: 18,010 "
                    "parameters with gradients and optimiser state 704 KiB, activations {}) would take {}, ",
                    format_memory(need.activations), format_memory(need.parameters + need.activations))))
        << message;
  });
}

/// They take some 800 MiB together, where each of three processes would have 512.
TEST(MemoryNeedTest, RanksThatAreThreadsShareTheLimitOfTheirProcess) {
  const SoftLimit data = limit_on_more_data(512 << 20);
  if (!data.is_set()) GTEST_SKIP() << "a hard limit is lower";
  const std::string layers = "  - linear: 7000\n  - linear: classes\n";
  test::expect_words(refusal(small_job("cpu"), layers, {1, 28, 28}, 1000, 3),
                     {"training big with 3 ranks on this machine"});
}

TEST(MemoryNeedTest, MoreThanTheDeviceHasIsRefused) {
  const std::string message = refusal(small_job("emulated"), "  - linear: 960000\n  - linear: classes\n");
  EXPECT_TRUE(
      message.starts_with("69: not enough memory on Emulated GPU: training big would take about 17 GiB"))
      << message;
  EXPECT_TRUE(message.ends_with("are free; lower data.global_batch, use more GPUs, or a smaller model"))
      << "no micro-batch is small enough: " << message;
}

TEST(MemoryNeedTest, ASetThatDoesNotFitTheDeviceStreamsUnlessTheJobForbidsIt) {
  Job job = small_job("emulated");
  const ImageShape large{3, 512, 512};
  const std::string layers = "  - linear: classes\n";
  EXPECT_EQ(refusal(job, layers, large, 1'000'000), "");
  job.data.on_device = OnDevice::kWhole;
  const std::string message = refusal(job, layers, large, 1'000'000);
  test::expect_words(message, {"data 2.9 TiB", "data.on_device=stream brings it there step by step"});
}

TEST(MemoryNeedTest, OnlyWhatLeavesTooLittleStreams) {
  DeviceProperties device;
  device.free_bytes = 1000;
  Job job;
  EXPECT_FALSE(must_stream(job, {.parameters = 500, .data = 400}, device));
  EXPECT_TRUE(must_stream(job, {.parameters = 500, .data = 401}, device));
  job.data.on_device = OnDevice::kStream;
  EXPECT_TRUE(must_stream(job, {}, device));
  job.data.on_device = OnDevice::kWhole;
  EXPECT_FALSE(must_stream(job, {.data = 4000}, device));
}

TEST(MemoryNeedTest, TheRefusalNamesAMicroBatchThatFits) {
  Job job = small_job("emulated");
  job.data.global_batch = 1000;
  const std::string layers = "  - conv2d: {out: 1500, kernel: 1}\n  - relu\n  - global_avg_pool\n";
  const std::string end = "  - linear: classes\n", message = refusal(job, layers + end);
  const std::string_view before = "are free; data.micro_batch=";
  const std::size_t place = message.find(before);
  ASSERT_NE(place, message.npos) << message;
  test::expect_words(message,
                     {" would fit, with the same weights; or lower data.global_batch, use more GPUs"});
  job.data.micro_batch = std::stoi(message.substr(place + before.size()));
  EXPECT_GE(job.data.micro_batch, job.parallel.grain);
  EXPECT_EQ(refusal(job, layers + end), "");
  job.data.micro_batch *= 2;
  EXPECT_NE(refusal(job, layers + end), "");
  job.data.micro_batch = 0;
  job.data.on_device = OnDevice::kWhole;
  EXPECT_NE(refusal(job, layers + end).find(before), message.npos) << "the set is not what is too large";
  EXPECT_EQ(refusal(job, layers + "  - batch_norm\n" + end).find("data.micro_batch"), message.npos)
      << "of no use there";
}

/// Grains of one sample, each less than a five-hundredth of the device, tell that share from its neighbours.
TEST(MemoryNeedTest, TheMicroBatchLeavesATwentiethForKernelsAndGraphs) {
  constexpr ImageShape kInput{1, 28, 28};
  Job job = small_job("emulated");
  job.data.global_batch = 4000;
  job.data.on_device = OnDevice::kWhole;
  job.parallel.grain = 1;
  const std::string layers =
      "  - conv2d: {out: 350, kernel: 1}\n  - relu\n  - global_avg_pool\n  - linear: classes\n";
  const std::string message = refusal(job, layers, kInput, 4000);
  const std::string_view before = "are free; data.micro_batch=";
  const std::size_t place = message.find(before);
  ASSERT_NE(place, message.npos) << message;
  const int fits = std::stoi(message.substr(place + before.size()));
  const Network network = Network::parse("layers:\n" + layers, "big.yaml", kInput, 10);
  const auto need = [&](int samples) {
    job.data.micro_batch = samples;
    return training_memory(job, network, sizes_of(data_of(kInput, 4000)), true, 1).device.total();
  };
  const auto device = choose_device(job.parallel, *make_lone_rank());
  const std::uint64_t free = device.gpu->device->properties().free_bytes, room = free - free / 20;
  EXPECT_LE(need(fits), room);
  EXPECT_GT(need(fits + 1), room);
}

TEST(MemoryNeedTest, ABatchLayerTakesNoMicroBatches) {
  Job job = small_job("emulated");
  job.data.micro_batch = 32;
  const std::string layers = "  - conv2d: {out: 2, kernel: 3}\n  - batch_norm\n  - linear: classes\n";
  EXPECT_EQ(refusal(job, layers),
            "2: data.micro_batch: layer bn1 (batch_norm) looks at the whole global batch, so a GPU keeps the "
            "activations of all samples of its rank until the last one has come that far; remove "
            "data.micro_batch, and where they do not fit, use more GPUs, group_norm instead, "
            "parallel.device=cpu, or a smaller data.global_batch");
  job.parallel.device = "cpu";
  EXPECT_EQ(refusal(job, layers), "");
}

TEST(MemoryNeedTest, MoreThanAGpuCanNumberIsRefused) {
  Job job = small_job("emulated");
  spell_advice_as(kJobSpelling);  // as users see it
  job.data.global_batch = 1000;
  const ImageShape large{1, 2048, 2048};
  EXPECT_EQ(refusal(job, "  - avg_pool: 4\n  - avg_pool: 15\n  - linear: classes\n", large),
            "2: layer pool1 (avg_pool 4): 4194304 numbers for each of 1000 samples of a rank are more than a "
            "GPU kernel can count (2147483647); bound them by data.micro_batch, lower data.global_batch or "
            "use more ranks; use parallel.device=cpu");
  EXPECT_EQ(refusal(small_job("emulated"),
                    "  - linear: 70000\n  - conv2d: {out: 1, kernel: 1}\n  - linear: classes\n"),
            "2: layer conv1 (conv2d 1@1x1): a convolution of 70,000 channels of height 1 into 1 is beyond "
            "what a GPU's grid can have (65535); use parallel.device=cpu");
}

TEST(MemoryNeedTest, AHugeLayerIsRefusedBeforeItsActivationsAreAllocated) {
  const Network network = Network::parse(
      "layers:\n  - conv2d: {out: 4, kernel: 1}\n  - relu\n  - conv2d: {out: 4, kernel: 1}\n  - linear: "
      "classes\n",
      "huge.yaml", {1, 2048, 2048}, 2);
  EXPECT_GT(device_execution_bytes(network, 1 << 20, true), std::uint64_t{1} << 46);
  const auto refused = [&](const NetworkPart& part) {
    const auto text = message_of<MemoryError>([&] { Execution(network, 1 << 20, part); });
    return std::pair(text.substr(0, text.find("would")), text.substr(text.rfind("; ") + 2, 46));
  };
  EXPECT_EQ(refused({}),
            std::pair(std::string("not enough memory: model huge, 1,048,576 samples at a time, "),
                      std::string("use fewer threads or ranks on this machine, a ")));
  EXPECT_EQ(refused({.first = 1}),
            std::pair(std::string("not enough memory: a part of model huge, 1,048,576 samples at a time, "),
                      std::string("use fewer ranks on this machine, more stages, ")));
}

/// A sound checkpoint of one number, whose manifest says this of its model.
std::string error_of_saved_model(const std::string& yaml, const std::string& height,
                                 const std::string& classes) {
  const testing::TemporaryDirectory directory;
  CheckpointState state;
  state.facts.parameters = {{"fc1.weight", {1}}};
  state.facts.model = {{"yaml", yaml},       {"channels", "1"}, {"height", height}, {"width", "65537"},
                       {"classes", classes}, {"set", "mnist"},  {"mean", "0"},      {"std", "1"}};
  state.facts.gradient_units.exponents = {-40};
  state.weights = {1};
  const std::string folder = save_checkpoint(Env::posix(), directory.path(), state);
  const std::string message = coded_error_of([&] { load_saved_model(folder); });
  return message.substr(0, 4) + message.substr(std::min(message.size(), message.rfind("step-00000000") + 13));
}

TEST(SavedModelTest, OneBeyondTheLimitsIsDamagedData) {
  const std::string large_kernel = "layers:\n  - conv2d: {out: 10, kernel: 1024}\n  - linear: classes\n",
                    damaged = "the network that it records is damaged: network: ";
  const auto expect = [](const std::string& message, const std::string& what) {
    EXPECT_TRUE(message.starts_with("65: : " + what)) << message;
  };
  expect(error_of_saved_model(large_kernel, "65536", "10"),
         damaged + "an input of 1x65536x65537 is not one to 16777216 numbers");
  expect(error_of_saved_model(large_kernel, "-3", "10"), "the manifest's model.height is -3");
  expect(error_of_saved_model(large_kernel, "0", "10"), "the manifest's model.height is 0, not 1 or more");
  expect(error_of_saved_model(large_kernel, "3", "99999999999"),
         "the manifest's model.classes is '99999999999', not a number");
  expect(error_of_saved_model(large_kernel, "3", "2147483647"),
         damaged + "2147483647 classes; expected 1 to 1048576");
  EXPECT_EQ(error_of_saved_model("layers: [relu, conf2d]\n", "3", "10").substr(0, 4), "65: ");
}

}  // namespace
}  // namespace lockstep::memory_need_test
