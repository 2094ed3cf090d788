// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages over NCCL between two GPUs, or between two ranks that share one, in turns.
#include "comm/nccl/nccl.hpp"
#include "comm/thread/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

namespace lockstep::testing {
namespace {

constexpr std::size_t kNumbers = 500'000;
constexpr int kExchanges = 20;

std::vector<float> message_of(int rank, int message) {
  std::vector<float> values(kNumbers);
  std::iota(values.begin(), values.end(), static_cast<float>(1000 * rank + message));
  return values;
}

/// A message that is started may keep its GPU from everything else until its other end has started, so one goes at a
/// time.
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
