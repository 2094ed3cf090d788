// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/progress.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(ProgressTest, DurationsReadLikeAClock) {
  EXPECT_EQ(format_duration(0.4), "0:00");
  EXPECT_EQ(format_duration(65), "1:05");
  EXPECT_EQ(format_duration(7384), "2:03:04");
}

TEST(ProgressTest, LargeNumbersAreGroupedByThousands) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(60000), "60,000");
  EXPECT_EQ(with_thousands(-1234567), "-1,234,567");
  EXPECT_EQ(with_thousands(-123), "-123");
}

TEST(ProgressTest, RanksOtherThanTheFirstAreSilent) {
  EXPECT_EQ(Progress::style_for(1), Progress::Style::kSilent);
  ::testing::internal::CaptureStdout();
  Progress progress(Progress::Style::kSilent);
  progress.say("hello");
  progress.start_epoch(1, 1, 0, 10, 10);
  progress.steps(1, 64, 2.3);
  progress.end_epoch();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace lockstep
