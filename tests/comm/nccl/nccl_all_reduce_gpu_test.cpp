// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// NCCL with one rank, which launches none of its kernels; and between ranks that share a GPU, where NCCL allows it.
#include "comm/nccl/nccl.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "tests/comm/device_checks.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

namespace lockstep::testing {
namespace {

constexpr const char* kNotShared = "needs NCCL 2.30 or newer and NCCL_MULTI_RANK_GPU_ENABLE=1";

void on_gpu(const std::function<void(const DeviceRank&)>& check, int ranks = 1) {
  run_thread_ranks(ranks, [&](Communicator& comm) {
    const auto device = cuda::platform().make_device(0);
    const auto all_reduce = make_nccl_all_reduce(comm, *device);
    check({comm, *device, *all_reduce});
  });
}

class NcclAllReduceTest : public ::testing::TestWithParam<DeviceAllReduceCase> {};

TEST_P(NcclAllReduceTest, Holds) {
  on_gpu(GetParam().check);
}

INSTANTIATE_TEST_SUITE_P(Nccl, NcclAllReduceTest, ::testing::ValuesIn(device_all_reduce_cases()),
                         [](const auto& param) { return param.param.name; });

TEST(NcclAllReduceGpuTest, IsWorkOnAStreamAndNamesTheLibrary) {
  on_gpu([](const DeviceRank& rank) {
    EXPECT_TRUE(rank.all_reduce.on_stream());
    EXPECT_EQ(rank.all_reduce.name().substr(0, 7), "NCCL 2.") << rank.all_reduce.name();
  });
}

TEST(NcclAllReduceGpuTest, HoldsBetweenRanksThatShareAGpu) {
  if (!nccl_shares_gpus()) GTEST_SKIP() << kNotShared;
  for (const int ranks : {2, 3, 4}) {
    for (const DeviceAllReduceCase& conformance : device_all_reduce_cases()) {
      SCOPED_TRACE(std::string(conformance.name) + " on " + std::to_string(ranks));
      on_gpu(conformance.check, ranks);
    }
  }
}

void expect_sums_of_a_graph(const DeviceRank& rank) {
  const auto main = rank.device.make_stream(), beside = rank.device.make_stream();
  const auto fork = rank.device.make_event(), join = rank.device.make_event();
  const PinnedBuffer<std::int64_t> sent(rank.device, 1000), received(rank.device, 1000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::int64_t>(i * i);
  const DeviceBuffer<std::int64_t> data(rank.device, sent.size());
  main->begin_capture();
  main->copy_to_device(data.data(), sent.data(), sent.bytes());
  main->record(*fork);
  beside->wait(*fork);
  rank.all_reduce.all_reduce(*beside, data.data(), data.size());
  beside->record(*join);
  main->wait(*join);
  main->copy_to_host(received.data(), data.data(), data.bytes());
  const std::unique_ptr<Graph> graph = main->end_capture();
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t& value : received.span()) value = -1;
    main->launch(*graph);
    main->synchronize();
    for (std::size_t i = 0; i < sent.size(); ++i)
      ASSERT_EQ(received[i], sent[i] * rank.comm.size()) << "round " << round;
  }
}

TEST(NcclAllReduceGpuTest, IsCapturedInAGraphWithASecondStream) {
  on_gpu(expect_sums_of_a_graph);
}

TEST(NcclAllReduceGpuTest, IsCapturedInAGraphOnEveryRankThatSharesAGpu) {
  if (!nccl_shares_gpus()) GTEST_SKIP() << kNotShared;
  for (const int ranks : {2, 3, 4}) on_gpu(expect_sums_of_a_graph, ranks);
}

}  // namespace
}  // namespace lockstep::testing
