// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/run/progress.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(ProgressTest, RanksOtherThanTheFirstAreSilent) {
  ::testing::internal::CaptureStdout();
  Progress progress = Progress::for_rank(1);
  progress.say("hello");
  progress.say(std::vector<Field>{{"hello"}});
  progress.start_epoch(1, 1, 0, 10, 10);
  progress.steps(1, 64, 2.3);
  progress.end_epoch();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace lockstep
