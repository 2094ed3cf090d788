// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Over NCCL itself, on a GPU.
#include "comm/nccl/nccl.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/platform.hpp"
#include "tests/comm/device_checks.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {

// NCCL with one rank, which launches none of its kernels, and between ranks that share a GPU, where allowed.

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

// Messages over NCCL between two GPUs, or between two ranks that share one, in turns.

constexpr std::size_t kNumbers = 500'000;
constexpr int kExchanges = 20;

std::vector<float> message_of(int rank, int message) {
  std::vector<float> values(kNumbers);
  std::iota(values.begin(), values.end(), static_cast<float>(1000 * rank + message));
  return values;
}

/// Messages go one at a time: one that is started may block its GPU until its other end
/// starts.
TEST(NcclLinkGpuTest, CarriesMessagesBothWays) {
  const auto gpus = static_cast<int>(cuda::platform().devices().size());
  if (gpus < 2 && !nccl_shares_gpus())
    GTEST_SKIP() << "needs two GPUs, or NCCL 2.30 or newer and NCCL_MULTI_RANK_GPU_ENABLE=1";
  run_thread_ranks(2, [gpus](Communicator& comm) {
    const auto device = cuda::platform().make_device(comm.rank() % gpus);
    std::unique_ptr<DeviceLink> there, back;
    there = make_nccl_link(comm, *device, comm.rank() == 0 ? LinkEnd::kSender : LinkEnd::kReceiver);
    back = make_nccl_link(comm, *device, comm.rank() == 1 ? LinkEnd::kSender : LinkEnd::kReceiver);
    DeviceLink& out = comm.rank() == 0 ? *there : *back;
    DeviceLink& in = comm.rank() == 0 ? *back : *there;
    const auto stream = device->make_stream();
    const auto ready = device->make_event(), copied = device->make_event();
    const DeviceBuffer<float> leaving(*device, kNumbers), arriving(*device, kNumbers);
    for (int message = 0; message < kExchanges; ++message) {
      const auto mine = message_of(comm.rank(), message);
      std::vector<float> theirs(kNumbers);
      stream->copy_to_device(leaving.data(), mine.data(), leaving.bytes());
      stream->record(*ready);
      const auto send = [&] {
        const auto bytes = std::as_bytes(std::span(leaving.data(), kNumbers));
        comm.wait(*out.start_send(*ready, bytes), "a message from this GPU");
      };
      if (comm.rank() == 0) send();
      const auto bytes = std::as_writable_bytes(std::span(arriving.data(), kNumbers));
      comm.wait(*in.start_receive(*ready, bytes), "a message to this GPU");
      if (comm.rank() == 1) send();
      stream->copy_to_host(theirs.data(), arriving.data(), arriving.bytes());
      stream->synchronize();
      ASSERT_EQ(theirs, message_of(1 - comm.rank(), message)) << message;
    }
  });
}

}  // namespace

}  // namespace lockstep::testing
