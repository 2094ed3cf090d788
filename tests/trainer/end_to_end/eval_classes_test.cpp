// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What `lockstep eval` says of classes, as text and as JSON, on any number of ranks.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace lockstep::testing {
namespace {

class EvalClassesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome trained =
        lockstep("train " + write_small_job(directory_) + " run.dir=" + run_ + " parallel.grain=16");
    ASSERT_EQ(trained.exit_code, 0) << trained.everything();
  }

  TemporaryDirectory directory_;
  std::string run_ = directory_.path("run");
};

TEST_F(EvalClassesTest, JsonIsTheSameOnAnyNumberOfRanks) {
  const Outcome alone = lockstep("eval " + run_ + " --classes --json");
  ASSERT_EQ(alone.exit_code, 0) << alone.everything();
  EXPECT_EQ(lockstep_on_ranks(3, "eval " + run_ + " --classes --json").out, alone.out);
  EXPECT_EQ(lockstep("eval " + run_ + " --classes --json --threads 2").out, alone.out);
  const auto json = nlohmann::json::parse(alone.out);
  EXPECT_EQ(json["format"], 1);
  std::int64_t samples = 0, correct = 0;
  for (std::size_t label = 0; label < json["confusion"].size(); ++label) {
    EXPECT_EQ(json["classes"][label]["correct"], json["confusion"][label][label]);
    correct += json["confusion"][label][label].get<std::int64_t>();
    for (const auto& count : json["confusion"][label]) samples += count.get<std::int64_t>();
  }
  EXPECT_EQ(samples, json["samples"].get<std::int64_t>());
  EXPECT_EQ(correct, json["correct"].get<std::int64_t>());
  EXPECT_EQ(json["accuracy"], read_metrics(run_).back()["test_accuracy"]);
  EXPECT_EQ(json["loss"], read_metrics(run_).back()["test_loss"]);
  EXPECT_EQ(json["weights_sha256"], read_metrics(run_).back()["weights_sha256"]);
}

TEST_F(EvalClassesTest, TextNamesClassesAndKeepsItsLastLine) {
  const Outcome plain = lockstep("eval " + run_), outcome = lockstep("eval " + run_ + " --classes");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.everything();
  EXPECT_NE(outcome.out.find("\nclasses:\n  class  samples  right  precision"), std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.last_line(), plain.last_line());
  EXPECT_EQ(plain.out.find("classes:"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::testing
