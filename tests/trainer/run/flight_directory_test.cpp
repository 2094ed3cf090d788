// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The directories of flight records: the last starts are kept, and what somebody else put there stays.
#include "comm/flight_record.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/run/run_directory.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class FlightDirectoryTest : public ::testing::Test {
 protected:
  void start() const {
    run_thread_ranks(2, [&](Communicator& comm) { open_flight_record(comm, run_.path()); });
  }
  std::string path(const std::string& name) const { return run_.path() + "/flight/" + name; }
  void put(const std::string& name) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name)) << "mine";
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(path(""))) found.insert(entry.path().filename());
    return found;
  }

  TemporaryDirectory run_;
};

TEST(FlightFileTest, OnlyNamesThatARankGivesAreOurs) {
  for (const char* ours : {"rank-0000.flight", "rank-0123.flight", "rank-12345.flight", "verdict.txt"})
    EXPECT_TRUE(is_flight_file(ours)) << ours;
  for (const char* other : {"rank-1.flight", "rank-0001.flight.bak", "rank-.flight", "rank--001.flight",
                            "notes.flight", "rank-0001 .flight", "verdict", "rank-00001.flight", ""})
    EXPECT_FALSE(is_flight_file(other)) << other;
}

TEST_F(FlightDirectoryTest, TheLastThreeStartsAreKept) {
  for (int i = 0; i < 5; ++i) start();
  EXPECT_EQ(names(), (std::set<std::string>{"0003", "0004", "0005"}));
  EXPECT_TRUE(fs::exists(path("0005/rank-0001.flight")));
}

TEST_F(FlightDirectoryTest, DirectoryThatHoldsAnythingElseStaysWhole) {
  start();
  put("0001/notes.txt");
  for (int i = 0; i < 4; ++i) start();
  EXPECT_TRUE(fs::exists(path("0001/notes.txt")) && fs::exists(path("0001/rank-0000.flight")));
  EXPECT_FALSE(fs::exists(path("0002")));
}

TEST_F(FlightDirectoryTest, WhatIsNoStartOfOursIsNeitherCountedNorTouched) {
  const TemporaryDirectory elsewhere;
  std::ofstream(elsewhere.path() + "/rank-0000.flight") << "mine";
  for (const char* name :
       {"7/rank-0000.flight", "00001/rank-0000.flight", "2147483647/rank-0000.flight", "0002"})
    put(name);
  fs::create_directory_symlink(elsewhere.path(), path("0001"));
  for (int i = 0; i < 5; ++i) start();
  EXPECT_EQ(names(),
            (std::set<std::string>{"0001", "0002", "00001", "0005", "0006", "0007", "2147483647", "7"}));
  EXPECT_TRUE(fs::is_symlink(path("0001")));
  EXPECT_TRUE(fs::exists(elsewhere.path() + "/rank-0000.flight"));
  for (const char* name : {"7", "00001", "2147483647"})
    EXPECT_TRUE(fs::exists(path(name) + "/rank-0000.flight")) << name;
}

}  // namespace
}  // namespace lockstep
