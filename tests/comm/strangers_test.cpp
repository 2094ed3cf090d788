// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Strangers at the door of a rank: they change nothing, and take no place for long.
#include "comm/watch/heartbeat.hpp"
#include "comm/watch/message.hpp"
#include "tests/comm/heartbeat_ranks.hpp"
#include "tests/support/prelude.hpp"

#include <sys/resource.h>

namespace lockstep::watchdog {
namespace {

TEST_F(HeartbeatTest, StrangersAreDisconnectedAndChangeNothing) {
  expect_disconnected({'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'}, "another protocol");
  expect_disconnected(encode(Hello{draw_token(), 1, 2}), "another token");
  for (std::size_t byte = 0; byte < token.size(); ++byte) {
    Token nearly = token;
    nearly[byte] ^= 1U;
    expect_disconnected(encode(Hello{nearly, 1, 2}), "a token that differs in a bit");
  }
  expect_disconnected(encode(Hello{token, 2, 2}), "a rank that is not there");
  expect_disconnected(encode(Hello{token, 0, 2}), "a rank that is called", 1);
  expect_disconnected(encode(Hello{token, 0, 2}), "the rank itself");
  expect_disconnected(encode(Hello{token, 1, 3}), "a job of another size");
  expect_disconnected(encode(Leaving{71, 1, true}), "a message before the hello");
  expect_rank_1_undisturbed();
}

TEST_F(HeartbeatTest, ARankThatHasSaidGoodbyeAnswersNoHello) {
  of(0).heartbeat->send_last(Goodbye{});
  until("rank 0 is no longer watched", [this] { return !peer(1, 0).watched; });
  expect_disconnected(encode(Hello{token, 1, 2}), "a rank that is late");
}

class PatientHeartbeatTest : public HeartbeatTest {
 protected:
  PatientHeartbeatTest() : HeartbeatTest(std::numeric_limits<std::int64_t>::max()) {}
};

TEST_F(PatientHeartbeatTest, AThousandSilentStrangersCostNoRankItsPlace) {
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
  EXPECT_EQ(held(), 64);
  // The house is full; a rank whose connection broke finds a place.
  tcp::socket again = stranger();
  asio::write(again, asio::buffer(encode(Hello{token, 1, 2})));
  Beat last;
  last.where.step = 3;
  asio::write(again, asio::buffer(encode(last)));
  until("it finds a place", [this] { return peer(0, 1).where.step == 3; });
  EXPECT_EQ(disturbances(), 0);
  EXPECT_GE(held(), 1) << "or no rank was there to take a place";
  until("rank 1 takes its own place again", [&] { return is_closed(again); });
}

TEST_F(PatientHeartbeatTest, StrangersWhoHaveGoneTakeNoPlace) {
  tcp::socket silent = stranger();
  for (int i = 0; i < 100; ++i) {
    stranger();  // comes and goes
    context.restart();
    context.poll();
  }
  EXPECT_FALSE(is_closed(silent));
}

TEST_F(HeartbeatTest, ARankThatEndsDisconnectsStrangersToo) {
  tcp::socket silent = stranger();
  tick();
  of(0).heartbeat.reset();
  until("all is closed", [&] { return is_closed(silent) && peer(1, 0).dead; });
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
