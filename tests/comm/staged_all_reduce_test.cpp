// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce through host memory between threads, which share one device.
#include "comm/staged/staged.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/comm/device_checks.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/late_device.hpp"
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

/// Notes in `said` when a sum starts, s, and when it is asked for, t.
class TalkingSums final : public test::ForwardingCommunicator, private AllReduce {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;

  AllReduce& host_all_reduce() override { return *this; }
  std::string said;

 private:
  std::unique_ptr<PendingCollective> start(std::span<const std::int64_t> mine,
                                           std::span<std::int64_t> sum) override {
    said += 's';
    return std::make_unique<PendingWork>(
        [this, pending = std::shared_ptr(comm_.host_all_reduce().start(mine, sum))] {
          said += 't';
          return pending->test();
        });
  }
  std::unique_ptr<PendingCollective> start(std::span<float> data) override {
    return comm_.host_all_reduce().start(data);
  }
};

/// Fills device memory, which is the host's.
void fill(const DeviceBuffer<std::int64_t>& buffer, std::int64_t value) {
  std::fill_n(buffer.data(), buffer.size(), value);
}

bool is_all(const DeviceBuffer<std::int64_t>& buffer, std::int64_t value) {
  return std::all_of(buffer.data(), buffer.data() + buffer.size(),
                     [&](std::int64_t x) { return x == value; });
}

TEST(StagedAllReduceOrderTest, CallsOnTwoStreamsWaitForEachOthersCopiesHoweverLate) {
  constexpr std::size_t kCount = 200'000;  // more than one piece
  run_thread_ranks(2, [](Communicator& comm) {
    test::LateDevice late;
    Device& device = late;
    const auto all_reduce = make_staged_all_reduce(comm, device);
    const auto first = device.make_stream(), second = device.make_stream();
    const DeviceBuffer<std::int64_t> a(device, kCount), b(device, kCount), twice_as_long(device, 2 * kCount);
    fill(a, 1 + comm.rank());
    fill(b, 10 + comm.rank());
    fill(twice_as_long, 100 + comm.rank());
    all_reduce->all_reduce(*first, a.data(), a.size());
    all_reduce->all_reduce(*second, b.data(), b.size());
    all_reduce->all_reduce(*first, twice_as_long.data(), twice_as_long.size());
    late.run_all();
    EXPECT_TRUE(is_all(a, 3));
    EXPECT_TRUE(is_all(b, 21));
    EXPECT_TRUE(is_all(twice_as_long, 201));
    EXPECT_EQ(late.most_pinned(), twice_as_long.bytes()) << "beside the memory that it replaces";
  });
}

TEST(StagedAllReduceOrderTest, APieceIsSummedWhileTheNextOneIsCopied) {
  run_thread_ranks(2, [](Communicator& comm) {
    test::LateDevice late;
    Device& device = late;
    TalkingSums talking(comm);
    const auto all_reduce = make_staged_all_reduce(talking, device);
    const auto stream = device.make_stream();
    const DeviceBuffer<std::int64_t> data(device, 400'000);  // 3.2 MB
    fill(data, 1);
    all_reduce->all_reduce(*stream, data.data(), data.size());
    late.run_all();
    EXPECT_TRUE(is_all(data, 2));
    EXPECT_EQ(talking.said.substr(0, 3), "sts") << "the first sum is asked for before the second one starts";
    const auto pieces = std::ranges::count(talking.said, 's');
    EXPECT_TRUE(pieces > 1 && pieces < 10) << pieces;
  });
}

}  // namespace
}  // namespace lockstep::testing
