// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One rank of a large job, whose others are sockets of the test. A member turns to its watchers in their order; a
/// watcher takes few things for news. Nothing is handled but where a test waits for it.
#include "comm/watch/failure_detector.hpp"
#include "comm/watch/heartbeat.hpp"
#include "tests/comm/heartbeat_ranks.hpp"
#include "tests/support/prelude.hpp"

#include <poll.h>

namespace lockstep::watchdog {
namespace {

class OneOfManyHeartbeatTest : public ::testing::Test {
 protected:
  /// The watchers have doors. The first address of rank 0 is none.
  void be(int rank, int ranks) {
    peers.resize(static_cast<std::size_t>(ranks));
    for (int i = 0; i < ranks; ++i) {
      Identity& who = at(peers, i).who;
      who.rank = i;
      if (i >= kWatchers) continue;
      who.addresses = {"127.0.0.1", "no address"};
      who.port = doors.emplace_back(context, any).local_endpoint().port();
    }
    std::ranges::reverse(peers[0].who.addresses);
    tcp::acceptor own(context, any);
    place = own.local_endpoint();
    heartbeat.emplace(context, std::move(own), rank, token, peers,
                      Heartbeat::Callbacks{.make_beat = [this] { return ++beats, Beat{}; },
                                           .changed = [this] { ++changes; }});
  }
  /// True if it is, or will be soon, which is waited for where it must be.
  bool is_called(int watcher, bool must_be) {
    pollfd door{.fd = at(doors, watcher).native_handle(), .events = POLLIN, .revents = 0};
    return ::poll(&door, 1, must_be ? 60'000 : 0) == 1;
  }
  void until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      context.restart();
      context.run_for(std::chrono::milliseconds(1));
    }
  }
  static void say(tcp::socket& socket, const Message& message) {
    asio::write(socket, asio::buffer(encode(message)));
  }
  static Beat beat_at(std::int64_t step) {
    Beat beat;
    beat.where.step = step;
    return beat;
  }
  /// A rank that calls, and has said hello.
  tcp::socket caller(std::uint32_t rank) {
    tcp::socket socket(context);
    socket.connect(place);
    say(socket, Hello{token, rank, static_cast<std::uint32_t>(peers.size())});
    return socket;
  }

