// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cutting metrics.jsonl back.
#include "trainer/checkpoint/metrics_cut.hpp"

#include "tests/common/files/memory_env.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

const std::string kStart = R"({"event":"start","world":2})"
                           "\n";
const std::string kStep100 = R"({"event":"step","epoch":1,"step":100,"loss":0.5})"
                             "\n";
const std::string kEpoch100 = R"({"event":"epoch","epoch":1,"step":100})"
                              "\n";
const std::string kStep200 = R"({"event":"step","epoch":2,"step":200,"loss":0.25})"
                             "\n";
const std::string kEnd = R"({"event":"end","seconds":3})"
                         "\n";

class MetricsCutTest : public ::testing::Test {
 protected:
  std::string cut(const std::string& text, std::int64_t step, bool epoch_line_written = true) {
    env_.remove_file("m");
    write_synced(env_, "m", std::as_bytes(std::span(text)));
    env_.start_trace();
    result_ = truncate_metrics(env_, "m", step, epoch_line_written);
    const auto& bytes = env_.file("m");
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  MemoryEnv env_;
  MetricsCut result_;
};

TEST_F(MetricsCutTest, LaterStepsGo) {
  EXPECT_EQ(cut(kStart + kStep100 + kStep200 + kEnd, 150), kStart + kStep100);
  EXPECT_EQ(result_.kept_lines, 2U);
  EXPECT_EQ(result_.dropped_lines, 2U);
}

TEST_F(MetricsCutTest, StepOfTheCheckpointStays) {
  EXPECT_EQ(cut(kStart + kStep100 + kStep200, 200), kStart + kStep100 + kStep200);
  EXPECT_TRUE(env_.trace().empty()) << "a file that is right is not rewritten";
}

TEST_F(MetricsCutTest, EndGoesForTheRunGoesOn) {
  EXPECT_EQ(cut(kStep200 + kEnd, 200), kStep200);
}

TEST_F(MetricsCutTest, EpochLineStaysOnlyIfItsEvaluationWasDone) {
  EXPECT_EQ(cut(kStep100 + kEpoch100 + kStep200, 100, true), kStep100 + kEpoch100);
  EXPECT_EQ(cut(kStep100 + kEpoch100 + kStep200, 100, false), kStep100);
}

TEST_F(MetricsCutTest, TornLastLineGoes) {
  EXPECT_EQ(cut(kStep100 + R"({"event":"step","st)", 500), kStep100);
  EXPECT_EQ(result_.dropped_lines, 1U);
  EXPECT_EQ(cut(kStep100 + std::string(64, '\0'), 500), kStep100);
}

TEST_F(MetricsCutTest, WholeLineWithoutItsNewlineGoesToo) {
  EXPECT_EQ(cut(kStep100 + R"({"event":"step","step":150})", 500), kStep100);
}

TEST_F(MetricsCutTest, StartAloneStays) {
  EXPECT_EQ(cut(kStart + kStep100, 0), kStart);
  EXPECT_EQ(cut("", 0), "");
}

TEST_F(MetricsCutTest, MissingFileIsAnEmptyOne) {
  EXPECT_EQ(truncate_metrics(env_, "nowhere", 5).kept_lines, 0U);
}

}  // namespace
}  // namespace lockstep
