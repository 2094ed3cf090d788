// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep_nccl.so on a machine with NCCL and without a GPU.
#include "comm/nccl/nccl.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "kernels/platform.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

bool has_gpu() {
  try {
    return !cuda::platform().devices().empty();
  } catch (const DeviceError&) {
    return false;
  }
}

TEST(NcclPluginTest, LoadsWithNccl) {
  EXPECT_NO_THROW(load_nccl());
}

TEST(NcclPluginTest, WithoutAGpuItIsADeviceErrorThatCrossesTheLibrarysBorder) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  run_thread_ranks(1, [](Communicator& comm) {
    const auto device = emulated::platform().make_device(0);
    EXPECT_THROW(make_nccl_all_reduce(comm, *device), DeviceError);
  });
}

}  // namespace
}  // namespace lockstep::testing
