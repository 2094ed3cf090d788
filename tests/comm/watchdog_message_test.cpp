// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What travels between watchdogs comes out as it went in; nothing else comes out at all.
#include "comm/watchdog/addresses.hpp"
#include "comm/watchdog/message.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

namespace lockstep::watchdog {
namespace {

Beat sample_beat() {
  Beat beat{.sent_ns = 12, .echo_ns = 7, .held_ns = 3, .where = {.step = 5, .phase = Phase::kReducing}};
  std::string_view("a barrier").copy(beat.where.place.data(), 9);
  beat.where.waiting = Waiting::kForAll;
  beat.witnessed_rank = 2;
  beat.witnessed_state = 'T';
  beat.traced = true;
  return beat;
}

std::optional<Message> parse(std::span<const std::uint8_t> bytes) {
  Parser parser;
  return parser.feed(bytes) ? parser.next() : std::nullopt;
}

TEST(WatchdogMessageTest, ComesOutAsItWentIn) {
  const auto beat = parse(encode(sample_beat()));
  ASSERT_TRUE(beat && std::holds_alternative<Beat>(*beat));
  EXPECT_EQ(encode(*beat), encode(sample_beat()));
  EXPECT_EQ(std::get<Beat>(*beat).where.place_text(), "a barrier");
  EXPECT_EQ(std::get<Beat>(*beat).where.waiting, Waiting::kForAll);
  const Arrivals arrivals{{{.step = 3, .bucket = 1, .arrived_ns = 99, .queued_ns = 7}, {.step = 4}}};
  EXPECT_EQ(encode(*parse(encode(arrivals))), encode(arrivals));
  EXPECT_EQ(std::get<Arrivals>(*parse(encode(arrivals))).list[0].queued_ns, 7);
  EXPECT_TRUE(std::holds_alternative<Goodbye>(*parse(encode(Goodbye{}))));
  EXPECT_EQ(std::get<Leaving>(*parse(encode(Leaving{71, 3, true}))).because, 3);
}

TEST(WatchdogMessageTest, PiecesOfAnySizeAreWaitedFor) {
  std::vector<std::uint8_t> bytes = encode(Hello{{1, 2, 3}, 1, 4});
  const auto second = encode(sample_beat());
  bytes.insert(bytes.end(), second.begin(), second.end());
  for (const std::size_t piece : {1U, 3U, 7U, 100U}) {
    Parser parser;
    std::vector<std::size_t> kinds;
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      ASSERT_TRUE(parser.feed(std::span(bytes).subspan(i, std::min(piece, bytes.size() - i))));
      while (const auto message = parser.next()) kinds.push_back(message->index());
    }
    EXPECT_EQ(kinds, (std::vector<std::size_t>{0, 1})) << piece;
    EXPECT_FALSE(parser.is_bad());
  }
}

TEST(WatchdogMessageTest, WhatIsNoMessageEndsTheConversation) {
  const auto good = encode(sample_beat());
  const auto expect_bad = [](std::vector<std::uint8_t> bytes, const char* why) {
    Parser parser;
    parser.feed(bytes);
    EXPECT_FALSE(parser.next()) << why;
    EXPECT_TRUE(parser.is_bad()) << why;
    EXPECT_FALSE(parser.feed(bytes)) << why;
  };
  const std::string http = "GET / HTTP/1.1\r\n\r\n";
  expect_bad({http.begin(), http.end()}, "another protocol");
  auto bytes = good;
  bytes[3] ^= 0x10U;
  expect_bad(bytes, "another version");
  bytes = good;
  bytes[3] |= 0x0fU;
  expect_bad(bytes, "an unknown kind");
  bytes = good;
  bytes[7] = 1;
  expect_bad(bytes, "a size of 16 MiB");
  bytes = good;
  bytes[kHeadBytes + 32] = 200;
  expect_bad(bytes, "an unknown phase");
  bytes = encode(Goodbye{});
  bytes[4] = 1;
  bytes.push_back(0);
  expect_bad(bytes, "more than belongs to it");
  bytes = encode(Arrivals{});
  const std::uint32_t many = 1'000'000;
  std::memcpy(bytes.data() + kHeadBytes, &many, 4);
  expect_bad(bytes, "a list longer than the message");
  bytes = good;
  std::fill(bytes.begin() + kHeadBytes + 54, bytes.end(), std::uint8_t{'x'});
  expect_bad(bytes, "a text without an end");
}

TEST(WatchdogMessageTest, TokensDifferAndAreCompared) {
  const Token token = draw_token();
  EXPECT_TRUE(equal(token, Token(token)));
  EXPECT_FALSE(equal(token, draw_token()));
  Token last = token;
  last.back() ^= 1U;
  EXPECT_FALSE(equal(token, last));
}

TEST(WatchdogAddressesTest, InterfacesOfMpiAreChosenAndBridgesComeLast) {
  const std::vector<Interface> all = {
      {"lo", 0x7f000001, true}, {"docker0", 0xac110001}, {"eth0", 0x0a000005}, {"ib0", 0x0a010005}};
  const auto names = [&](std::string_view included) {
    std::vector<std::string> found;
    for (const auto& interface : usable(all, included)) found.push_back(interface.name);
    return found;
  };
  EXPECT_EQ(names(""), (std::vector<std::string>{"eth0", "ib0", "docker0"}));
  EXPECT_EQ(names("ib0"), std::vector<std::string>{"ib0"});
  EXPECT_EQ(names("10.0.0.0/24"), std::vector<std::string>{"eth0"});
  EXPECT_EQ(names("eth9,10.1.0.0/16"), std::vector<std::string>{"ib0"});
  EXPECT_EQ(names("nonsense/99").size(), 3U);
  EXPECT_EQ(address_text(0x0a000005), "10.0.0.5");
}

}  // namespace
}  // namespace lockstep::watchdog
