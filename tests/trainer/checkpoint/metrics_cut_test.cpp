// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cutting metrics.jsonl back.
#include "trainer/checkpoint/metrics_cut.hpp"

#include "common/digest.hpp"
#include "tests/common/memory_env.hpp"

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

/// What a checkpoint of step 100 noted, against a file.
class LostMetricsTest : public MetricsCutTest {
 protected:
  std::string lost(const std::string& text) {
    env_.remove_file("m");
    write_synced(env_, "m", std::as_bytes(std::span(text)));
    return look();
  }
  std::string look() { return lost_metrics(env_, "m", 100, noted_).value_or("nothing"); }

  std::string noted_text_ = kStart + kStep100;
  CheckpointMetrics noted_{2, hex(sha256(std::as_bytes(std::span(noted_text_))))};
};

TEST_F(LostMetricsTest, LaterLinesAndATornEndAreNoLoss) {
  EXPECT_EQ(lost(noted_text_), "nothing");
  EXPECT_EQ(lost(noted_text_ + kEpoch100 + kStep200 + "{\"ev"), "nothing");
}

TEST_F(LostMetricsTest, FileThatIsGoneIsTold) {
  EXPECT_EQ(look(),
            "m is gone: its 2 lines up to step 100 are lost; the run goes on, and its metrics with the steps "
            "behind 100");
}

TEST_F(LostMetricsTest, LinesThatAreCutOffAreCounted) {
  EXPECT_TRUE(
      lost(kStart + kStep100.substr(0, 9)).starts_with("m was cut off: 1 of its 2 lines up to step 100"));
  EXPECT_TRUE(lost("").starts_with("m was cut off: 2 of its 2 lines"));
}

TEST_F(LostMetricsTest, ChangedLinesAreKeptAside) {
  const std::string changed = R"({"event":"start","world":3})"
                              "\n" +
                              kStep100;
  EXPECT_NE(lost(changed).find("are not those that were written; kept as m.damaged; "), std::string::npos);
  const auto& kept = env_.file("m.damaged");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(kept.data()), kept.size()), changed);
}

TEST_F(LostMetricsTest, WhatAnEarlierStartHasToldIsNotToldAgain) {
  EXPECT_EQ(lost(R"({"event":"lost","step":100,"lines_noted":2})"
                 "\n"),
            "nothing");
  EXPECT_NE(lost(R"({"event":"lost","step":50,"lines_noted":2})"
                 "\n"),
            "nothing")
      << "that was another loss";
}

}  // namespace
}  // namespace lockstep
