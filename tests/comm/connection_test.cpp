// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Connections: calls that are answered, refused or left waiting, and messages that no owner takes.
#include "comm/watch/connection.hpp"

#include "tests/comm/heartbeat_ranks.hpp"
#include "tests/support/prelude.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

namespace lockstep::watchdog {
namespace {

class HeartbeatConnectionTest : public HeartbeatRanks {
 protected:
  HeartbeatConnectionTest() : HeartbeatRanks(1) {}

  std::shared_ptr<Connection> make(tcp::socket socket) {
    return std::make_shared<Connection>(*of(0).heartbeat, std::move(socket));
  }
  /// Calls, and returns what is heard of it until nothing is under way.
  std::vector<bool> call(const tcp::endpoint& place, std::chrono::milliseconds limit) {
    std::vector<bool> heard;
    make(tcp::socket(own))->connect(place, limit, [&](bool good) { heard.push_back(good); });
    own.restart();
    own.run_for(std::chrono::seconds(60));
    EXPECT_TRUE(own.stopped());
    return heard;
  }

  const tcp::endpoint any{asio::ip::address_v4::loopback(), 0};
  asio::io_context own{1};
  tcp::acceptor door{own, any};
};

TEST_F(HeartbeatConnectionTest, ACallIsAnsweredRefusedOrGivenUp) {
  constexpr std::chrono::hours kLong{1};
  EXPECT_EQ(call(door.local_endpoint(), kLong), std::vector<bool>{true});
  const tcp::endpoint gone = tcp::acceptor(own, any).local_endpoint();
  EXPECT_EQ(call(gone, kLong), std::vector<bool>{false});
  // A queue of one call, which is full: others are not answered.
  tcp::acceptor full(own);
  full.open(any.protocol());
  full.bind(any);
  full.listen(0);
  asio::io_context others{1};
  std::deque<tcp::socket> waiting;
  for (int i = 0; i < 8; ++i)
    waiting.emplace_back(others).async_connect(full.local_endpoint(), [](const asio::error_code&) {});
  full.wait(tcp::acceptor::wait_read);
  EXPECT_EQ(call(full.local_endpoint(), std::chrono::milliseconds(1)), std::vector<bool>{false});
}

TEST_F(HeartbeatConnectionTest, SixtyFourMessagesAreKeptUntilTheyAreTaken) {
  tcp::socket mine(own);
  mine.connect(door.local_endpoint());
  tcp::socket other = door.accept();
  const int descriptor = mine.native_handle();
  const auto connection = make(std::move(mine));
  connection->start();
  int no_delay = 0;
  socklen_t size = sizeof(no_delay);
  EXPECT_EQ(::getsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
  EXPECT_NE(no_delay, 0);
  for (std::uint8_t i = 0; i < 70; ++i) {
    connection->send({i});
    EXPECT_EQ(connection->is_behind(), i >= 4) << "more than four";
  }
  EXPECT_FALSE(connection->all_sent());
  own.poll();
  EXPECT_TRUE(connection->all_sent());
  connection->abandon();
  Bytes bytes(100), expected(64);
  asio::error_code end;
  bytes.resize(asio::read(other, asio::buffer(bytes), end));
  std::iota(expected.begin(), expected.end(), std::uint8_t{0});
  EXPECT_EQ(bytes, expected);
}

}  // namespace
}  // namespace lockstep::watchdog
