// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Two ranks that hear each other over real sockets: their messages, and their ends.
#include "comm/watch/heartbeat.hpp"

#include "comm/watch/message.hpp"
#include "tests/comm/heartbeat_ranks.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::watchdog {
namespace {

TEST_F(HeartbeatTest, RankThatSaysGoodbyeIsNoLongerWatched) {
  of(1).heartbeat->send_last(Goodbye{});
  until("it is no longer watched", [this] { return !peer(0, 1).watched; });
  EXPECT_FALSE(peer(0, 1).dead || peer(0, 1).leaving);
}

TEST_F(HeartbeatTest, TheFirstReasonStaysUntilItIsSpokenForAll) {
  const auto farewell = [this] {
    const Leaving& said = peer(0, 1).farewell;
    return std::tuple(said.code, said.because, said.spoken);
  };
  of(1).heartbeat->send_to_all(Leaving{71, 0, false});
  until("it leaves", [this] { return peer(0, 1).leaving; });
  EXPECT_EQ(farewell(), std::tuple(71, 0, false));
  const int beats = of(0).beats;
  tick();
  EXPECT_EQ(of(0).beats, beats) << "none for a rank that leaves";
  of(1).heartbeat->send_to_all(Leaving{72, 0, true});
  until("it has spoken", [this] { return peer(0, 1).farewell.spoken; });
  of(1).heartbeat->send_to_all(Leaving{74, -1, false});
  of(1).heartbeat->send_last(Goodbye{});
  until("it has ended", [this] { return peer(0, 1).ended; });
  EXPECT_EQ(farewell(), std::tuple(72, 0, true));
  EXPECT_EQ(disturbances(), 2) << "the others were no news";
}

/// Rank 1, which has called rank 0 and is not answered.
class CallingHeartbeatTest : public HeartbeatTest {
 protected:
  CallingHeartbeatTest() {
    peers[0].who.port = low.local_endpoint().port();
    peers[0].who.addresses = {"127.0.0.1"};
    high.start();
    called = low.accept();
    low.non_blocking(true);
  }
  void expect_heard(const Bytes& message) {
    Bytes bytes(message.size());
    std::size_t heard = 0;
    called.non_blocking(true);
    until("all is heard", [&] {
      asio::error_code error;
      heard += called.read_some(asio::buffer(bytes.data() + heard, bytes.size() - heard), error);
      return heard == bytes.size();
    });
    EXPECT_EQ(bytes, message);
  }

