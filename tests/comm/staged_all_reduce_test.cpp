// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce through host memory between threads, which share one device.
#include "comm/staged/staged.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/comm/device_checks.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

class StagedAllReduceTest : public ::testing::TestWithParam<std::tuple<DeviceAllReduceCase, int>> {};

TEST_P(StagedAllReduceTest, Holds) {
  const auto& [conformance, ranks] = GetParam();
  run_thread_ranks(ranks, [check = conformance.check](Communicator& comm) {
    const auto device = test::platform_under_test().make_device(0);
    const auto all_reduce = make_staged_all_reduce(comm, *device);
    check({comm, *device, *all_reduce});
  });
}

INSTANTIATE_TEST_SUITE_P(Threads, StagedAllReduceTest,
                         ::testing::Combine(::testing::ValuesIn(device_all_reduce_cases()),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + std::to_string(std::get<1>(param.param));
                         });

TEST(StagedAllReduceErrorTest, MissingRankIsAPeerLost) {
  const auto one_never_comes = [](Communicator& comm) {
    const auto device = test::platform_under_test().make_device(0);
    const auto stream = device->make_stream();
    const auto all_reduce = make_staged_all_reduce(comm, *device);
    const DeviceBuffer<float> data(*device, 10);
    if (comm.rank() == 0) all_reduce->all_reduce(*stream, data.data(), data.size());
  };
  expect_error<PeerLostError>([&] { run_thread_ranks(2, one_never_comes, std::chrono::milliseconds(50)); },
                              {"gradients' all-reduce"});
}

TEST(StagedAllReduceNameTest, SaysOverWhatItGoes) {
  run_thread_ranks(2, [](Communicator& comm) {
    const auto device = test::platform_under_test().make_device(0);
    const auto all_reduce = make_staged_all_reduce(comm, *device);
    EXPECT_EQ(all_reduce->name(), "thread through pinned memory");
    EXPECT_FALSE(all_reduce->on_stream());
  });
}

}  // namespace
}  // namespace lockstep::testing
