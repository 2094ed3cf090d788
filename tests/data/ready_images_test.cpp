// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Images that are made ahead, or by several threads at once, and kept while there is room.
#include "data/pictures/picture_store.hpp"
#include "tests/support/prelude.hpp"

#include <future>

namespace lockstep {
namespace {

using namespace std::chrono_literals;

/// 128 MiB of them, and 64 at least.
TEST(ReadyImagesTest, TheOldestMakeWayForNewOnes) {
  for (const auto& [bytes, kept] : {std::pair{std::size_t{2097153}, 64}, {1048576, 128}}) {
    std::atomic<int> made = 0;
    ReadyImages images(bytes, [&](std::int64_t, std::span<std::uint8_t>) { ++made; });
    std::vector<std::uint8_t> image(bytes);
    const auto made_after = [&](std::int64_t sample) {
      images.read(std::span(&sample, 1), image);
      return made.load();
    };
    for (int i = 0; i < kept; ++i) EXPECT_EQ(made_after(i), i + 1);
    EXPECT_EQ(made_after(0), kept) << "it is there";
    EXPECT_EQ(made_after(kept), kept + 1);
    EXPECT_EQ(made_after(1), kept + 1) << "the second oldest is there";
    EXPECT_EQ(made_after(0), kept + 2) << "the oldest is not";
  }
}

/// Also by threads that have been waiting.
TEST(ReadyImagesTest, WhatIsAskedForAheadIsMadeWithoutARead) {
  std::array<std::promise<void>, 2> made;
  ReadyImages images(1, [&](std::int64_t sample, std::span<std::uint8_t>) {
    made.at(static_cast<std::size_t>(sample)).set_value();
  });
  for (const std::int64_t sample : {0, 1}) {
    images.prefetch(std::span(&sample, 1));
    EXPECT_EQ(made.at(static_cast<std::size_t>(sample)).get_future().wait_for(30s),
              std::future_status::ready);
    std::this_thread::sleep_for(20ms);
  }
}

/// Two of them meet while they are made.
TEST(ReadyImagesTest, ImagesOfOneReadAreMadeAtOnce) {
  std::array<std::promise<void>, 4> begun;
  std::atomic<int> met = 0;
  ReadyImages images(1, [&](std::int64_t sample, std::span<std::uint8_t>) {
    const auto place = static_cast<std::size_t>(sample);
    begun.at(place).set_value();
    if (begun.at(place ^ 1U).get_future().wait_for(30s) == std::future_status::ready) ++met;
  });
  std::array<std::uint8_t, 2> to{};
  for (const std::array<std::int64_t, 2> pair : {std::array<std::int64_t, 2>{0, 1}, {2, 3}}) {
    images.read(pair, to);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(met.load(), 4);
}

}  // namespace
}  // namespace lockstep
