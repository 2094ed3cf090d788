// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The all-reduce's rounds, played through in memory for many numbers of ranks.
#include "comm/mpi/mpi_all_reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>

namespace lockstep {
namespace {

using Buffer = std::vector<std::int64_t>;

/// Ranks that send messages through queues, each as far as it can get, until nobody moves any more.
class Simulation {
 public:
  Simulation(int ranks, std::size_t count, std::size_t bytes_per_element) {
    for (int rank = 0; rank < ranks; ++rank) {
      rounds_.push_back(all_reduce_schedule(rank, ranks, count, bytes_per_element));
      buffers_.emplace_back(count);
      for (std::size_t i = 0; i < count; ++i) buffers_.back()[i] = static_cast<std::int64_t>(i) * 100 + rank;
    }
    next_.resize(rounds_.size());
    sent_.resize(rounds_.size());
  }

  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < rounds_.size(); ++rank) {
        while (step(rank)) moved = true;
      }
    }
  }

  bool all_done() const {
    for (std::size_t rank = 0; rank < rounds_.size(); ++rank) {
      if (next_[rank] != rounds_[rank].size()) return false;
    }
    return std::ranges::all_of(channels_, [](const auto& channel) { return channel.second.empty(); });
  }
  const std::vector<Buffer>& buffers() const { return buffers_; }

 private:
  bool step(std::size_t rank) {
    if (next_[rank] == rounds_[rank].size()) return false;
    const Exchange& round = rounds_[rank][next_[rank]];
    const auto peer = static_cast<std::size_t>(round.peer);
    Buffer& mine = buffers_[rank];
    if (!sent_[rank] && round.send.count > 0) {
      const auto from = mine.begin() + static_cast<std::ptrdiff_t>(round.send.offset);
      channels_[{rank, peer}].emplace_back(from, from + static_cast<std::ptrdiff_t>(round.send.count));
    }
    sent_[rank] = true;
    if (round.receive.count > 0 && !receive(channels_[{peer, rank}], round, mine)) return false;
    ++next_[rank];
    sent_[rank] = false;
    return true;
  }

  static bool receive(std::deque<Buffer>& channel, const Exchange& round, Buffer& mine) {
    if (channel.empty()) return false;
    EXPECT_EQ(channel.front().size(), round.receive.count);
    for (std::size_t i = 0; i < round.receive.count; ++i) {
      std::int64_t& to = mine[round.receive.offset + i];
      to = channel.front()[i] + (round.add ? to : 0);
    }
    channel.pop_front();
    return true;
  }

  std::vector<std::vector<Exchange>> rounds_;
  std::vector<Buffer> buffers_;
  std::vector<std::size_t> next_;
  std::vector<bool> sent_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Buffer>> channels_;
};

class AllReduceScheduleTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(AllReduceScheduleTest, EveryRankEndsWithTheSum) {
  const std::size_t bytes_per_element = GetParam();
  for (int ranks = 1; ranks <= 20; ++ranks) {
    for (const std::size_t count : {0U, 1U, 2U, 7U, 64U, 101U}) {
      Simulation simulation(ranks, count, bytes_per_element);
      simulation.run();
      ASSERT_TRUE(simulation.all_done()) << ranks << " ranks, " << count << " elements";
      Buffer expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        expected[i] = static_cast<std::int64_t>(i) * 100 * ranks + ranks * (ranks - 1) / 2;
      }
      for (const Buffer& buffer : simulation.buffers()) ASSERT_EQ(buffer, expected) << ranks << " ranks";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DoublingAndHalving, AllReduceScheduleTest, ::testing::Values(8, kHalvingFromBytes));

TEST(AllReduceScheduleTest, SmallBufferTakesOneRoundForTwoRanks) {
  EXPECT_EQ(all_reduce_schedule(0, 2, 100, 8).size(), 1U);
}

TEST(AllReduceScheduleTest, LargeBufferIsSentOnceInAllByEachOfTwoRanks) {
  const auto rounds = all_reduce_schedule(1, 2, 1 << 20, 8);
  std::size_t sent = 0;
  for (const Exchange& round : rounds) sent += round.send.count;
  EXPECT_EQ(rounds.size(), 2U);
  EXPECT_EQ(sent, 1U << 20);
}

/// Ranks of a node are neighbours: between nodes only the part goes that each of them is left with.
TEST(AllReduceScheduleTest, LargeBufferIsHalvedInsideANodeFirst) {
  constexpr int kRanks = 64, kRanksPerNode = 8;
  constexpr std::size_t kCount = 1 << 20;
  for (const int rank : {0, 5, 63}) {
    std::size_t across = 0;
    for (const Exchange& round : all_reduce_schedule(rank, kRanks, kCount, 8)) {
      if (round.peer / kRanksPerNode != rank / kRanksPerNode) across += round.send.count;
    }
    EXPECT_LE(across, 2 * kCount / kRanksPerNode) << "rank " << rank;
  }
}

}  // namespace
}  // namespace lockstep
