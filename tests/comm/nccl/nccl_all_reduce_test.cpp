// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce and messages between GPUs, over a stand-in for NCCL.
#include "comm/nccl/nccl.hpp"
#include "comm/nccl/nccl_communicator.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "kernels/device_buffer.hpp"
#include "tests/comm/device_checks.hpp"
#include "tests/comm/nccl/fake_nccl.hpp"
#include "tests/support/held_device.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

// Calls of all-reduce over NCCL to the library, with a stand-in for it.

class NcclAllReduceTest : public ::testing::Test {
 protected:
  NcclAllReduceTest() { use_fake_nccl(nccl_); }

  static void with_all_reduce(const std::function<void(DeviceAllReduce&, Device&)>& body,
                              std::chrono::milliseconds patience = std::chrono::minutes(1)) {
    run_thread_ranks(
        1,
        [&](Communicator& comm) {
          const auto device = emulated::platform().make_device(0);
          const std::unique_ptr<DeviceAllReduce> all_reduce(lockstep_make_nccl_all_reduce(comm, *device));
          body(*all_reduce, *device);
        },
        patience);
  }

  FakeNccl nccl_;
};

TEST_F(NcclAllReduceTest, NamesTheLibraryThatIsLoadedAndMakesItsDeviceCurrentBeforeItConnects) {
  with_all_reduce([](DeviceAllReduce& all_reduce, Device& /*device*/) {
    EXPECT_EQ(all_reduce.name(), "NCCL 2.28.9");
    EXPECT_TRUE(all_reduce.on_stream());
  });
  const auto calls = nccl_.calls();
  EXPECT_LT(std::ranges::find(calls, "device 0"), std::ranges::find(calls, "init 0 of 1"));
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

TEST_F(NcclAllReduceTest, SumsElementsOnTheStreamInPlaceOrIntoAnotherBufferWithoutACopy) {
  with_all_reduce([this](DeviceAllReduce& all_reduce, Device& device) {
    const auto stream = device.make_stream();
    const DeviceBuffer<std::int64_t> exact(device, 257), exact_sums(device, 257);
    const DeviceBuffer<float> single(device, 31), single_sums(device, 31);
    all_reduce.all_reduce(*stream, exact.data(), 257);
    EXPECT_EQ(nccl_.calls().back(), "sum of 257 int64");
    EXPECT_EQ(static_cast<void*>(nccl_.stream), stream->native_handle());
    all_reduce.all_reduce(*stream, single.data(), 31);
    EXPECT_EQ(nccl_.calls().back(), "sum of 31 float");
    all_reduce.all_reduce_into(*stream, exact.data(), exact_sums.data(), 9);
    EXPECT_EQ(nccl_.calls().back(), "sum of 9 int64, not in place");
    all_reduce.all_reduce_into(*stream, single.data(), single_sums.data(), 3);
    EXPECT_EQ(nccl_.calls().back(), "sum of 3 float, not in place");
  });
}

TEST_F(NcclAllReduceTest, ACheckThrowsWhatHasFailedSince) {
  with_all_reduce([this](DeviceAllReduce& all_reduce, Device& /*device*/) {
    EXPECT_NO_THROW(all_reduce.check());
    nccl_.failure = ncclRemoteError;
    expect_error<NcclError>([&] { all_reduce.check(); }, {"remote process exited"});
  });
  EXPECT_EQ(nccl_.calls().back(), "abort");
}

TEST_F(NcclAllReduceTest, ReturnsWhenTheWorkIsOnTheStreamAndAStartThatDoesNotComeIsAPeerLost) {
  const auto sum = [this](int polls) {
    return [this, polls](DeviceAllReduce& all_reduce, Device& device) {
      const auto stream = device.make_stream();
      const DeviceBuffer<float> data(device, 8);
      nccl_.polls_until_settled = polls;
      all_reduce.all_reduce(*stream, data.data(), data.size());
      EXPECT_EQ(nccl_.polls_left, 0);
    };
  };
  with_all_reduce(sum(50));
  expect_error<PeerLostError>([&] { with_all_reduce(sum(FakeNccl::kNever), std::chrono::milliseconds(100)); },
                              {"the start of an all-reduce over NCCL"});
}

// Messages over NCCL. (What they carry, and in which order: processes/.)

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

class NcclLinkTest : public NcclAllReduceTest {};

/// A first message may wait for its other end within the call: links are made with it.
TEST_F(NcclLinkTest, IsConnectedWhenItIsMade) {
  nccl_.polls_until_settled = 3;
  run_thread_ranks(2, [&](Communicator& comm) {
    const LinkRank rank(comm);
    EXPECT_EQ(rank.link->name(), "NCCL 2.28.9");
    comm.barrier();
    EXPECT_EQ(nccl_.polls_left, 0);
    comm.barrier();
  });
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 17, 0)
  const std::string blocks = ", blocks: 4";
#else
  const std::string blocks;
#endif
  for (const std::string& call : {"init 0 of 2" + blocks, "init 1 of 2" + blocks, std::string("device 0"),
                                  std::string("send 1 to 1"), std::string("receive 1 from 0")})
    EXPECT_TRUE(nccl_.called(call)) << call;
  EXPECT_EQ(nccl_.calls().back(), "destroy");
}

TEST_F(NcclLinkTest, IsBetweenTwoRanks) {
  EXPECT_THROW(run_thread_ranks(1, [](Communicator& comm) { const LinkRank rank(comm); }), InternalError);
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
    expect_error<PeerLostError>([&] { message->test(); }, {"remote process exited"});
    comm.barrier();
    nccl_.failure = ncclInternalError;
    comm.barrier();
    expect_error<NcclError>([&] { message->test(); }, {"please report this"});
    comm.barrier();
  });
  EXPECT_TRUE(nccl_.called("abort"));
}

}  // namespace
}  // namespace lockstep::testing