  tcp::acceptor low = listen(), door = listen();
  const tcp::endpoint place = door.local_endpoint();
  std::vector<Peer> peers = of(1).peers;
  Heartbeat high{context, std::move(door), 1,
                 token,   peers,           {.make_beat = [] { return Beat{}; }, .changed = {}}};
  tcp::socket called{context};
};

/// Its run ends before the two have met: the other one must not take it for dead.
TEST_F(CallingHeartbeatTest, SaysGoodbyeWhereItsHelloIsNotAnsweredYetAndCallsNoMore) {
  expect_heard(encode(Hello{token, 1, 2}));
  std::deque<tcp::socket> strangers;  // to which its own call does not give way, though it is the oldest
  for (int i = 0; i < 65; ++i) strangers.emplace_back(context).connect(place);
  until("one of too many is disconnected", [&] { return is_closed(strangers.front()); });
  high.send_last(Goodbye{});
  expect_heard(encode(Goodbye{}));
  until("all is sent", [&] { return high.all_sent(); });
  high.beat();
  asio::error_code none;
  low.accept(none);
  EXPECT_NE(none, asio::error_code{});
}

TEST_F(CallingHeartbeatTest, ThatIsConnectedAfterItsLastWordsSaysNothing) {
  high.send_last(Goodbye{});
  std::size_t heard = 0;
  until("it hangs up", [&] { return is_closed(called, heard); });
  EXPECT_EQ(heard, 0U);
}

/// A process that ends may close its connections first, and its port a moment later.
TEST_F(HeartbeatTest, ARankWhosePortClosesAfterItsConnectionIsDead) {
  of(1).heartbeat->drop_network([](int) { return true; });
  tcp::acceptor port = listen();
  port.non_blocking(true);
  peer(0, 1).who.port = port.local_endpoint().port();
  int tries = 0;
  const auto count_tries = [&] {
    for (asio::error_code none; port.accept(none), !none;) ++tries;
    return tries;
  };
  const auto come = [&] {
    const std::int64_t before = clock_ns();
    tcp::socket process = stranger();
    asio::write(process, asio::buffer(encode(Hello{token, 1, 2})));
    std::size_t heard = 0;
    until("it is taken for rank 1", [&] { return is_closed(process, heard) || heard > 0; });
    EXPECT_GE(peer(0, 1).heard_ns, before);
    return process;
  };
  const auto wait = [&] {
    for (const std::int64_t end = clock_ns() + 100'000'000; clock_ns() < end;) tick();
  };
  come();  // and goes
  until("its port is tried", [&] { return count_tries() > 0; });
  tcp::socket back = come();
  wait();  // for a try that was under way
  count_tries();
  tries = 0;
  wait();
  EXPECT_EQ(count_tries(), 0) << "it is back";
  const std::int64_t gone = clock_ns();
  back.close();
  until("its port is tried for a second", [&] { return count_tries() >= 50; });
  EXPECT_GE(clock_ns() - gone, 49 * 20'000'000);
  wait();
  EXPECT_EQ(count_tries(), 50);
  EXPECT_FALSE(peer(0, 1).dead) << "somebody listens";
  come();
  port.close();
  until("it is found dead", [this] { return peer(0, 1).dead; });
  EXPECT_EQ(of(0).changes, 1);
}

TEST_F(HeartbeatTest, ARankThatLeavesAndEndsIsNotDead) {
  of(1).heartbeat->send_to_all(Leaving{74, -1, true});
  until("it leaves", [this] { return peer(0, 1).leaving; });
  of(1).heartbeat.reset();
  for (int i = 0; i < 5; ++i) tick();
  EXPECT_FALSE(peer(0, 1).dead);
  EXPECT_EQ(disturbances(), 1);
}

TEST_F(HeartbeatTest, ARankWithoutANetworkHearsAndAnswersNobodyAndHangsUpOnNobody) {
  of(1).heartbeat->drop_network([](int) { return true; });
  const std::int64_t heard_ns = peer(1, 0).heard_ns;
  const int beats = of(0).beats;
  tcp::socket other = stranger(1);
  asio::write(other, asio::buffer(encode(Hello{token, 0, 2})));
  for (int i = 0; i < 3; ++i) tick();
  std::size_t heard = 0;
  EXPECT_FALSE(is_closed(other, heard));
  EXPECT_EQ(heard, 0U);
  EXPECT_EQ(peer(1, 0).heard_ns, heard_ns);
  EXPECT_EQ(of(0).beats, beats + 3);
}

TEST_F(HeartbeatTest, ARankThatTakesNothingGetsFewBeats) {
  until("all is sent", [this] { return of(0).heartbeat->all_sent(); });
  const int beats = of(0).beats;
  for (int i = 0; i < 10; ++i) of(0).heartbeat->beat();  // nothing is handled meanwhile
  EXPECT_EQ(of(0).beats, beats + 5);
}

TEST_F(HeartbeatTest, ARankThatSaysWhatItMayNotIsDisconnected) {
  of(1).heartbeat->drop_network([](int) { return true; });
  for (const Bytes& wrong : {encode(Relay{}), encode(Died{}), encode(Hello{token, 1, 2})}) {
    tcp::socket rank_1 = stranger();
    asio::write(rank_1, asio::buffer(encode(Hello{token, 1, 2})));
    asio::write(rank_1, asio::buffer(wrong));
    until("it is disconnected", [&] { return is_closed(rank_1); });
    const int beats = of(0).beats;
    tick();
    EXPECT_EQ(of(0).beats, beats) << "nor is it taken for connected";
  }
  EXPECT_FALSE(peer(0, 1).dead);
}

/// Its times become those of rank 0's clock; nothing lies in the future. The real rank 1 is cut off meanwhile.
TEST_F(HeartbeatTest, ABeatTellsWhereItsRankIs) {
  of(1).heartbeat->drop_network([](int) { return true; });
  const auto hears = [this](const Beat& beat) {
    tcp::socket socket = stranger();
    Bytes said = encode(Hello{token, 1, 2});
    const Bytes more = encode(beat);
    said.insert(said.end(), more.begin(), more.end());
    asio::write(socket, asio::buffer(said));
    until("it is heard", [&] { return peer(0, 1).where.step == beat.where.step; });
    return peer(0, 1);
  };
  Beat beat{.sent_ns = 1000,
            .where = {.step = 7, .phase = Phase::kSaving, .collective = 5, .bucket = 2, .since_ns = 400}};
  beat.witnessed_rank = 1;
  beat.witnessed_state = 'T';
  put_text("cuda:3", beat.device);
  Peer rank_1 = hears(beat);
  EXPECT_EQ(rank_1.heard_ns - rank_1.where.since_ns, 600);
  EXPECT_EQ(rank_1.where.phase, Phase::kSaving);
  EXPECT_EQ(rank_1.where.collective, 5U);
  EXPECT_EQ(rank_1.where.bucket, 2);
  EXPECT_EQ(rank_1.device, "cuda:3");
  EXPECT_EQ(rank_1.state, 'T');
  EXPECT_FALSE(rank_1.traced);
  beat.where.step = 8;
  beat.where.since_ns = 1001;
  beat.witnessed_rank = 2;
  beat.traced = true;
  rank_1 = hears(beat);
  EXPECT_EQ(rank_1.where.since_ns, rank_1.heard_ns) << "not later than it was sent";
  EXPECT_TRUE(rank_1.traced);
  beat.where.step = 9;
  beat.where.since_ns = -1;
  beat.witnessed_rank = 0;
  beat.traced = false;
  rank_1 = hears(beat);
  EXPECT_EQ(rank_1.where.since_ns, rank_1.heard_ns);
  EXPECT_EQ(rank_1.state, '?') << "it goes on";
  EXPECT_EQ(peer(0, 0).state, '?') << "each knows best of itself";
  beat.where.step = 10;
  beat.sent_ns = std::numeric_limits<std::int64_t>::max();
  beat.where.since_ns = 0;
  EXPECT_EQ(hears(beat).where.since_ns, 0) << "not before this clock began";
}

}  // namespace
}  // namespace lockstep::watchdog