  const tcp::endpoint any{asio::ip::address_v4::loopback(), 0};
  asio::io_context context{1};
  std::vector<tcp::acceptor> doors;
  tcp::endpoint place;
  Token token = draw_token();
  std::vector<Peer> peers;
  int beats = 0, changes = 0;
  std::optional<Heartbeat> heartbeat;
};

TEST_F(OneOfManyHeartbeatTest, AMemberTurnsToAnotherWatcherAfterTwoBeatsWithoutAnAnswer) {
  be(16, 33);
  constexpr std::array kOrder = {2, 10, 6, 14, 4, 12, 8, 1, 3, 11, 7, 15, 5, 13, 9, 0};
  for (int beat = 1; beat <= 30; ++beat) {
    heartbeat->beat();
    const int called = beat < 30 ? std::min(15, 1 + (beat + 1) / 2) : 16;  // rank 0 by its second address
    for (int i = 0; i < kWatchers; ++i)
      ASSERT_EQ(is_called(at(kOrder, i), i < called), i < called) << "watcher " << i << ", beat " << beat;
  }
  doors[2].accept();
  EXPECT_FALSE(is_called(2, false)) << "once, as long as that is under way";
}

TEST_F(OneOfManyHeartbeatTest, AMemberTurnsToNoWatcherThatEndsOrHasNoAddress) {
  be(16, 33);
  peers[10].dead = peers[6].leaving = peers[14].ended = true;
  peers[12].who.addresses.clear();
  for (int beat = 0; beat < 3; ++beat) heartbeat->beat();
  for (const int watcher : {2, 4}) ASSERT_TRUE(is_called(watcher, true)) << watcher;
  for (const int watcher : {10, 6, 14, 12, 8}) EXPECT_FALSE(is_called(watcher, false)) << watcher;
}

TEST_F(OneOfManyHeartbeatTest, InASmallerJobARankCallsAllWatchersThatAreThereAtOnce) {
  be(17, 32);
  peers[16].who.addresses = {"127.0.0.1"};
  peers[16].who.port = doors.emplace_back(context, any).local_endpoint().port();
  peers[3].dead = peers[5].leaving = true;
  for (int beat = 0; beat < 2; ++beat) heartbeat->beat();
  for (int rank = 0; rank <= 16; ++rank) {
    const bool called = rank < kWatchers && rank != 3 && rank != 5;
    ASSERT_EQ(is_called(rank, called), called) << rank;
  }
}

TEST_F(OneOfManyHeartbeatTest, AMemberStaysWithAWatcherThatAnswers) {
  be(16, 33);
  heartbeat->beat();
  tcp::socket watcher = doors[2].accept();
  say(watcher, Hello{token, 2, 33});
  until([this] { return peers[2].watched; });
  EXPECT_EQ(beats, 1) << "at once";
  say(watcher, beat_at(1));
  until([this] { return peers[2].where.step == 1; });
  for (int beat = 1; beat <= 3; ++beat) {
    heartbeat->beat();
    ASSERT_EQ(is_called(6, beat == 3), beat == 3) << beat;
  }
}

/// Until then the launcher may end the job, with the code of the rank that leaves.
TEST_F(OneOfManyHeartbeatTest, AMemberFollowsAnotherOneThatLeavesByItselfThreeSecondsLater) {
  be(16, 33);
  heartbeat->beat();
  tcp::socket watcher = doors[2].accept();
  say(watcher, Hello{token, 2, 33});
  const std::int64_t before = clock_ns();
  say(watcher, Relay{{{20, 0, Leaving{66, -1, true}}}});
  until([this] { return peers[20].leaving; });
  EXPECT_GE(peers[20].heard_ns, before);
  const auto follows_after = [this](double seconds) {
    const std::int64_t now = peers[20].heard_ns + static_cast<std::int64_t>(seconds * 1e9);
    return FailureDetector(16, Limits{}).look(now, peers).adopted;
  };
  EXPECT_FALSE(follows_after(2.9));
  EXPECT_TRUE(follows_after(3.1));
}

TEST_F(OneOfManyHeartbeatTest, AWatcherLeavesAMemberThatIsSilentForTwoBeatsToAnotherOne) {
  be(1, 33);
  heartbeat->start();
  tcp::socket member = caller(30);
  say(member, beat_at(1));
  until([this] { return peers[30].where.step == 1; });
  EXPECT_EQ(beats, 1);
  for (int beat = 1; beat <= 3; ++beat) {
    heartbeat->beat();
    EXPECT_EQ(beats, 1 + std::min(beat, 2));
  }
}

TEST_F(OneOfManyHeartbeatTest, NewsOfARankThatEndsAreItsLast) {
  be(1, 33);
  heartbeat->start();
  tcp::socket watcher = caller(5);
  say(watcher, Relay{{{1, 0, Leaving{71, 20, true}}, {19, 0, beat_at(7)}}});
  until([this] { return peers[19].where.step == 7; });
  EXPECT_TRUE(peers[19].watched);
  EXPECT_FALSE(peers[1].leaving) << "each knows best of itself";
  EXPECT_EQ(changes, 0);
  say(watcher, Relay{{{19, 0, Goodbye{}},
                      {19, 0, Beat{}},
                      {19, 0, Died{}},
                      {20, 0, Leaving{71, 21, false}},
                      {20, 0, beat_at(9)},
                      {20, 0, Died{}}}});
  until([this] { return peers[20].where.step == 9; });
  for (const std::size_t rank : {19U, 20U}) EXPECT_FALSE(peers[rank].watched || peers[rank].dead) << rank;
  EXPECT_EQ(changes, 1);
  EXPECT_FALSE(is_closed(watcher));
  say(watcher, Relay{{{33, 0, Goodbye{}}}});
  until([&] { return is_closed(watcher); });
}

}  // namespace
}  // namespace lockstep::watchdog
