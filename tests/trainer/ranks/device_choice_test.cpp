// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What `device: auto` takes on machines whose GPUs are missing, hidden, too old or too few.
#include "trainer/ranks/device_choice.hpp"

#include "comm/agreement.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "kernels/emulation/built_for.hpp"
#include "tests/support/fake_gpu.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

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

DeviceChoice choice_alone(const FakePlatform& gpus) {
  DeviceChoice choice;
  run_thread_ranks(1, [&](Communicator& comm) { choice = choose_device(section("auto"), comm, gpus); });
  return choice;
}

TEST(ChooseDeviceTest, AutoTakesAGpuThatCanBeUsed) {
  const DeviceChoice choice = choice_alone(usable(1));
  EXPECT_EQ(choice.kind, "cuda");
  EXPECT_EQ(choice.remark, "");
}

TEST(ChooseDeviceTest, AutoTakesTheCpuWhereTheProgramHasNoKernelsForTheGpuAndSaysWhy) {
  const DeviceChoice choice = choice_alone({1, nullptr, kTooOld});
  EXPECT_EQ(choice.kind, "cpu");
  EXPECT_EQ(choice.remark, std::string("no GPU is used: ") + kTooOld);
}

TEST(ChooseDeviceTest, AutoTakesTheCpuWhereTheDriverIsTooOldAndSaysWhy) {
  const auto old = std::make_exception_ptr(DeviceError("the NVIDIA driver is too old"));
  const DeviceChoice choice = choice_alone({0, old, ""});
  EXPECT_EQ(choice.kind, "cpu");
  EXPECT_EQ(choice.remark, "no GPU is used: the NVIDIA driver is too old");
}

TEST(ChooseDeviceTest, AutoSaysNothingWhereThereIsNoGpu) {
  const auto none = std::make_exception_ptr(NoGpuError("this machine has no NVIDIA driver"));
  const DeviceChoice choice = choice_alone({0, none, ""});
  EXPECT_EQ(choice.kind, "cpu");
  EXPECT_EQ(choice.remark, "");
}

TEST(ChooseDeviceTest, AutoTakesTheCpuOnAllRanksWhereMoreRanksThanGpusCannotUseThem) {
  run_thread_ranks(3, [](Communicator& comm) {
    const DeviceChoice choice = choose_device(section("auto"), comm, FakePlatform(2, nullptr, kTooOld));
    EXPECT_EQ(choice.kind, "cpu");
  });
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

TEST(ChooseDeviceTest, AutoIsRefusedWhereOnlySomeRanksCanUseTheirGpu) {
  const std::string text = refusal(section("auto"), 2);
  for (const char* part : {"other ranks have a GPU", kTooOld, "parallel.device=cpu"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST(ChooseDeviceTest, WhatIsDemandedIsRefusedWithTheReason) {
  EXPECT_NE(refusal(section("cuda"), 0).find(kTooOld), std::string::npos);
  EXPECT_NE(refusal(section("auto", "nccl"), 0).find(kTooOld), std::string::npos);
  EXPECT_NE(refusal(section("auto", "nccl"), 1).find(kTooOld), std::string::npos);
}

/// The real probe, on a device that stands in for one of another architecture.
TEST(ChooseDeviceTest, ADeviceIsNotMadeWithoutKernelsForIt) {
  emulated::set_built_for_this_device(false);
  std::string text;
  try {
    emulated::platform().make_device(0);
  } catch (const DeviceError& error) {
    text = error.what();
  }
  emulated::set_built_for_this_device(true);
  for (const char* part : {"GPU 0 (Emulated GPU, compute capability 8.0)", "cudaErrorNoKernelImageForDevice",
                           "CMAKE_CUDA_ARCHITECTURES"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  EXPECT_NE(emulated::platform().make_device(0), nullptr);
}

}  // namespace
}  // namespace lockstep
