// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Two ranks that hear each other over real sockets, and strangers at the door of one of them.
#include "comm/watch/heartbeat.hpp"

#include "comm/watch/message.hpp"
#include "tests/comm/heartbeat_ranks.hpp"
#include "tests/support/prelude.hpp"

#include <sys/resource.h>

namespace lockstep::watchdog {
namespace {

using asio::ip::tcp;
using Bytes = std::vector<std::uint8_t>;

/// Two ranks, which have met.
class HeartbeatTest : public HeartbeatRanks {
 protected:
  explicit HeartbeatTest(std::int64_t hello_within_ns = Heartbeat::kHelloWithinNs)
      : HeartbeatRanks(2, {"no address", "127.0.0.1"}, hello_within_ns) {
    until("they meet", [this] { return peer(0, 1).watched && peer(1, 0).watched; });
  }

  int disturbances() { return of(0).changes + of(1).changes; }
  tcp::socket stranger() {
    tcp::socket socket(context);
    socket.connect({asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(peer(0, 0).who.port)});
    return socket;
  }
  /// True if the other side has hung up.
  /// @param heard  grows by the bytes that it sent before
  static bool is_closed(tcp::socket& socket, std::size_t& heard) {
    std::array<char, 4096> bytes{};
    asio::error_code error;
    socket.non_blocking(true);
    heard += socket.read_some(asio::buffer(bytes), error);
    return error && error != asio::error::would_block;
  }
  static bool is_closed(tcp::socket& socket) {
    std::size_t heard = 0;
    return is_closed(socket, heard);
  }
  void expect_disconnected(const Bytes& said, const std::string& why) {
    SCOPED_TRACE(why);
    tcp::socket socket = stranger();
    asio::write(socket, asio::buffer(said));
    std::size_t heard = 0;
    until("a stranger is disconnected", [&] { return is_closed(socket, heard); });
    EXPECT_EQ(heard, 0U) << "it was taken for a rank, and told the token";
  }
  /// Rank 1 is where it was: connected, heard anew, and nothing has happened.
  void expect_rank_1_undisturbed() {
    const std::int64_t before = peer(0, 1).heard_ns;
    until("rank 1 is heard", [&] { return peer(0, 1).heard_ns > before; });
    EXPECT_TRUE(peer(0, 1).watched);
    EXPECT_FALSE(peer(0, 1).dead || peer(0, 1).leaving);
    EXPECT_EQ(disturbances(), 0);
  }
};

TEST_F(HeartbeatTest, StrangersAreDisconnectedAndChangeNothing) {
  expect_disconnected({'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'}, "another protocol");
  expect_disconnected(encode(Hello{draw_token(), 1, 2}), "another token");
  for (std::size_t byte = 0; byte < token.size(); ++byte) {
    Token nearly = token;
    nearly[byte] ^= 1U;
    expect_disconnected(encode(Hello{nearly, 1, 2}), "a token that differs in a bit");
  }
  expect_disconnected(encode(Hello{token, 7, 2}), "a rank that is not there");
  expect_disconnected(encode(Hello{token, 0, 2}), "the rank itself");
  expect_disconnected(encode(Hello{token, 1, 3}), "a job of another size");
  expect_disconnected(encode(Leaving{71, 1, true}), "a message before the hello");
  expect_rank_1_undisturbed();
}

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
  of(1).heartbeat->send_to_all(Leaving{72, 0, true});
  until("it has spoken", [this] { return peer(0, 1).farewell.spoken; });
  of(1).heartbeat->send_to_all(Leaving{74, -1, false});
  of(1).heartbeat->send_last(Goodbye{});
  until("it has ended", [this] { return peer(0, 1).ended; });
  EXPECT_EQ(farewell(), std::tuple(72, 0, true));
  EXPECT_EQ(disturbances(), 2) << "the others were no news";
}

/// A rank whose run ends before the two have met: the other one must not take it for dead.
TEST_F(HeartbeatTest, ARankThatHasSaidHelloAndIsNotAnsweredYetSaysGoodbye) {
  tcp::acceptor low = listen();
  std::vector<Peer> peers = of(1).peers;
  peers[0].who.port = low.local_endpoint().port();
  peers[0].who.addresses = {"127.0.0.1"};
  Heartbeat high(context, listen(), 1, token, peers, {.make_beat = [] { return Beat{}; }, .changed = {}});
  high.start();
  tcp::socket socket = low.accept();
  socket.non_blocking(true);
  const auto expect_heard = [&](const Bytes& message) {
    Bytes bytes(message.size());
    std::size_t heard = 0;
    until("all is heard", [&] {
      asio::error_code error;
      heard += socket.read_some(asio::buffer(bytes.data() + heard, bytes.size() - heard), error);
      return heard == bytes.size();
    });
    EXPECT_EQ(bytes, message);
  };
  expect_heard(encode(Hello{token, 1, 2}));
  high.send_last(Goodbye{});
  expect_heard(encode(Goodbye{}));
  until("all is sent", [&] { return high.all_sent(); });
}

TEST_F(HeartbeatTest, ARankThatHasSaidGoodbyeAnswersNoHello) {
  of(0).heartbeat->send_last(Goodbye{});
  until("rank 0 is no longer watched", [this] { return !peer(1, 0).watched; });
  expect_disconnected(encode(Hello{token, 1, 2}), "a rank that is late");
}

/// A process that ends may close its connections first, and its port a moment later.
TEST_F(HeartbeatTest, ARankWhosePortClosesAfterItsConnectionIsDead) {
  of(1).heartbeat->drop_network([](int) { return true; });
  tcp::acceptor port = listen();
  port.non_blocking(true);
  peer(0, 1).who.port = port.local_endpoint().port();
  {
    tcp::socket process = stranger();
    asio::write(process, asio::buffer(encode(Hello{token, 1, 2})));
    std::size_t heard = 0;
    until("it is taken for rank 1", [&] { return is_closed(process, heard) || heard > 0; });
  }
  until("its port is tried", [&] {
    asio::error_code error;
    port.accept(error);
    return !error;
  });
  EXPECT_FALSE(peer(0, 1).dead) << "somebody listens";
  port.close();
  until("it is found dead", [this] { return peer(0, 1).dead; });
}

TEST_F(HeartbeatTest, AThousandSilentStrangersCostNoRankItsPlace) {
  const Bytes hello = encode(Hello{draw_token(), 1, 2});
  std::deque<tcp::socket> silent;  // some with half a message, which could become a hello
  for (int i = 0; i < 1000; ++i) {
    silent.push_back(stranger());
    if (i % 2 == 0) asio::write(silent.back(), asio::buffer(hello.data(), hello.size() / 2));
    if (silent.size() > 500) silent.pop_front();  // this process has descriptors for so many
    context.restart();
    context.poll();
  }
  expect_rank_1_undisturbed();
  const auto held = [&] {
    return std::ranges::count_if(silent, [](tcp::socket& socket) { return !is_closed(socket); });
  };
  EXPECT_LE(held(), 64);
  // The house is full; a rank whose connection broke finds a place.
  tcp::socket again = stranger();
  asio::write(again, asio::buffer(encode(Hello{token, 1, 2})));
  Beat last;
  last.where.step = 3;
  asio::write(again, asio::buffer(encode(last)));
  until("it finds a place", [this] { return peer(0, 1).where.step == 3; });
  EXPECT_EQ(disturbances(), 0);
  EXPECT_GE(held(), 1) << "or no rank was there to take a place";
}

/// The one at the door is let in later.
TEST_F(HeartbeatTest, ARankThatHadNoDescriptorLeftAcceptsAgain) {
  tcp::socket waiting = stranger();
  asio::write(waiting, asio::buffer(encode(Leaving{71, 1, true})));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  tick();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(is_closed(waiting)) << "rank 0 has not read its message yet";
  until("it is heard, and disconnected", [&] { return is_closed(waiting); });
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

class ImpatientHeartbeatTest : public HeartbeatTest {
 protected:
  ImpatientHeartbeatTest() : HeartbeatTest(200'000'000) {}
};

TEST_F(ImpatientHeartbeatTest, StrangersWhoSayNothingAreDisconnected) {
  tcp::socket silent = stranger();
  const auto waited = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_closed(silent) && std::chrono::steady_clock::now() < waited)
    expect_rank_1_undisturbed();  // also its beats, which look after connections
  EXPECT_TRUE(is_closed(silent));
}

}  // namespace
}  // namespace lockstep::watchdog
