// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// metrics.jsonl of a run that goes on: cut back to its checkpoint, and compared with what that noted.
#include "common/digest.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"

namespace lockstep {
namespace {

std::string line(const std::string& json) {
  return json + "\n";
}
const std::string kStart = line(R"({"event":"start","world":2})");
const std::string kStep100 = line(R"({"event":"step","epoch":1,"step":100,"loss":0.5})");
const std::string kEpoch100 = line(R"({"event":"epoch","epoch":1,"step":100})");
const std::string kEvaluation100 = line(R"({"event":"evaluation","epoch":1,"step":100})");
const std::string kStep200 = line(R"({"event":"step","epoch":2,"step":200,"loss":0.25})");
const std::string kEnd = line(R"({"event":"end","seconds":3})");

class MetricsCutTest : public ::testing::Test {
 protected:
  void write(const std::string& text) {
    env_.remove_file("m");
    write_synced(env_, "m", std::as_bytes(std::span(text)));
  }
  MemoryEnv env_;
};

TEST_F(MetricsCutTest, WhatComesAfterTheStepGoes) {
  struct Row {
    std::string text;
    std::int64_t step;
    std::string left;
    bool evaluated = true;
  };
  const Row rows[] = {{kStart + kStep100 + kStep200 + kEnd, 150, kStart + kStep100},
                      {kStart + kStep100 + kStep200, 200, kStart + kStep100 + kStep200},
                      {kStep200 + kEnd, 200, kStep200},  // the run goes on
                      {kStep100 + kEpoch100 + kStep200, 100, kStep100 + kEpoch100},
                      {kStep100 + kEpoch100 + kStep200, 100, kStep100, false},
                      {kStep100 + kEvaluation100 + kStep200, 100, kStep100 + kEvaluation100},
                      {kStep100 + kEvaluation100 + kStep200, 100, kStep100, false},
                      {kStep100 + R"({"event":"step","st)", 500, kStep100},  // torn
                      {kStep100 + std::string(64, '\0'), 500, kStep100},
                      {kStep100 + R"({"event":"step","step":150})", 500, kStep100},  // without its line feed
                      {kStart + kStep100, 0, kStart},
                      {"", 0, ""}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    write(row.text);
    env_.start_trace();
    truncate_metrics(env_, "m", row.step, row.evaluated);
    EXPECT_EQ(text_of("m", env_), row.left);
    EXPECT_EQ(env_.trace().empty(), row.left == row.text) << "a file that is right is not rewritten";
  }
  EXPECT_NO_THROW(truncate_metrics(env_, "nowhere", 5));
}

TEST_F(MetricsCutTest, ARunHasEndedIfItsLastWholeLineSaysSo) {
  const std::string end = line(R"({"event":"end","step":200,"weights_sha256":"ab"})");
  struct Row {
    std::string text;
    bool has_ended;
  };
  const Row rows[] = {{kStep200 + end, true},
                      {end + R"({"event":"st)", true},  // torn
                      {kStep200 + end.substr(0, end.size() - 1), false},
                      {end + kStep200, false},
                      {end + "\n", false},
                      {"\n", false},
                      {"", false}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    write(row.text);
    const auto found = recorded_end(env_, "m");
    EXPECT_EQ(found.has_value(), row.has_ended);
    if (!found) continue;
    EXPECT_EQ(found->step, 200);
    EXPECT_EQ(found->weights_sha256, "ab");
  }
  EXPECT_FALSE(recorded_end(env_, "nowhere").has_value());
}

TEST(FirstLinesTest, LinesAreWholeAndMayBeEmpty) {
  struct Row {
    std::string text;
    std::int64_t lines;
    std::string found;
  };
  const Row rows[] = {{"a\nb\nc\n", 2, "a\nb\n"},
                      {"\nb\nc\n", 1, "\n"},
                      {"\nb\nc\n", 2, "\nb\n"},
                      {"a\nb", 2, "a\n"},
                      {"ab", 1, ""},
                      {"a\n", 0, ""},
                      {"", 1, ""}};
  for (const Row& row : rows) EXPECT_EQ(first_lines(row.text, row.lines), row.found) << row.text;
}

/// Note of a checkpoint of step 100, against a file.
class LostMetricsTest : public MetricsCutTest {
 protected:
  std::string lost(const std::string& text) {
    write(text);
    return look();
  }
  std::string look() { return lost_metrics(env_, "m", 100, noted_).value_or("nothing"); }

  std::string noted_text_ = kStart + kStep100;
  CheckpointPosition noted_{2, hex(sha256(std::as_bytes(std::span(noted_text_))))};
};

TEST_F(LostMetricsTest, LinesThatAreGoneOrCutOffAreCounted) {
  const std::string on = " lost; the run goes on, and its metrics with the steps after 100";
  EXPECT_EQ(look(), "m is gone: its 2 lines up to step 100 are" + on);
  noted_.count = 1;
  EXPECT_EQ(look(), "m is gone: its 1 line up to step 100 is" + on);
  noted_.count = 0;
  EXPECT_EQ(look(), "nothing") << "there was none";
  noted_.count = 2;
  EXPECT_EQ(lost(kStart + kStep100.substr(0, 9)), "m was cut off: 1 of its 2 lines up to step 100 are" + on);
  EXPECT_EQ(lost(""), "m was cut off: 2 of its 2 lines up to step 100 are" + on);
  EXPECT_EQ(lost(noted_text_), "nothing");
  EXPECT_EQ(lost(noted_text_ + kEpoch100 + kStep200 + "{\"ev"), "nothing") << "later lines and a torn end";
}

TEST_F(LostMetricsTest, ChangedLinesAreKeptAside) {
  const std::string changed = line(R"({"event":"start","world":3})") + kStep100;
  EXPECT_EQ(
      lost(changed),
      "m was changed: its 2 lines up to step 100 are not those that were written; kept as m.damaged; the "
      "run goes on, and its metrics with the steps after 100");
  EXPECT_EQ(text_of("m.damaged", env_), changed);
  noted_.count = 1;
  EXPECT_EQ(lost(changed),
            "m was changed: its 1 line up to step 100 is not the one that was written; kept as m.damaged-2; "
            "the run goes on, and its metrics with the steps after 100");
}

TEST_F(LostMetricsTest, WhatAnEarlierStartHasToldIsNotToldAgain) {
  EXPECT_EQ(lost(line(R"({"event":"lost","step":100,"lines_noted":2})")), "nothing");
  EXPECT_EQ(lost(line(R"({"event":"lost","step":50})") + line(R"({"event":"lost","step":100})")), "nothing");
  EXPECT_NE(lost(line(R"({"event":"lost","step":50,"lines_noted":2})")), "nothing") << "another loss";
  EXPECT_NE(lost(line(R"({"event":"lost","step":150,"lines_noted":3})")), "nothing")
      << "it is cut off with the lines after step 100";
  EXPECT_NE(lost(line(R"({"event":"step","what":"lost","step":100})")), "nothing") << "no event of a loss";
}

}  // namespace
}  // namespace lockstep
