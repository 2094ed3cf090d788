// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Trails and `lockstep prove`, as users meet them.
#include "common/text/json_text.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace lockstep::testing {
namespace {

/// A run of six steps, with a checkpoint behind each second one.
class ProveTest : public ::testing::Test {
 protected:
  ProveTest() { setenv("LOCKSTEP_ALLOW_INJECT", "1", 1); }
  ~ProveTest() override { unsetenv("LOCKSTEP_ALLOW_INJECT"); }

  std::string train_arguments(const std::string& run, const std::string& more = "") {
    return "train " + write_small_job(directory_) +
           " run.checkpoint_every_steps=2 run.keep.last=9 run.dir=" + path(run) + " " + more;
  }
  void train(const std::string& run, const std::string& more = "", int code = 0) {
    const auto outcome = lockstep(train_arguments(run, more));
    ASSERT_EQ(outcome.exit_code, code) << outcome.everything();
  }
  Outcome prove(const std::string& run, const std::string& more = "") {
    return lockstep("prove " + path(run) + " " + more);
  }
  std::string path(const std::string& name) const { return directory_.path(name); }
  std::string trail(const std::string& run) const { return read_text(path(run) + "/trail.bin"); }

  TemporaryDirectory directory_;
};

TEST_F(ProveTest, TrailsAreEqualForAnyNumberOfRanksStagesAndStarts) {
  train("one");
  const auto two = lockstep_on_ranks(2, train_arguments("two"));
  ASSERT_EQ(two.exit_code, 0) << two.everything();
  train("pipeline", "parallel.strategy=pipeline parallel.stages=2 parallel.backend=thread parallel.ranks=2");
  train("resumed", "train.max_steps=3");
  train("resumed", "parallel.threads=2");
  ASSERT_GT(trail("one").size(), 1000U);
  for (const char* other : {"two", "pipeline", "resumed"}) EXPECT_TRUE(trail("one") == trail(other)) << other;
}

TEST_F(ProveTest, RunOfTheGpusKernelsIsProvedByACpu) {
  train("cpu");
  train("gpu", "parallel.device=emulated");
  EXPECT_TRUE(trail("cpu") == trail("gpu"));
  for (const char* device : {"cpu", "emulated"}) {
    const auto proof = prove("gpu", std::string("--device ") + device);
    EXPECT_EQ(proof.exit_code, 0) << proof.everything();
    EXPECT_NE(proof.out.find("proved: steps 1 to 6\n"), std::string::npos) << proof.out;
  }
}

TEST_F(ProveTest, RunOfTwoRanksIsProvedByOneAndByFourOnAnotherPlace) {
  ASSERT_EQ(lockstep_on_ranks(2, train_arguments("run")).exit_code, 0);
  std::filesystem::rename(path("run"), path("moved"));
  const auto one = prove("moved");
  EXPECT_EQ(one.exit_code, 0) << one.everything();
  EXPECT_NE(one.out.find("proved: steps 1 to 6\n"), std::string::npos) << one.out;
  const auto four = prove("moved", "--ranks 4 --json");
  EXPECT_EQ(four.exit_code, 0) << four.everything();
  EXPECT_EQ(parse_json(four.out).at("steps_proved"), 6);
  const auto some = prove("moved", "--sample 2 --seed 5 --json");
  EXPECT_EQ(parse_json(some.out).at("steps_asked"), 2) << some.everything();
}

TEST_F(ProveTest, FlippedBitIsLocatedByAnyNumberOfRanks) {
  train("run", "inject.step=4 'inject.what=flip-bit momentum 5:12'");
  for (const char* more : {"--json", "--json --ranks 3"}) {
    const auto outcome = prove("run", more);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.everything();
    const auto first = parse_json(outcome.out).at("refuted").at(0);
    EXPECT_EQ(first.at("step"), 4);
    EXPECT_EQ(first.at("what"), "optimizer");
    EXPECT_EQ(first.at("parameter"), "conv1.weight");
    EXPECT_EQ(first.at("bit"), 12);
  }
}

TEST_F(ProveTest, GroupOfRanksStopsTogetherWhereOneIntervalIsRefuted) {
  train("run",
        "run.checkpoint_every_steps=0 run.keep.best=false inject.step=2 'inject.what=flip-bit weights 9:20'");
  const auto outcome = prove("run", "--ranks 3");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.everything();
  EXPECT_NE(
      outcome.out.find(
          "conv1.weight: the weights on rank 0 went into it with bit 20 of element [0, 0, 1, 4] flipped"),
      std::string::npos)
      << outcome.out;
}

TEST_F(ProveTest, DamagedCheckpointIsNamedAndItsStepsAreProvedFromTheOneBefore) {
  train("run");
  const std::string file = path("run") + "/checkpoints/step-00000004/model.safetensors";
  auto bytes = read_text(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  write_text(file, bytes);
  const auto outcome = prove("run");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.everything();
  EXPECT_NE(outcome.out.find("refuted at step 4: its checkpoint is damaged: "), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("proved: steps 1 to 6\n"), std::string::npos) << outcome.out;
}

TEST_F(ProveTest, OtherDataAreRefusedAndOtherJobsRefuted) {
  train("run");
  const std::string file = path("run") + "/job.yaml";
  const std::string job = read_text(file);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = job;
    changed.replace(changed.find(from), from.size(), to);
    write_text(file, changed);
    return prove("run");
  };
  const auto other_job = with("lr: 0.05", "lr: 0.06");
  EXPECT_EQ(other_job.exit_code, 1) << other_job.everything();
  EXPECT_NE(other_job.out.find(
                "job.yaml and trail.bin are not of one job: train.optimizer.lr (was 0.05, now 0.06)"),
            std::string::npos)
      << other_job.out;
  write_text(file, job);
  const auto of_made = prove("run", "--data " + path(""));
  EXPECT_EQ(of_made.exit_code, 2) << of_made.everything();
  EXPECT_NE(of_made.err.find("is made in memory, no directory holds it; leave --data out"), std::string::npos)
      << of_made.err;
}

TEST_F(ProveTest, StepsOfAnotherArithmeticOrWithoutATrailAreNamed) {
  train("run", "train.max_steps=2 run.trail=false");
  const auto none = prove("run");
  EXPECT_EQ(none.exit_code, 66) << none.everything();
  EXPECT_NE(none.err.find("this run left no trail"), std::string::npos) << none.err;
  train("run");
  const auto rest = prove("run");
  EXPECT_EQ(rest.exit_code, 66) << rest.everything();
  EXPECT_NE(rest.out.find("not proved: steps 1 to 2: not in the trail"), std::string::npos) << rest.out;
  EXPECT_NE(rest.out.find("proved: steps 3 to 6\n"), std::string::npos) << rest.out;
  EXPECT_EQ(prove("run", "--steps 3..").exit_code, 0);
  EXPECT_EQ(prove("run", "--steps 7").exit_code, 2);
}

}  // namespace
}  // namespace lockstep::testing
