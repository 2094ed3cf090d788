// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/run/progress.hpp"

#include "common/console/status_bar.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

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

/// 4 of 10 steps were taken before a resume; 100 of 160 samples and 2 steps since the last line.
TEST(ProgressTest, SpeedAndEtaAreOfTheStepsSinceTheStart) {
  ::testing::internal::CaptureStdout();
  Progress progress(Progress::Style::kBar);
  const auto before = Clock::now();
  progress.start_epoch(2, 3, 4, 10, 200'000);
  const auto between = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  progress.steps(1, 60, 2.5);  // drawn, the first
  std::this_thread::sleep_for(kBarInterval);
  const double least = seconds_since(between);
  progress.steps(2, 100, 1.25);
  const double most = seconds_since(before);
  progress.end_epoch();
  const std::string out = ::testing::internal::GetCapturedStdout(), line = out.substr(out.rfind("epoch"));
  EXPECT_EQ(line.find("epoch  2/3"), 0U) << out;
  EXPECT_NE(line.find("  7/10 steps"), std::string::npos) << out;
  EXPECT_NE(line.find("loss 1.2500"), std::string::npos) << out;
  int samples = 0, hours = 0, minutes = 0, seconds = 0;
  std::sscanf(line.c_str() + line.find("steps"), "steps %d samples/s", &samples);
  EXPECT_GE(samples + 1, 160 / most) << out;
  EXPECT_LE(samples, 160 / least) << out;
  std::sscanf(line.c_str() + line.find("ETA"), "ETA %d:%d:%d", &hours, &minutes, &seconds);
  const double eta = 3600.0 * hours + 60 * minutes + seconds;  // of 199,997 steps, where 3 took the time
  EXPECT_GE(eta + 1, least / 3 * 199'997) << out;
  EXPECT_LE(eta - 1, most / 3 * 199'997) << out;
}

TEST(ProgressTest, BehindTheLastStepNoTimeIsLeft) {
  ::testing::internal::CaptureStdout();
  Progress progress(Progress::Style::kBar);
  progress.start_epoch(1, 1, 0, 3, 3);
  std::this_thread::sleep_for(
      std::chrono::milliseconds(600));  // as a mean of three steps it would be a second
  progress.steps(3, 90, 1);
  progress.end_epoch();
  const std::string out = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(out.find("3/3 steps"), std::string::npos) << out;
  EXPECT_NE(out.find("ETA 0:00"), std::string::npos) << out;
}

}  // namespace
}  // namespace lockstep
