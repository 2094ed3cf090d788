// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rounds of an all-reduce, played through in memory for many numbers of ranks.
#include "comm/mpi/mpi_all_reduce.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

using Buffer = std::vector<std::int64_t>;

/// Ranks that send messages through queues, each as far as it can get, until no rank moves any more.
class Simulation {
 public:
  Simulation(int ranks, std::size_t count, std::size_t bytes_per_element, int ranks_per_host) {
    for (int rank = 0; rank < ranks; ++rank) {
      rounds_.push_back(all_reduce_schedule(rank, ranks, count, bytes_per_element, ranks_per_host));
      for (auto* buffers : {&own_, &buffers_}) buffers->emplace_back(count);
      for (std::size_t i = 0; i < count; ++i) own_.back()[i] = static_cast<std::int64_t>(i) * 100 + rank;
    }
    next_.resize(rounds_.size());
    sent_.resize(rounds_.size());
    if (ranks == 1) buffers_ = own_;
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
  /// An exchange; before the first one of a round, what all of them send.
  bool step(std::size_t rank) {
    const auto& rounds = rounds_[rank];
    if (next_[rank] == rounds.size()) return false;
    while (sent_[rank] <= next_[rank] || (sent_[rank] < rounds.size() && rounds[sent_[rank]].together))
      send(rank, rounds[sent_[rank]++]);
    const Exchange& exchange = rounds[next_[rank]];
    const auto from = static_cast<std::size_t>(exchange.from);
    if (exchange.receive.count > 0 && !receive(channels_[{from, rank}], exchange, rank)) return false;
    ++next_[rank];
    return true;
  }

  void send(std::size_t rank, const Exchange& exchange) {
    if (exchange.send.count == 0) return;
    const Buffer& whole = exchange.own ? own_[rank] : buffers_[rank];
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(exchange.send.offset);
    channels_[{rank, static_cast<std::size_t>(exchange.to)}].emplace_back(
        first, first + static_cast<std::ptrdiff_t>(exchange.send.count));
  }

  bool receive(std::deque<Buffer>& channel, const Exchange& exchange, std::size_t rank) {
    if (channel.empty()) return false;
    EXPECT_EQ(channel.front().size(), exchange.receive.count);
    const Buffer& so_far = exchange.first ? own_[rank] : buffers_[rank];
    for (std::size_t i = 0; i < exchange.receive.count; ++i) {
      const std::size_t at = exchange.receive.offset + i;
      buffers_[rank][at] = channel.front()[i] + (exchange.add ? so_far[at] : 0);
    }
    channel.pop_front();
    return true;
  }

  std::vector<std::vector<Exchange>> rounds_;
  std::vector<Buffer> own_, buffers_;     ///< each rank's terms; each rank's sums
  std::vector<std::size_t> next_, sent_;  ///< exchanges done; those whose message is sent
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Buffer>> channels_;
};

/// Every element of every rank, on hosts of sizes that are drawn, too; their last is mostly not full.
class AllReduceScheduleTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(AllReduceScheduleTest, EveryRankEndsWithTheSum) {
  std::mt19937 random(1);
  for (int ranks = 1; ranks <= 130; ++ranks) {
    const int drawn = 1 + static_cast<int>(random() % static_cast<unsigned>(ranks));
    for (const auto& [count, ranks_per_host] : std::initializer_list<std::pair<std::size_t, int>>{
             {0, 1}, {1, drawn}, {2, 6}, {7, drawn}, {64, 1}, {101, drawn}, {53, 24}}) {
      Simulation simulation(ranks, count, GetParam(), ranks_per_host);
      simulation.run();
      const auto where = fmt::format("{} ranks, {} on a host, {} elements", ranks, ranks_per_host, count);
      ASSERT_TRUE(simulation.all_done()) << where;
      Buffer expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        expected[i] = static_cast<std::int64_t>(i) * 100 * ranks + ranks * (ranks - 1) / 2;
      }
      for (const Buffer& buffer : simulation.buffers()) ASSERT_EQ(buffer, expected) << where;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DoublingAndSharing, AllReduceScheduleTest,
                         ::testing::Values(8, kSharedOutFromBytes));

TEST(AllReduceScheduleTest, LargeBufferIsSentTwiceLessOnesOwnPart) {
  for (const int ranks : {2, 3, 4, 5, 6, 7, 15, 27, 48}) {
    const std::size_t part = 1 << 14, count = part * static_cast<std::size_t>(ranks);
    for (const int rank : {0, ranks - 1}) {
      std::size_t sent = 0;
      for (const Exchange& round : all_reduce_schedule(rank, ranks, count, 8, 1)) sent += round.send.count;
      EXPECT_EQ(sent, 2 * (count - part)) << rank << " of " << ranks;
    }
  }
}

/// Ranks of a host are neighbours: between hosts only the part goes that each of them is left with.
TEST(AllReduceScheduleTest, LargeBufferIsSharedOutInsideAHostFirst) {
  constexpr std::size_t kCount = 1 << 20;
  for (const auto& [ranks, per_host] :
       {std::pair(64, 8), std::pair(960, 24), std::pair(90, 30), std::pair(960, 96)}) {
    for (const int rank : {0, 20, ranks - 1}) {
      std::size_t across = 0;
      for (const Exchange& round : all_reduce_schedule(rank, ranks, kCount, 8, per_host)) {
        if (round.to / per_host != rank / per_host) across += round.send.count;
      }
      EXPECT_LE(across, 2 * (kCount / static_cast<std::size_t>(per_host) + 1)) << rank << " of " << ranks;
    }
  }
}

/// Nor has one of its ranks any number of messages under way: eight parts, to six partners each.
TEST(AllReduceScheduleTest, LastHostThatIsNotFullSendsNoMoreThanTheOthers) {
  constexpr std::size_t kCount = 1 << 20, kMostAtOnce = 48;
  for (const auto& [ranks, per_host] : {std::pair(9, 8), std::pair(100, 24), std::pair(193, 192),
                                        std::pair(200, 192), std::pair(552, 192), std::pair(1023, 96)}) {
    std::vector<std::size_t> across(static_cast<std::size_t>((ranks + per_host - 1) / per_host));
    for (int rank = 0; rank < ranks; ++rank) {
      std::size_t at_once = 0;
      for (const Exchange& exchange : all_reduce_schedule(rank, ranks, kCount, 8, per_host)) {
        at_once = exchange.together ? at_once + 1 : 1;
        EXPECT_LE(at_once, kMostAtOnce) << rank << " of " << ranks;
        if (exchange.to / per_host != rank / per_host)
          across[static_cast<std::size_t>(rank / per_host)] += exchange.send.count;
      }
    }
    EXPECT_LE(across.back(), *std::ranges::max_element(across.begin(), across.end() - 1) * 51 / 50) << ranks;
  }
}

/// One message between hosts each way for each doubling of hosts, though a host's ranks are no power of two.
TEST(AllReduceScheduleTest, SmallBufferCrossesBetweenHostsOnceForEachDoublingOfThem) {
  for (const auto& [hosts, per_host, crossings] :
       {std::tuple(2, 1, 1), std::tuple(2, 3, 1), std::tuple(2, 24, 1), std::tuple(8, 12, 3)}) {
    for (int rank = 0; rank < hosts * per_host; ++rank) {
      int across = 0;
      for (const Exchange& round : all_reduce_schedule(rank, hosts * per_host, 100, 8, per_host))
        across += round.to / per_host != rank / per_host ? 1 : 0;
      EXPECT_LE(across, crossings) << rank << " of " << hosts << " x " << per_host;
    }
  }
}

/// Groups: 11 are 3 of three with two more ranks, 13 are 3 of four with one, 23 are 5.
TEST(AllReduceScheduleTest, RanksThatNoGroupTakesKeepNoPart) {
  for (const auto& [ranks, guests] : {std::pair(11, 2), std::pair(13, 1), std::pair(23, 3)}) {
    int without = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto rounds = all_reduce_schedule(rank, ranks, 1 << 20, 8, 1);
      without += std::ranges::none_of(rounds, [](const Exchange& e) { return e.add && e.receive.count > 0; })
                     ? 1
                     : 0;
    }
    EXPECT_EQ(without, guests) << ranks << " ranks";
  }
  EXPECT_EQ(all_reduce_schedule(0, 13, 1 << 20, 8, 1).size(), 10U) << "three partners, then two; and back";
}

/// Messages in the round that has most of them.
std::size_t most_at_once(int rank, int ranks, int per_host) {
  std::size_t most = 0, at_once = 0;
  for (const Exchange& exchange : all_reduce_schedule(rank, ranks, 1 << 20, 8, per_host)) {
    at_once = exchange.together ? at_once + 1 : 1;
    most = std::max(most, at_once);
  }
  return most;
}

TEST(AllReduceScheduleTest, MessagesAreUnderWayAtOnceBetweenHostsOnlyAndEightPartsAtMost) {
  EXPECT_EQ(most_at_once(0, 5, 1), 4U) << "a host each";
  EXPECT_EQ(most_at_once(0, 5, 5), 1U) << "on one host";
  EXPECT_EQ(most_at_once(8, 9, 8), 8U) << "the parts of eight ranks";
  EXPECT_EQ(most_at_once(9, 10, 9), 3U) << "nine parts would be too many";
  EXPECT_EQ(all_reduce_schedule(16, 17, 1 << 20, 8, 16).size(), 16U) << "eight to one partner, and back";
  std::size_t sent = 0;
  for (const Exchange& exchange : all_reduce_schedule(0, 17, 1 << 20, 8, 16)) sent += exchange.send.count;
  EXPECT_EQ(sent, 2U * ((1 << 20) - (1 << 16))) << "as if there were 16 ranks";
}

TEST(AllReduceScheduleTest, BuffersAreSharedOutFromSixteenKibibytesOn) {
  EXPECT_EQ(all_reduce_schedule(0, 2, 2047, 8, 1).front().send.count, 2047U);
  EXPECT_EQ(all_reduce_schedule(0, 2, 2048, 8, 1).front().send.count, 1024U);
}

}  // namespace
}  // namespace lockstep
