// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages over NCCL, with a stand-in for it that carries numbers between threads. (Whole pipelines: processes/.)
#include "comm/nccl/nccl.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/comm/nccl/fake_nccl.hpp"
#include "tests/support/held_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace lockstep::testing {
namespace {

std::unique_ptr<DeviceLink> make_link(Communicator& comm, Device& device) {
  const auto end = comm.rank() == 0 ? LinkEnd::kSender : LinkEnd::kReceiver;
  return std::unique_ptr<DeviceLink>(lockstep_make_nccl_link(comm, device, end));
}

/// One rank with its end of a link, a buffer and a stream.
struct LinkRank {
  explicit LinkRank(Communicator& ranks)
      : comm(ranks),
        link(make_link(ranks, device)),
        stream(device.make_stream()),
        ready(device.make_event()) {}

  std::unique_ptr<PendingCollective> start(const DeviceBuffer<float>& values) {
    stream->record(*ready);
    const auto bytes = std::span(reinterpret_cast<std::byte*>(values.data()), values.bytes());
    return comm.rank() == 0 ? link->start_send(*ready, bytes) : link->start_receive(*ready, bytes);
  }

  Communicator& comm;
  HeldDevice held_device;
  Device& device = held_device;
  std::unique_ptr<DeviceLink> link;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> ready;
};

class NcclLinkTest : public ::testing::Test {
 protected:
  NcclLinkTest() { use_fake_nccl(nccl_); }
  FakeNccl nccl_;
};

TEST_F(NcclLinkTest, CarriesMessagesOfAnySizeInOrder) {
  run_thread_ranks(2, [](Communicator& comm) {
    LinkRank rank(comm);
    EXPECT_EQ(rank.link->name(), "NCCL 2.28.9");
    for (const std::size_t count : {1, 1000, 7, 200'000}) {
      std::vector<float> values(count), arrived(count);
      std::iota(values.begin(), values.end(), static_cast<float>(count));
      const DeviceBuffer<float> buffer(rank.device, count);
      if (comm.rank() == 0) rank.stream->copy_to_device(buffer.data(), values.data(), buffer.bytes());
      comm.wait(*rank.start(buffer), "a message");
      rank.stream->copy_to_host(arrived.data(), buffer.data(), buffer.bytes());
      EXPECT_EQ(arrived, values);
    }
  });
}

/// A first message may wait for its other end within the call: links are made with it.
TEST_F(NcclLinkTest, IsConnectedWhenItIsMade) {
  run_thread_ranks(2, [](Communicator& comm) { const LinkRank rank(comm); });
  for (const char* call : {"init 0 of 2", "init 1 of 2", "send", "receive"})
    EXPECT_TRUE(nccl_.called(call)) << call;
  EXPECT_EQ(nccl_.calls().back(), "destroy");
}

TEST_F(NcclLinkTest, AMessageIsThereWhenNcclAndThenTheStreamAreDoneWithIt) {
  run_thread_ranks(2, [&](Communicator& comm) {
    LinkRank rank(comm);
    const DeviceBuffer<float> buffer(rank.device, 10);
    comm.barrier();
    nccl_.polls_until_settled = 2;
    comm.barrier();
    rank.held_device.held = true;
    const auto message = rank.start(buffer);
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(message->test());
    rank.held_device.held = false;
    EXPECT_TRUE(message->test());
  });
}

TEST_F(NcclLinkTest, ARankThatNcclMissesIsAPeerLost) {
  run_thread_ranks(2, [&](Communicator& comm) {
    LinkRank rank(comm);
    const DeviceBuffer<float> buffer(rank.device, 10);
    const auto message = rank.start(buffer);
    comm.barrier();
    nccl_.failure = ncclRemoteError;
    comm.barrier();
    try {
      message->test();
      ADD_FAILURE() << "no error";
    } catch (const PeerLostError& error) {
      EXPECT_NE(std::string(error.what()).find("remote process exited"), std::string::npos) << error.what();
    }
    comm.barrier();
  });
  EXPECT_TRUE(nccl_.called("abort"));
}

}  // namespace
}  // namespace lockstep::testing
