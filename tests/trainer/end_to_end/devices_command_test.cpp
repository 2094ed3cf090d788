// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep devices, on machines with GPUs and without.
#include "common/json_text.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace lockstep::testing {
namespace {

TEST(DevicesCommandTest, ListsTheEmulatedDevice) {
  const auto text = lockstep("devices --emulated");
  EXPECT_EQ(text.exit_code, 0) << text.everything();
  EXPECT_EQ(text.out.substr(0, 6), "1 GPU;") << text.out;
  const auto json = lockstep("devices --emulated --json");
  EXPECT_EQ(json.exit_code, 0) << json.everything();
  const auto report = parse_json(json.out);
  ASSERT_EQ(report["devices"].size(), 1U) << json.out;
  EXPECT_GT(report["devices"][0]["memory_free_bytes"], 0) << json.out;
}

/// Without GPUs: the processors, one line that says why and what to do, exit code 69. With: the same number both ways.
TEST(DevicesCommandTest, TextAndJsonAgreeOnTheGpusOfThisMachine) {
  const auto text = lockstep("devices");
  const auto json = lockstep("devices --json");
  EXPECT_EQ(json.exit_code, text.exit_code) << text.everything() << json.everything();
  EXPECT_EQ(json.err, "");
  const auto report = parse_json(json.out);
  if (report.contains("reason")) {
    EXPECT_EQ(text.exit_code, 69) << text.everything();
    EXPECT_EQ(text.out.find("no GPU: ranks compute on processors\n"), 0U) << text.out;
    EXPECT_NE(text.out.find(report["processors"]["model"].get<std::string>()), std::string::npos) << text.out;
    EXPECT_GE(report["processors"]["cores"], 1) << json.out;
    EXPECT_EQ(text.err, "lockstep: " + report["reason"].get<std::string>() + "\n");
    EXPECT_EQ(std::count(text.err.begin(), text.err.end(), '\n'), 1) << text.err;
    EXPECT_NE(text.err.find("parallel.device=cpu"), std::string::npos) << text.err;
    EXPECT_EQ(report["devices"].size(), 0U);
  } else {
    EXPECT_EQ(text.exit_code, 0) << text.everything();
    EXPECT_EQ(text.out.find(std::to_string(report["devices"].size()) + " GPU"), 0U) << text.out;
  }
}

TEST(DevicesCommandTest, HiddenGpusAreNoGpus) {
  const auto outcome = run_shell("CUDA_VISIBLE_DEVICES= $LOCKSTEP_PROGRAM devices --json");
  EXPECT_EQ(outcome.exit_code, 69) << outcome.everything();
}

TEST(DevicesCommandTest, HelpDocumentsTheJson) {
  const auto help = lockstep("devices --help");
  EXPECT_EQ(help.exit_code, 0);
  for (const std::string key : {"memory_free_bytes", "performance_rank", "reason", "69"})
    EXPECT_NE(help.out.find(key), std::string::npos) << help.out;
}

}  // namespace
}  // namespace lockstep::testing
