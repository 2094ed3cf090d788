// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is written down comes out whole, also from the records of older programs.
#include "comm/activity/flight_record.hpp"

#include "comm/activity/fixed_text.hpp"
#include "comm/activity/flight_recorder.hpp"
#include "common/error.hpp"
#include "common/files/env.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {
namespace {

template <std::size_t Size>
std::string as_put(const std::string& text) {
  std::array<char, Size> field{};
  field.fill('x');
  put_text(text, field);
  EXPECT_EQ(field.back(), '\0');
  return std::string(text_in(field));
}

TEST(FixedTextTest, IsWholeOrEndsWithAWordAndDots) {
  EXPECT_EQ(as_put<16>("a barrier"), "a barrier");
  EXPECT_EQ(as_put<16>("fifteen letters"), "fifteen letters");
  EXPECT_EQ(as_put<16>("fifteen letters and more"), "fifteen...");
  EXPECT_EQ(as_put<16>("sixteenletters+and+more"), "sixteenlette...");
  EXPECT_EQ(as_put<16>("elfe Buchst\u00e4\u00e4ben"), "elfe Buchst...") << "no half character";
  EXPECT_EQ(as_put<16>(""), "");
}

TEST(RankActivityTest, WhatIsWaitedForIsWhole) {
  RankActivity activity;
  // The longest that there are.
  for (const std::string what : {"its group: the gradients' all-reduce through host memory",
                                 "the copy of gradients from this rank's GPU",
                                 "its group: the weights of stage 12 (layers 100-199) on rank 1023"}) {
    activity.begin_wait(what, Waiting::kForSome);
    EXPECT_EQ(activity.whereabouts().place_text(), what);
    activity.end_wait();
  }
}

TEST(RankActivityTest, WaitsForAllAreCountedWhateverTheyAreCalled) {
  RankActivity activity;
  activity.begin_wait("any words", Waiting::kForAll);
  EXPECT_EQ(activity.whereabouts().collective, 1U);
  activity.end_wait();
  activity.begin_wait("a barrier", Waiting::kForSome);
  EXPECT_EQ(activity.whereabouts().collective, 1U);
}

/// A record of its own in a directory that goes away.
class FlightRecordTest : public ::testing::Test {
 protected:
  FlightRecordTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "lockstep-flight-XXXXXX";
    directory = mkdtemp(pattern.data());
  }
  ~FlightRecordTest() override { std::filesystem::remove_all(directory); }
  static FlightRecord read(const std::string& path) {
    return read_flight_record(Env::posix().read(path), path);
  }
  std::string directory;
};

TEST_F(FlightRecordTest, ComesOutAsItWentIn) {
  const std::string what = "its group: the gradients' all-reduce through host memory";
  RankActivity activity;
  activity.record_with(std::make_unique<FlightRecorder>(flight_file(directory, 3),
                                                        FlightRecorder::Who{3, 4, "node7", "cpu (AVX-512)"}),
                       directory);
  activity.begin_step(12);
  activity.begin_wait(what, Waiting::kForSome);
  const auto record = read(flight_file(directory, 3));
  EXPECT_EQ(record.rank, 3);
  EXPECT_EQ(record.host, "node7");
  ASSERT_EQ(record.events.size(), 2U);
  EXPECT_EQ(record.events.back().entry.step, 12);
  EXPECT_EQ(describe(record.events.back().entry), "waits in " + what + " (collective 0)");
  const auto last = last_whereabouts(directory, 3);
  ASSERT_TRUE(last && last->waits());
  EXPECT_EQ(last->place_text(), what);
}

TEST_F(FlightRecordTest, OfVersion1CanStillBeRead) {
  const auto record =
      read(std::string(std::getenv("LOCKSTEP_SOURCE_DIR")) + "/tests/fuzz/corpus/flight/two-events");
  EXPECT_EQ(record.rank, 0);
  EXPECT_EQ(record.world_size, 3);
  EXPECT_EQ(record.device, "cpu");
  ASSERT_EQ(record.events.size(), 2U);
  EXPECT_EQ(record.events[0].entry.step, 7);
  EXPECT_EQ(record.events[0].entry.bucket, 1);
  EXPECT_EQ(describe(record.events[1].entry), "waits in a barrier (collective 3)");
}

TEST_F(FlightRecordTest, OfALaterVersionIsRefused) {
  const auto path = std::string(std::getenv("LOCKSTEP_SOURCE_DIR")) + "/tests/fuzz/corpus/flight/two-events";
  auto bytes = Env::posix().read(path);
  bytes[8] = std::byte{3};
  try {
    read_flight_record(bytes, "later.flight");
    FAIL() << "it was read";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("a flight record of version 3, this program reads 1 to 2"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockstep
