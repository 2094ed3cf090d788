// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Choice of `device: auto` on machines whose GPUs are missing, hidden, too old or too few.
#include "trainer/ranks/device_choice.hpp"

#include "comm/agreement.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "kernels/emulation/order.hpp"
#include "tests/support/fake_gpu.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "trainer/device/device_name.hpp"
#include "trainer/device/gpu_choice.hpp"

namespace lockstep {
namespace {

constexpr const char* kTooOld =
    "GPU 0 (Tesla V100, compute capability 7.0) cannot run this program's kernels";

ParallelSection section(const std::string& device, const std::string& backend = "auto") {
  ParallelSection parallel;
  parallel.device = device;
  parallel.backend = backend;
  return parallel;
}

FakePlatform usable(int visible) {
  return {visible, nullptr, ""};
}

TEST(ChooseDeviceTest, AutoTakesAGpuThatCanBeUsedOrTheCpuAndSaysWhy) {
  const auto old = std::make_exception_ptr(DeviceError("the NVIDIA driver is too old"));
  const auto none = std::make_exception_ptr(NoGpuError("this machine has no NVIDIA driver"));
  struct Machine {
    FakePlatform gpus;
    std::string kind, remark;
  };
  const Machine machines[] = {
      {usable(1), "cuda", ""},
      {{1, nullptr, kTooOld}, "cpu", std::string("no GPU is used: ") + kTooOld},
      {{0, old, ""}, "cpu", "no GPU is used: the NVIDIA driver is too old"},
      {{0, none, ""}, "cpu", ""},
  };
  run_thread_ranks(1, [&](Communicator& comm) {
    for (const Machine& machine : machines) {
      const DeviceChoice choice = choose_device(section("auto"), comm, machine.gpus);
      EXPECT_EQ(choice.kind, machine.kind) << machine.remark;
      EXPECT_EQ(choice.remark, machine.remark);
    }
  });
}

TEST(ChooseDeviceTest, AutoTakesTheCpuOnAllRanksWhereMoreRanksThanGpusCannotUseThem) {
  run_thread_ranks(3, [](Communicator& comm) {
    EXPECT_EQ(choose_device(section("auto"), comm, FakePlatform(2, nullptr, kTooOld)).kind, "cpu");
  });
}

/// Two GPUs; it says which was made last.
class NotingPlatform final : public FakePlatform {
 public:
  NotingPlatform() : FakePlatform(2, nullptr, "") {}
  std::unique_ptr<Device> make_device(int index) const override {
    made = index;
    return FakePlatform::make_device(index);
  }

