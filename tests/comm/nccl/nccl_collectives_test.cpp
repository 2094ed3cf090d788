// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the collectives over NCCL come to between ranks, with a stand-in for it that carries numbers.
#include "comm/nccl/nccl.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "tests/comm/device_checks.hpp"
#include "tests/comm/nccl/fake_nccl.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace lockstep::testing {
namespace {

void with_nccl_collectives(FakeNccl& nccl, int ranks,
                           const std::function<void(const CollectiveRank&)>& body) {
  use_fake_nccl(nccl);
  run_thread_ranks(ranks, [&](Communicator& comm) {
    const auto device = emulated::platform().make_device(0);
    const std::unique_ptr<DeviceCollectives> collectives(lockstep_make_nccl_collectives(comm, *device));
    body({comm, *device, *collectives});
  });
}

class NcclCollectivesTest : public ::testing::TestWithParam<std::tuple<DeviceCollectivesCase, int>> {};

TEST_P(NcclCollectivesTest, Holds) {
  const auto& [conformance, ranks] = GetParam();
  FakeNccl nccl;
  with_nccl_collectives(nccl, ranks, conformance.check);
}

INSTANTIATE_TEST_SUITE_P(Threads, NcclCollectivesTest,
                         ::testing::Combine(::testing::ValuesIn(device_collectives_cases()),
                                            ::testing::Values(1, 2, 3, 4, 8)),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + std::to_string(std::get<1>(param.param));
                         });

/// NCCL's own call where pieces are equal; sums to one rank each, in one group, where they are not.
TEST(NcclCollectivesCallsTest, UnequalPiecesAreAGroupOfSums) {
  FakeNccl nccl;
  with_nccl_collectives(nccl, 1, [&](const CollectiveRank& rank) {
    const auto stream = rank.device.make_stream();
    const DeviceBuffer<float> terms(rank.device, 6), mine(rank.device, 6);
    const std::vector<std::size_t> counts{6};
    rank.collectives.reduce_scatter(*stream, terms.data(), counts, mine.data());
    EXPECT_EQ(nccl.calls().back(), "reduce-scatter");
    EXPECT_EQ(static_cast<void*>(nccl.stream), stream->native_handle());
  });
  FakeNccl second;
  with_nccl_collectives(second, 2, [&](const CollectiveRank& rank) {
    const auto stream = rank.device.make_stream();
    const DeviceBuffer<std::int64_t> terms(rank.device, 3), mine(rank.device, 2);
    stream->fill_zero(terms.data(), terms.bytes());
    const std::vector<std::size_t> counts{1, 2};
    rank.collectives.reduce_scatter(*stream, terms.data(), counts, mine.data());
  });
  EXPECT_EQ(std::ranges::count(second.calls(), "reduce"), 4);
  EXPECT_EQ(std::ranges::count(second.calls(), "group"), 2);
}

TEST(NcclCollectivesCallsTest, ReturnOnlyWhenTheWorkIsOnTheStream) {
  FakeNccl nccl;
  nccl.polls_until_settled = 50;
  with_nccl_collectives(nccl, 1, [&](const CollectiveRank& rank) {
    const auto stream = rank.device.make_stream();
    const DeviceBuffer<std::byte> data(rank.device, 8);
    stream->fill_zero(data.data(), data.bytes());
    rank.collectives.replicate(*stream, data.data(), data.bytes(), 0);
    EXPECT_EQ(nccl.polls_left, 0);
  });
}

}  // namespace
}  // namespace lockstep::testing
