// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A large job, in which watchers tell each other of the ranks that talk to them. Who hears whom, and who is
/// found dead when members and watchers die, are silent or are cut off.
#include "comm/watch/failure_detector.hpp"
#include "tests/comm/heartbeat_ranks.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::watchdog {
namespace {

constexpr int kRanks = 40;
/// Three beats without a word, and the next watcher passes on; more, because a busy machine delivers late.
constexpr int kSoon = 8;
constexpr int kMember = 19, kItsWatcher = 5;  // rank 19 tells rank 5 that it lives

class WatchersTest : public HeartbeatRanks {
 protected:
  WatchersTest() : HeartbeatRanks(kRanks) {
    until("all know each other", [this] {
      return every([this](int rank, int other) { return !knows(rank, other) || peer(rank, other).watched; });
    });
  }

  /// Watchers know all, members the watchers.
  static bool knows(int rank, int other) { return rank != other && (rank < kWatchers || other < kWatchers); }
  bool every(const std::function<bool(int, int)>& holds) {
    for (int rank = 0; rank < kRanks; ++rank)
      for (int other = 0; other < kRanks; ++other)
        if (of(rank).heartbeat && !holds(rank, other)) return false;
    return true;
  }

  void die(int rank) {
    of(rank).heartbeat.reset();
    context.restart();
  }
  bool is_heard_since(int rank, int other, std::int64_t then) { return peer(rank, other).heard_ns >= then; }
  void expect_heard_throughout(int ticks, const std::function<bool(int rank, int other)>& of_interest) {
    std::vector<std::int64_t> began;
    for (int i = 0; i < ticks; ++i) {
      began.push_back(clock_ns());
      tick();
      if (i < kSoon) continue;
      for (int rank = 0; rank < kRanks; ++rank)
        for (int other = 0; other < kRanks; ++other)
          if (knows(rank, other) && of_interest(rank, other)) {
            ASSERT_TRUE(is_heard_since(rank, other, at(began, i - kSoon)))
                << "rank " << rank << " has not heard rank " << other << " for some beats, after " << i;
          }
    }
  }
};

TEST_F(WatchersTest, AllAreHeardThoughARankBeatsToFew) {
  for (Rank& rank : ranks) rank.beats = rank.changes = 0;
  expect_heard_throughout(10, [](int, int) { return true; });
  EXPECT_LE(of(0).beats, 10 * (kWatchers - 1)) << "to the other watchers";
  EXPECT_LE(of(1).beats, 10 * (kWatchers - 1 + 2)) << "to the other watchers, and two members at most";
  EXPECT_LE(of(kMember).beats, 12) << "to one watcher";
  for (const Rank& rank : ranks) EXPECT_EQ(rank.changes, 0);
}

TEST_F(WatchersTest, MemberThatDiesIsDeadForAllWatchersAtOnce) {
  die(kMember);
  until("all have found it",
        [&] { return every([&](int rank, int) { return rank >= kWatchers || peer(rank, kMember).dead; }); });
  EXPECT_LT(peer(0, kMember).heard_ns, peer(0, kMember).lost_ns) << "to be said where it was last seen";
  EXPECT_TRUE(every([&](int rank, int other) { return other == kMember || !peer(rank, other).dead; }));
}

TEST_F(WatchersTest, WatcherThatDiesIsDeadForAllAndItsMembersAreHeardOn) {
  die(kItsWatcher);
  until("all have found it",
        [&] { return every([&](int rank, int) { return peer(rank, kItsWatcher).dead; }); });
  expect_heard_throughout(16,
                          [](int rank, int other) { return rank != kItsWatcher && other != kItsWatcher; });
  EXPECT_TRUE(every([&](int rank, int other) { return other == kItsWatcher || !peer(rank, other).dead; }));
}

TEST_F(WatchersTest, TwoThatDieTogetherAreBothFoundAlsoAWatcherAndItsMember) {
  die(kItsWatcher);
  die(kMember);
  until("all have found both", [&] {
    return every([&](int rank, int) {
      return rank >= kWatchers || (peer(rank, kMember).dead && peer(rank, kItsWatcher).dead);
    });
  });
}

TEST_F(WatchersTest, MembersOfASilentWatcherAreHeardByWayOfTheNext) {
  const auto is_it = [](int rank) { return rank == kItsWatcher; };
  const auto others = [&](int rank, int other) { return !is_it(rank) && !is_it(other); };
  of(kItsWatcher).heartbeat->drop_network([](int) { return true; });
  expect_heard_throughout(kSoon + 1, others);  // heartbeats under way arrive
  const std::int64_t then = clock_ns();
  expect_heard_throughout(24, others);
  for (const int rank : {0, 15, kMember, kRanks - 1})
    EXPECT_FALSE(is_heard_since(rank, kItsWatcher, then)) << rank;
  EXPECT_FALSE(peer(0, kItsWatcher).dead) << "its port still answers";
}

/// Eight ranks a host. The first host is cut off, and with it half of the watchers.
TEST_F(WatchersTest, OnBothSidesOfACutTheLowestRankSpeaks) {
  const auto side = [](int rank) { return rank < 8; };
  for (int rank = 0; rank < kRanks; ++rank)
    of(rank).heartbeat->drop_network([&](int other) { return side(rank) != side(other); });
  for (int i = 0; i < 2; ++i) tick();  // relayed heartbeats arrive late
  const std::int64_t then = clock_ns();
  expect_heard_throughout(24, [&](int rank, int other) { return side(rank) == side(other); });
  for (int i = 0; i < 6; ++i) tick();
  EXPECT_TRUE(every(
      [&](int rank, int other) { return side(rank) == side(other) || !is_heard_since(rank, other, then); }));
  // Silent is who was not heard since the cut.
  const std::int64_t now = clock_ns();
  Limits limits;
  limits.silent_seconds = static_cast<double>(now - then) * 1e-9;
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(FailureDetector(rank, limits).speaks(now, of(rank).peers), rank == 0 || rank == 8) << rank;
}

TEST_F(WatchersTest, LastWordsReachAll) {
  of(kMember).heartbeat->send_last(Goodbye{});
  until("it is missed by no watcher",
        [&] { return every([&](int rank, int) { return rank >= kWatchers || peer(rank, kMember).ended; }); });
  for (int i = 0; i < 3; ++i) tick();
  EXPECT_TRUE(every([&](int rank, int) { return rank == kMember || !peer(rank, kMember).watched; }));
  constexpr std::array kTwo = {kWatchers, kWatchers + 15};  // they have the same watcher
  for (const int member : kTwo) of(member).heartbeat->send_to_all(Leaving{71, kMember + 2, false});
  until("the watchers know that they leave", [&] {
    return every([&](int rank, int) {
      return rank >= kWatchers || (peer(rank, kTwo[0]).leaving && peer(rank, kTwo[1]).leaving);
    });
  });
  of(0).heartbeat->send_to_all(Leaving{71, kMember + 2, true});
  until("rank 0 has spoken for all",
        [&] { return every([&](int rank, int) { return rank == 0 || peer(rank, 0).farewell.spoken; }); });
  of(kRanks - 1).heartbeat->send_to_all(Leaving{74, -1, true});
  until("a member's own reasons are known to all", [&] {
    return every([&](int rank, int) { return rank == kRanks - 1 || peer(rank, kRanks - 1).leaving; });
  });
  EXPECT_TRUE(every([&](int rank, int) {
    return rank < kWatchers || !(peer(rank, kTwo[0]).leaving || peer(rank, kTwo[1]).leaving);
  })) << "they have not spoken for all: no news for members";
  EXPECT_FALSE(peer(0, 0).leaving) << "each knows best of itself";
}

/// It ends at the moment at which it hears them.
TEST_F(WatchersTest, AWatcherThatEndsPassesOnItsNewsFirst) {
  std::optional<bool> is_known;
  of(0).on_change = [&] {
    if (peer(0, kItsWatcher).leaving && !is_known) is_known = peer(0, kMember).leaving;
  };
  of(kItsWatcher).on_change = [&] { of(kItsWatcher).heartbeat->send_last(Leaving{3, -1, true}); };
  of(kMember).heartbeat->drop_network([](int rank) { return rank != kItsWatcher; });
  of(kMember).heartbeat->send_to_all(Leaving{71, kMember + 2, false});
  until("the watcher leaves", [&] { return is_known.has_value(); });
  EXPECT_EQ(is_known, true);
}

/// Connections end on which a member relays, or a watcher names a rank that is not there. They are made anew.
TEST_F(WatchersTest, OnlyAWatchersWordOnARankOfTheJobCounts) {
  for (Rank& rank : ranks) rank.changes = 0;
  of(kItsWatcher).heartbeat->send_to_all(Relay{{{kRanks, 0, Goodbye{}}}});
  of(kWatchers).heartbeat->send_to_all(Relay{{{1, 0, Goodbye{}}}});
  for (int i = 0; i < 5; ++i) tick();
  EXPECT_TRUE(every([&](int rank, int other) { return !peer(rank, other).ended; }));
  for (const Rank& rank : ranks) EXPECT_EQ(rank.changes, 0);
  expect_disconnected(encode(Hello{token, kWatchers + 1, kRanks}), "members know no members", kWatchers);
}

}  // namespace
}  // namespace lockstep::watchdog
