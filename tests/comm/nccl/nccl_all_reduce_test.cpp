// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What all-reduce over NCCL asks of the library, with a stand-in for it.
#include "comm/nccl/nccl.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "tests/comm/nccl/fake_nccl.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

namespace lockstep::testing {
namespace {

class NcclAllReduceTest : public ::testing::Test {
 protected:
  NcclAllReduceTest() { use_fake_nccl(nccl_); }

  static void with_all_reduce(const std::function<void(DeviceAllReduce&, Device&)>& body) {
    run_thread_ranks(1, [&](Communicator& comm) {
      const auto device = emulated::platform().make_device(0);
      const std::unique_ptr<DeviceAllReduce> all_reduce(lockstep_make_nccl_all_reduce(comm, *device));
      body(*all_reduce, *device);
    });
  }

  FakeNccl nccl_;
};

TEST_F(NcclAllReduceTest, NamesTheLibraryThatIsLoaded) {
  with_all_reduce([](DeviceAllReduce& all_reduce, Device& /*device*/) {
    EXPECT_EQ(all_reduce.name(), "NCCL 2.28.9");
    EXPECT_TRUE(all_reduce.on_stream());
  });
}

TEST_F(NcclAllReduceTest, ShareGpusFrom2_30OnWhereTheEnvironmentSaysSo) {
  constexpr const char* kName = "NCCL_MULTI_RANK_GPU_ENABLE";
  for (const int version : {22809, 22999, 23000, 23007}) {
    nccl_.version = version;
    unsetenv(kName);
    EXPECT_FALSE(lockstep_nccl_shares_gpus()) << version;
    setenv(kName, "0", 1);
    EXPECT_FALSE(lockstep_nccl_shares_gpus()) << version;
    setenv(kName, "1", 1);
    EXPECT_EQ(lockstep_nccl_shares_gpus(), version >= 23000) << version;
  }
  unsetenv(kName);
}

TEST_F(NcclAllReduceTest, MakesItsDeviceCurrentBeforeItConnects) {
  with_all_reduce([](DeviceAllReduce& /*all_reduce*/, Device& /*device*/) {});
  const auto calls = nccl_.calls();
  EXPECT_LT(std::find(calls.begin(), calls.end(), "device 0"),
            std::find(calls.begin(), calls.end(), "init 0 of 1"));
}

TEST_F(NcclAllReduceTest, SumsElementsInPlaceOnTheStream) {
  with_all_reduce([this](DeviceAllReduce& all_reduce, Device& device) {
    const auto stream = device.make_stream();
    const DeviceBuffer<std::int64_t> exact(device, 257);
    const DeviceBuffer<float> single(device, 31);
    all_reduce.all_reduce(*stream, exact.data(), exact.size());
    EXPECT_EQ(nccl_.calls().back(), "sum of 257 int64");
    EXPECT_EQ(static_cast<void*>(nccl_.stream), stream->native_handle());
    all_reduce.all_reduce(*stream, single.data(), single.size());
    EXPECT_EQ(nccl_.calls().back(), "sum of 31 float");
  });
}

TEST_F(NcclAllReduceTest, SumsFromOneBufferIntoAnotherWithoutACopy) {
  with_all_reduce([this](DeviceAllReduce& all_reduce, Device& device) {
    const auto stream = device.make_stream();
    const DeviceBuffer<std::int64_t> terms(device, 9), sums(device, 9);
    all_reduce.all_reduce_into(*stream, terms.data(), sums.data(), sums.size());
    EXPECT_EQ(nccl_.calls().back(), "sum of 9 int64, not in place");
    const DeviceBuffer<float> single(device, 3), result(device, 3);
    all_reduce.all_reduce_into(*stream, single.data(), result.data(), result.size());
    EXPECT_EQ(nccl_.calls().back(), "sum of 3 float, not in place");
  });
}

TEST_F(NcclAllReduceTest, ReturnsOnlyWhenTheWorkIsOnTheStream) {
  nccl_.polls_until_settled = 50;
  with_all_reduce([this](DeviceAllReduce& all_reduce, Device& device) {
    const auto stream = device.make_stream();
    const DeviceBuffer<float> data(device, 8);
    all_reduce.all_reduce(*stream, data.data(), data.size());
    EXPECT_EQ(nccl_.polls_left, 0);
  });
}

}  // namespace
}  // namespace lockstep::testing