  mutable int made = -1;
};

TEST(ChooseDeviceTest, EachRankTriesTheGpuOfItsNumberAndWithTooFewAny) {
  run_thread_ranks(3, [](Communicator& comm) {
    const NotingPlatform two;
    const GpuProblem none = gpu_problem(two, comm);
    EXPECT_EQ(two.made, comm.rank() == 1 ? 1 : 0) << comm.rank();
    EXPECT_EQ(none.text, "") << comm.rank();
    EXPECT_FALSE(none.is_worth_a_word);
    const DeviceChoice choice = choose_device(section("cuda", "mpi"), comm, usable(3));
    const std::string number = std::to_string(comm.rank());
    EXPECT_EQ(choice.gpu->device->properties().uuid, "GPU-" + number);
    EXPECT_EQ(choice.kind, "cuda");
    EXPECT_EQ(choice.backend, "thread");
    EXPECT_EQ(choice.communication, "gradients: thread through pinned memory");
    EXPECT_EQ(choice.remark, "");
  });
}

TEST(ChooseDeviceTest, VendorsKernelsAreNotForTheEmulator) {
  run_thread_ranks(1, [](Communicator& comm) {
    ParallelSection parallel = section("emulated");
    EXPECT_EQ(choose_device(parallel, comm).kind, "emulated");
    parallel.kernels = Kernels::kVendor;
    expect_error<AgreedError>([&] { choose_device(parallel, comm); },
                              {"vendor needs a GPU, and this device is emulated"});
    parallel.device = "gpu";
    EXPECT_EQ(message_of<ConfigError>([&] { choose_device(parallel, comm); }),
              "'gpu' is not a device: auto, cpu, cuda, cuda:N or emulated");
  });
}

TEST(ChooseDeviceTest, VerdictsOnARankNameItsDevice) {
  run_thread_ranks(1, [](Communicator& comm) {
    for (const char* device : {"emulated", "cpu"}) {
      const DeviceChoice choice = choose_device(section(device), comm);
      EXPECT_NE(choice.description, "") << device;
      EXPECT_EQ(comm.activity().device.get(), choice.description);
    }
  });
}

TEST(ChooseDeviceTest, Int16IsForCpus) {
  for (const char* device : {"auto", "cpu"})
    EXPECT_EQ(for_precision(section(device), Precision::kInt16).device, "cpu");
  EXPECT_EQ(for_precision(section("auto"), Precision::kFp32).device, "auto");
  EXPECT_EQ(message_of<ConfigError>([] { for_precision(section("cuda:1"), Precision::kInt16); }),
            "cuda:1 has no train.precision int16; use cpu, or a run in fp32");
}

TEST(DeviceNameTest, Table) {
  const std::vector<std::tuple<const char*, DeviceKind, std::optional<int>>> names = {
      {"auto", DeviceKind::kAuto, {}},      {"cpu", DeviceKind::kCpu, {}},
      {"cuda", DeviceKind::kCuda, {}},      {"emulated", DeviceKind::kEmulated, {}},
      {"cuda:0", DeviceKind::kCuda, 0},     {"cuda:7", DeviceKind::kCuda, 7},
      {"cuda:999", DeviceKind::kCuda, 999},
  };
  for (const auto& [text, kind, index] : names) {
    const auto name = parse_device_name(text);
    ASSERT_TRUE(name) << text;
    EXPECT_EQ(name->kind, kind) << text;
    EXPECT_EQ(name->index, index) << text;
  }
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1000", "cuda:1x", "cpu:0"})
    EXPECT_FALSE(parse_device_name(text)) << text;
}

/// The code that all three ranks end with, and what the first one to speak says.
std::string refusal(const ParallelSection& parallel, int usable_ranks) {
  std::atomic<int> refused = 0;
  std::string text;
  run_thread_ranks(3, [&](Communicator& comm) {
    const FakePlatform gpus = comm.rank() < usable_ranks ? usable(3) : FakePlatform(3, nullptr, kTooOld);
    try {
      choose_device(parallel, comm, gpus);
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), ExitCode::kDeviceUnavailable);
      ++refused;
      if (comm.rank() == error.speaker()) text = error.what();
    }
  });
  EXPECT_EQ(refused, 3);
  return text;
}

TEST(ChooseDeviceTest, AutoIsRefusedWhereOnlySomeRanksCanUseTheirGpuAndWhatIsDemandedWithTheReason) {
  test::expect_words(refusal(section("auto"), 1), {"other ranks have a GPU", kTooOld, "parallel.device=cpu"});
  test::expect_words(refusal(section("cuda"), 0), {kTooOld});
  for (const int usable_ranks : {0, 1})
    test::expect_words(refusal(section("auto", "nccl"), usable_ranks), {kTooOld});
}

/// The real probe, on a device that stands in for one of another architecture.
TEST(ChooseDeviceTest, ADeviceIsNotMadeWithoutKernelsForIt) {
  emulated::set_built_for_this_device(false);
  const std::string text = test::error_of<DeviceError>([] { emulated::platform().make_device(0); });
  emulated::set_built_for_this_device(true);
  test::expect_words(text, {"GPU 0 (Emulated GPU, compute capability 8.0)", "cudaErrorNoKernelImageForDevice",
                            "CMAKE_CUDA_ARCHITECTURES"});
  EXPECT_NE(emulated::platform().make_device(0), nullptr);
}

