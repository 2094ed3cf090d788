// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is written down comes out whole, also from the records of older programs.
#include "comm/rank_status.hpp"

#include "comm/flight_record.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "tests/support/test_settings.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
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
    EXPECT_EQ(activity.status().place_text(), what);
    activity.end_wait();
  }
}

TEST(RankActivityTest, WaitsForAllAreCountedWhateverTheyAreCalled) {
  RankActivity activity;
  activity.begin_wait("any words", Waiting::kForAll);
  EXPECT_EQ(activity.status().collective, 1U);
  activity.end_wait();
  activity.begin_wait("a barrier", Waiting::kForSome);
  EXPECT_EQ(activity.status().collective, 1U);
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
  /// As a rank that is killed does.
  void leave_a_record(int rank) const {
    const pid_t child = fork();
    if (child == 0) {
      FlightRecorder recorder(directory, {rank, 8, "node7", "cpu"});
      recorder.note(FlightEvent::kPhase, clock_ns(), {.step = 5});
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  std::string directory;
};

TEST_F(FlightRecordTest, ComesOutAsItWentIn) {
  const std::string what = "its group: the gradients' all-reduce through host memory";
  {
    RankActivity activity;
    activity.record_with(
        std::make_unique<FlightRecorder>(directory, FlightRecorder::Who{3, 4, "node7", "cpu (AVX-512)"}),
        directory);
    activity.begin_step(12);
    activity.begin_wait(what, Waiting::kForSome);
    const auto last = last_status(directory, 3);
    ASSERT_TRUE(last && last->waits());
    EXPECT_EQ(last->place_text(), what);
  }
  const auto record = read(flight_file(directory, 3));
  EXPECT_EQ(record.rank, 3);
  EXPECT_EQ(record.host, "node7");
  ASSERT_EQ(record.events.size(), 2U);
  EXPECT_EQ(record.events.back().entry.step, 12);
  EXPECT_EQ(describe(record.events.back().entry), "waits in " + what + " (collective 0)");
}

/// Nothing in the directory of a run is mapped: its file system may stall, or its server be lost.
TEST_F(FlightRecordTest, LiesInTheMemoryOfTheMachineUntilItsRankEnds) {
  {
    FlightRecorder recorder(directory, {1, 2, "node7", "cpu"});
    EXPECT_FALSE(std::filesystem::exists(flight_file(directory, 1)));
    EXPECT_EQ(read(flight_file(flight_memory(directory), 1)).rank, 1);
  }
  EXPECT_EQ(read(flight_file(directory, 1)).rank, 1);
  EXPECT_FALSE(std::filesystem::exists(flight_memory(directory)));
}

TEST_F(FlightRecordTest, OfAKilledRankIsHandedOverByAnother) {
  leave_a_record(0);
  leave_a_record(7);
  hand_over_flight_records(directory, std::vector{7});
  EXPECT_EQ(read(flight_file(directory, 7)).events.front().entry.step, 5);
  EXPECT_TRUE(std::filesystem::exists(flight_file(flight_memory(directory), 0)));
  hand_over_flight_records(directory);
  EXPECT_EQ(read(flight_file(directory, 0)).rank, 0);
  EXPECT_FALSE(std::filesystem::exists(flight_memory(directory)));
}

TEST_F(FlightRecordTest, OfARunThatIsGoneIsRemoved) {
  leave_a_record(0);
  forget_lost_flight_records();
  EXPECT_TRUE(std::filesystem::exists(flight_memory(directory)));
  std::filesystem::remove_all(directory);
  forget_lost_flight_records();
  EXPECT_FALSE(std::filesystem::exists(flight_memory(directory)));
}

/// The first and the last folder are those of ranks that were killed before, and while, they wrote whose they are.
TEST_F(FlightRecordTest, FoldersThatNameNoDirectoryGoAndHoldBackNoOthers) {
  const std::string memory = flight_memory(directory), of_user = memory.substr(0, memory.rfind('-') + 1);
  const std::string first = of_user + std::string(16, '!'), last = of_user + std::string(16, '~');
  std::filesystem::create_directory(first);
  std::filesystem::create_directory(last);
  std::filesystem::permissions(first, std::filesystem::perms::owner_all);
  std::filesystem::permissions(last, std::filesystem::perms::owner_all);
  std::ofstream(last + "/directory") << "/tm";
  leave_a_record(0);
  std::filesystem::remove_all(directory);
  forget_lost_flight_records();
  for (const std::string& folder : {first, memory, last})
    EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
}

TEST_F(FlightRecordTest, FolderOfOthersIsNotWrittenInto) {
  const std::string elsewhere = directory + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  std::filesystem::create_directory_symlink(elsewhere, flight_memory(directory));
  const FlightRecorder recorder(directory, {2, 3, "node7", "cpu"});
  std::filesystem::remove(flight_memory(directory));
  EXPECT_EQ(read(flight_file(directory, 2)).rank, 2);
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
}

TEST_F(FlightRecordTest, OfVersion1CanStillBeRead) {
  const auto record = read(test::source_path("tests/fuzz/corpus/flight/two-events"));
  EXPECT_EQ(record.rank, 0);
  EXPECT_EQ(record.world_size, 3);
  EXPECT_EQ(record.device, "cpu");
  ASSERT_EQ(record.events.size(), 2U);
  EXPECT_EQ(record.events[0].entry.step, 7);
  EXPECT_EQ(record.events[0].entry.bucket, 1);
  EXPECT_EQ(describe(record.events[1].entry), "waits in a barrier (collective 3)");
}

TEST_F(FlightRecordTest, OfALaterVersionIsRefused) {
  const auto path = test::source_path("tests/fuzz/corpus/flight/two-events");
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

// What threads wait for a processor is counted, and nothing else.

namespace {

constexpr std::int64_t kWaited = 10'000'000;
constexpr std::chrono::seconds kPatience{60};

void keep_to_first_core() {
  cpu_set_t allowed, first;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&first);
  for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++core) {
    if (CPU_ISSET(core, &allowed)) CPU_SET(core, &first);
  }
  sched_setaffinity(0, sizeof first, &first);
}

/// Some kernels are built without: zeros, or no file.
bool kernel_counts() {
  std::int64_t running = 0;
  for (int i = 0; i < 1000 && running == 0; ++i) {
    std::ifstream("/proc/thread-self/schedstat") >> running;
    sched_yield();
  }
  return running > 0;
}

/// Of that one of two without rest that waited longer for the core that they share.
TEST(ProcessorWaitTest, ThreadsThatShareACoreWaitForIt) {
  if (!kernel_counts()) GTEST_SKIP() << "this kernel does not count it";
  ProcessorWait both;
  std::atomic<int> ready{0};
  std::atomic<bool> ended{false};
  const auto compute = [&] {
    keep_to_first_core();
    both.count_this_thread();
    ++ready;
    while (!ended) {
    }
  };
  std::thread one(compute), other(compute);
  while (ready < 2) std::this_thread::yield();
  both.start();
  const auto start = std::chrono::steady_clock::now();
  std::int64_t waited = 0;
  while ((waited = both.since_start()) < kWaited && std::chrono::steady_clock::now() - start < kPatience)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ended = true;
  one.join(), other.join();
  EXPECT_GE(waited, kWaited) << "each of them runs for half of the time at most";
}

TEST(ProcessorWaitTest, NobodyIsCountedUnlessHeAsks) {
  ProcessorWait nobody;
  nobody.start();
  EXPECT_EQ(nobody.since_start(), 0);
}

}  // namespace

}  // namespace lockstep
