// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Packets between watchdogs arrive as they were sent; nothing else arrives at all.
#include "comm/watch/message.hpp"
#include "common/error.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::watchdog {
namespace {

using Bytes = std::vector<std::uint8_t>;

Beat sample_beat() {
  Beat beat{.sent_ns = 12, .where = {.step = 5, .phase = Phase::kReducing}};
  std::string_view("a barrier").copy(beat.where.place.data(), 9);
  beat.where.waiting = Waiting::kForAll;
  beat.witnessed_rank = 2;
  beat.witnessed_state = 'T';
  beat.traced = true;
  return beat;
}

/// Values one after the other, as they lie in memory.
Bytes bytes_of(const auto&... values) {
  Bytes all;
  const auto add = [&](const auto& value) {
    const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(value)>>(value);
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  (add(values), ...);
  return all;
}

std::optional<Message> parse(std::span<const std::uint8_t> bytes) {
  Parser parser;
  parser.feed(bytes);
  return parser.next();
}

TEST(WatchdogMessageTest, ComesOutAsItWentIn) {
  const auto beat = parse(encode(sample_beat()));
  ASSERT_TRUE(beat && std::holds_alternative<Beat>(*beat));
  EXPECT_EQ(encode(*beat), encode(sample_beat()));
  EXPECT_EQ(std::get<Beat>(*beat).where.place_text(), "a barrier");
  EXPECT_EQ(std::get<Beat>(*beat).where.waiting, Waiting::kForAll);
  const Relay relay{{{3, 99, sample_beat()}, {4, 5, Died{}}}};
  EXPECT_EQ(encode(*parse(encode(relay))), encode(relay));
  EXPECT_EQ(std::get<Relay>(*parse(encode(relay))).list[0].age_ns, 99);
  EXPECT_TRUE(std::holds_alternative<Goodbye>(*parse(encode(Goodbye{}))));
  EXPECT_EQ(std::get<Leaving>(*parse(encode(Leaving{71, 3, true}))).because, 3);
}

/// Ranks of one job may be of builds that differ: another order is another version.
TEST(WatchdogMessageTest, FieldsOfThisVersionLieInThisOrder) {
  using Head = std::array<char, 4>;
  const Token token{1, 2, 3};
  EXPECT_EQ(encode(Hello{token, 1, 4}), bytes_of(Head{'L', 'S', 'H', 0x60}, 24U, token, 1U, 4U));
  EXPECT_EQ(encode(Leaving{71, 3, true}), bytes_of(Head{'L', 'S', 'H', 0x62}, 9U, 71, 3, true));
  EXPECT_EQ(encode(Goodbye{}), bytes_of(Head{'L', 'S', 'H', 0x63}, 0U));
  EXPECT_EQ(encode(Relay{{{3, 99, Died{}}}}),
            bytes_of(Head{'L', 'S', 'H', 0x65}, 17U, 1U, 3U, std::int64_t{99}, '\4'));
  Beat beat{.sent_ns = 1, .where = {.step = 2, .collective = 3, .bucket = 4, .since_ns = 5}};
  beat.where.phase = Phase::kSaving;
  beat.where.waiting = Waiting::kForSome;
  beat.witnessed_rank = 6;
  beat.witnessed_state = 'T';
  const std::int64_t sent = 1, step = 2, collective = 3, since = 5;
  EXPECT_EQ(encode(beat), bytes_of(Head{'L', 'S', 'H', 0x61}, 204U, sent, step, '\6', '\1', collective, 4,
                                   since, beat.where.place, 6, 'T', false, beat.device));
}

TEST(WatchdogMessageTest, RelaysTakeAsManyMessagesAsTheyNeed) {
  std::vector<Relayed> list;
  for (std::uint32_t rank = 0; rank < 2000; ++rank) list.push_back({rank, 5, Goodbye{}});
  Parser parser;
  parser.feed(encode_relays(list));
  std::vector<std::uint32_t> ranks;
  int messages = 0;
  for (; const auto message = parser.next(); ++messages)
    for (const Relayed& relayed : std::get<Relay>(*message).list) ranks.push_back(relayed.rank);
  ASSERT_EQ(ranks.size(), list.size());
  for (std::uint32_t rank = 0; rank < 2000; ++rank) EXPECT_EQ(ranks[rank], rank);
  EXPECT_GT(messages, 1);
  EXPECT_TRUE(encode_relays({}).empty());
  list.resize(kMostRelayed);
  EXPECT_TRUE(parse(encode(Relay{list})));
  list.push_back(list.front());
  EXPECT_THROW(encode(Relay{list}), InternalError);
  EXPECT_THROW(encode(Relay{std::vector<Relayed>(kMostRelayed)}), InternalError) << "bytes of so many beats";
  list.assign(301, Relayed{1, 0, Beat{}});
  list.insert(list.end(), 8, Relayed{1, 0, Leaving{}});
  list.insert(list.end(), 3, Relayed{1, 0, Died{}});
  EXPECT_TRUE(parse(encode(Relay{list}))) << "64 KiB: 4 + 301 * 217 + 8 * 22 + 3 * 13 bytes";
  EXPECT_THROW(encode(Relay{{{1, 0, Hello{}}}}), InternalError);
  EXPECT_THROW(encode(Relay{{{1, 0, Relay{}}}}), InternalError);
}

TEST(WatchdogMessageTest, PiecesOfAnySizeAreWaitedFor) {
  Bytes bytes = encode(Hello{{1, 2, 3}, 1, 4});
  const auto second = encode(sample_beat());
  bytes.insert(bytes.end(), second.begin(), second.end());
  for (const std::size_t piece : {1U, 3U, 7U, 100U}) {
    Parser parser;
    std::vector<std::size_t> kinds;
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      parser.feed(std::span(bytes).subspan(i, std::min(piece, bytes.size() - i)));
      while (const auto message = parser.next()) kinds.push_back(message->index());
    }
    EXPECT_EQ(kinds, (std::vector<std::size_t>{0, 1})) << piece;
    EXPECT_FALSE(parser.is_bad());
  }
}

TEST(WatchdogMessageTest, WhatIsNoMessageEndsTheConversation) {
  const auto expect_bad = [](const Bytes& bytes, const char* why) {
    Parser parser;
    parser.feed(bytes);
    EXPECT_FALSE(parser.next()) << why;
    EXPECT_TRUE(parser.is_bad()) << why;
  };
  const auto with = [](Bytes bytes, std::size_t at, std::size_t value) {
    bytes[at] = static_cast<std::uint8_t>(value);
    return bytes;
  };
  const Bytes good = encode(sample_beat());
  expect_bad({'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'}, "another protocol");
  expect_bad(with(good, 3, good[3] ^ 0x10U), "another version");
  for (std::size_t kind = std::variant_size_v<Message>; kind < 16; ++kind)
    expect_bad(with(encode(Hello{}), 3, (good[3] & 0xf0U) | kind), "an unknown kind");
  expect_bad(with(good, 7, 1), "a size of 16 MiB");
  expect_bad(with(good, kHeadBytes + 16, kPhases), "an unknown phase");
  EXPECT_TRUE(parse(with(good, kHeadBytes + 16, kPhases - 1)));
  expect_bad(with(good, kHeadBytes + 17, kWaitings), "an unknown wait");
  EXPECT_TRUE(parse(with(good, kHeadBytes + 17, kWaitings - 1)));
  expect_bad(with(good, kHeadBytes + 139, 2), "a truth that is neither");
  Bytes bytes = with(good, 4, good[4] - 1U);
  bytes.pop_back();
  expect_bad(bytes, "less than belongs to it");
  for (const auto index : {Message(Hello{}).index(), Message(Relay{}).index()})
    expect_bad(with(encode(Relay{{{3, 99, Goodbye{}}}}), kHeadBytes + 16, index),
               "a kind that is not relayed");
  for (const std::uint32_t size : {65'536U, 65'537U}) {
    bytes = encode(Relay{});
    std::memcpy(bytes.data() + 4, &size, 4);
    Parser parser;
    parser.feed(bytes);
    EXPECT_FALSE(parser.next());
    EXPECT_EQ(parser.is_bad(), size > 65'536U) << "what is too long is not waited for";
  }
  bytes = with(encode(Goodbye{}), 4, 1);
  bytes.push_back(0);
  expect_bad(bytes, "more than belongs to it");
  bytes = encode(Relay{});
  const std::uint32_t many = 1'000'000;
  std::memcpy(bytes.data() + kHeadBytes, &many, 4);
  expect_bad(bytes, "a list longer than the message");
  expect_bad(with(encode(Relay{}), kHeadBytes, 1), "a list of one that is not there");
  const auto goodbyes = [](std::size_t count) {
    return encode(Relay{std::vector<Relayed>(count, Relayed{1, 0, Goodbye{}})});
  };
  bytes = with(goodbyes(kMostRelayed), kHeadBytes, 1);  // 1025
  const Bytes one = goodbyes(1);
  bytes.insert(bytes.end(), one.begin() + kHeadBytes + 4, one.end());
  const auto size = static_cast<std::uint32_t>(bytes.size() - kHeadBytes);
  std::memcpy(bytes.data() + 4, &size, 4);
  expect_bad(bytes, "a list longer than any");
  bytes = good;
  std::fill(bytes.begin() + kHeadBytes + 38, bytes.begin() + kHeadBytes + 38 + kPlaceBytes,
            std::uint8_t{'x'});
  expect_bad(bytes, "a text without an end");
  bytes = good;
  std::fill(bytes.end() - 64, bytes.end(), std::uint8_t{'x'});
  expect_bad(bytes, "a device without an end");
}

}  // namespace
}  // namespace lockstep::watchdog