TEST(ChooseDeviceTest, ASearchThatFindsNothingSaysWhichDevicesAreVisible) {
  const test::SetVariable hidden("CUDA_VISIBLE_DEVICES", "-1");
  emulated::set_visible(false);
  expect_error<NoGpuError>([] { emulated::platform().devices(); },
                           {"no GPU is visible: CUDA_VISIBLE_DEVICES is '-1'"});
  emulated::set_visible(true);
  EXPECT_EQ(emulated::platform().devices().size(), 1U);
}

constexpr int kRefused = -1;
constexpr std::nullopt_t kAny = std::nullopt;

struct Row {
  int local_rank, local_size, visible;
  std::optional<int> requested;
  int expected;
};

int choice(const Row& row) {
  try {
    return choose_gpu(row.local_rank, row.local_size, row.visible, row.requested);
  } catch (const DeviceError&) {
    return kRefused;
  }
}

TEST(ChooseGpuTest, Table) {
  const std::vector<Row> rows = {
      // as many GPUs as ranks, or more: the local rank
      {0, 1, 1, kAny, 0},
      {0, 1, 8, kAny, 0},
      {0, 2, 2, kAny, 0},
      {1, 2, 2, kAny, 1},
      {7, 8, 8, kAny, 7},
      {2, 3, 8, kAny, 2},
      // one: --gpus-per-task=1, or a GPU that all share
      {0, 2, 1, kAny, 0},
      {1, 2, 1, kAny, 0},
      {7, 8, 1, kAny, 0},
      // some, but too few: never wrapped around, and no rank is let through
      {0, 3, 2, kAny, kRefused},
      {1, 3, 2, kAny, kRefused},
      {2, 3, 2, kAny, kRefused},
      {0, 8, 7, kAny, kRefused},
      {7, 8, 7, kAny, kRefused},
      // the job names one: every rank of the host takes it
      {0, 1, 4, 3, 3},
      {0, 4, 4, 2, 2},
      {3, 4, 4, 2, 2},
      {2, 3, 2, 1, 1},
      {0, 1, 1, 0, 0},
      // one that is not there
      {0, 1, 1, 1, kRefused},
      {0, 1, 1, 3, kRefused},
      {0, 4, 4, 4, kRefused},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(choice(row), row.expected)
        << "local rank " << row.local_rank << " of " << row.local_size << ", " << row.visible
        << " visible, requested " << row.requested.value_or(-1);
  }
}

TEST(ChooseGpuTest, WithAGpuForEachRankAllGpusDiffer) {
  for (int size = 1; size <= 16; ++size) {
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(choose_gpu(rank, size, size, std::nullopt), rank);
  }
}

std::string refusal(int local_size, int visible, std::optional<int> requested) {
  return message_of<DeviceError>([&] { choose_gpu(0, local_size, visible, requested); });
}

TEST(ChooseGpuTest, TooFewGpusNamesTheLaunchersOptions) {
  EXPECT_EQ(refusal(4, 2, std::nullopt),
            "4 ranks on this host see 2 GPUs: start at most 2 a host (mpirun --map-by ppr:2:node, srun "
            "--ntasks-per-node=2), or give each rank a GPU of its own (srun --gpus-per-task=1)");
}

TEST(ChooseGpuTest, WithoutAGpuOrARankOfTheHostThereIsNoChoice) {
  for (const auto& [local_rank, local_size, visible] :
       {std::array{0, 1, 0}, std::array{-1, 1, 1}, std::array{1, 1, 2}})
    EXPECT_THROW(choose_gpu(local_rank, local_size, visible, std::nullopt), InternalError);
}

TEST(ChooseGpuTest, AGpuThatIsNotThereIsNamed) {
  test::expect_words(refusal(1, 1, 3), {"cuda:3", "1 GPU,", "CUDA_VISIBLE_DEVICES", "lockstep devices"});
}

}  // namespace
}  // namespace lockstep
