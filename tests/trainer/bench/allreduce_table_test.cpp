// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/bench/allreduce_table.hpp"

#include "trainer/bench/timing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace lockstep::bench {
namespace {

constexpr AllreduceRow kRow{1 << 20, 131072, "int64", {100e-6, 0}, {50e-6, 0}};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(AllreduceTableTest, BusBandwidthIsWhatEachLinkCarries) {
  AllreduceTable table(4);
  const std::string row = table.row(kRow);
  EXPECT_TRUE(contains(row, " 10.49  15.73 ")) << row;  // 1 MiB / 100 us, times 2 * 3 / 4
  EXPECT_TRUE(contains(row, " 20.97  31.46 ")) << row;
}

TEST(AllreduceTableTest, TheAverageIsOverBothHalvesOfAllRows) {
  AllreduceTable table(2);
  table.row({1000, 125, "int64", {1e-6, 0}, {0.5e-6, 0}});   // 1 and 2 GB/s
  table.row({1000, 250, "float", {0.25e-6, 0}, {1e-6, 0}});  // 4 and 1 GB/s
  EXPECT_EQ(table.foot().back(), "# Avg bus bandwidth    : 2 GB/s");
}

TEST(AllreduceTableTest, WithOneRankThereAreNoBandwidths) {
  AllreduceTable table(1);
  EXPECT_EQ(table.row({16 << 20, 2 << 20, "int64", {0.04e-6, 0}, {0.04e-6, 0}}),
            " 16777216   2097152 int64    0.04      -      -    0    0.04      -      -    0");
  EXPECT_EQ(table.foot().back(), "# Avg bus bandwidth    : none, with one rank nothing travels");
}

TEST(AllreduceTableTest, WrongElementsAreCountedInTheRowAndAtTheEnd) {
  AllreduceTable table(2);
  EXPECT_EQ(table.foot().front(), "# Out of bounds values : 0 OK");
  table.row({8, 1, "int64", {1e-6, 1}, {1e-6, 2}});
  EXPECT_EQ(table.foot().front(), "# Out of bounds values : 3 FAILED");
}

TEST(TimingTest, MedianIsInTheMiddle) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 30}), 3);
}

/// A turn of 35 ms is four calls of 10 ms; on a busy machine fewer, which take longer.
TEST(TimingTest, TimeIsOfOneCallAndOfEachCandidate) {
  const auto calls_of = [](int milliseconds) {
    return [milliseconds] { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); };
  };
  const auto times = interleaved_medians({calls_of(10), calls_of(1)}, 3, 0.035);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_GE(times[0], 0.010);
  EXPECT_LT(times[0], 0.034);
  EXPECT_LT(times[1], times[0]);
}

TEST(AllreduceTableTest, FitsEightyColumns) {
  AllreduceTable table(8);
  for (const std::string& line : AllreduceTable::head()) EXPECT_LE(line.size(), 80U) << line;
  const AllreduceRow slow{std::size_t{1} << 29, 1 << 27, "float", {9.876543, 0}, {12e-3, 0}};
  for (const AllreduceRow& row : {kRow, slow}) {
    const std::string line = table.row(row);
    EXPECT_EQ(line.size(), AllreduceTable::head().back().size()) << line;
    EXPECT_LE(line.size(), 80U) << line;
  }
}

}  // namespace
}  // namespace lockstep::bench
