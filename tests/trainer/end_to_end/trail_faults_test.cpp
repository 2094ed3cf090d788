// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Trails on disks that are full or cannot be read: the run says so and ends with 74, and what goes on from there
/// leaves the trail of an undisturbed run, byte for byte.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

/// Ninety steps, whose trail is 24 KB long; nothing else in the run's directory grows beyond 10 KB.
class TrailFaultsTest : public ::testing::Test {
 protected:
  TrailFaultsTest() {
    const auto outcome = run_shell(train("calm"));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.everything();
    weights_ = outcome.last_line();
  }

  std::string train(const std::string& run, const std::string& more = "") const {
    return program_ + " train " + job_ + " run.dir=" + path(run) + " " + more;
  }
  /// While no file may grow beyond 10 KB.
  static Outcome on_a_full_disk(const std::string& command) {
    return run_shell("ulimit -f 20; exec " + command);
  }
  /// From the `at`-th time that the trail is read, `count` times; 0: for good.
  static std::string with_read_faults(int at, int count) {
    return "LD_PRELOAD=" + std::string(std::getenv("LOCKSTEP_READ_FAULTS")) +
           " READ_FAULTS_PATH=trail.bin READ_FAULTS_AT=" + std::to_string(at) +
           (count > 0 ? " READ_FAULTS_COUNT=" + std::to_string(count) : "") + " READ_FAULTS_ERRNO=5 ";
  }
  std::string path(const std::string& run) const { return directory_.path(run); }
  std::string trail(const std::string& run) const { return read_text(path(run) + "/trail.bin"); }

  /// The run goes on, and ends as if nothing had been.
  void expect_to_recover(const std::string& run) {
    const auto again = run_shell(train(run));
    EXPECT_EQ(again.exit_code, 0) << again.everything();
    EXPECT_EQ(again.last_line(), weights_);
    EXPECT_TRUE(trail(run) == trail("calm"));
    EXPECT_FALSE(fs::exists(path(run) + "/trail.bin.damaged"));
    const auto proof = run_shell(program_ + " prove " + path(run));
    EXPECT_EQ(proof.exit_code, 0) << proof.everything();
  }

  TemporaryDirectory directory_;
  std::string program_ = std::getenv("LOCKSTEP_PROGRAM");
  std::string job_ = write_small_job(directory_) +
                     " parallel.backend=thread data.train_samples=90 data.test_samples=9 "
                     "data.global_batch=32 parallel.grain=16 train.epochs=30 run.checkpoint_every_steps=0 "
                     "run.keep.best=false run.log_every_steps=1000";
  std::string weights_;
};

TEST_F(TrailFaultsTest, AFullDiskStopsTheRunAndNamesTheTrail) {
  const auto outcome = on_a_full_disk(train("stop", "run.on_save_error=stop"));
  EXPECT_EQ(outcome.exit_code, 74) << outcome.everything();
  EXPECT_NE(outcome.err.find("trail.bin: cannot be written: File too large"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.out.find("done"), std::string::npos) << outcome.out;
  expect_to_recover("stop");
}

TEST_F(TrailFaultsTest, AFullDiskIsSaidOnceWhereTheRunIsToGoOnAndItEndsUnsaved) {
  const auto outcome = on_a_full_disk(train("continue", "run.on_save_error=continue"));
  EXPECT_EQ(outcome.exit_code, 74) << outcome.everything();
  const auto said = outcome.err.find("trail.bin: cannot be written: File too large");
  ASSERT_NE(said, std::string::npos) << outcome.err;
  const auto kept = outcome.err.find("kept in memory", said);
  ASSERT_NE(kept, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("kept in memory", kept + 1), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("that step is not saved"), std::string::npos) << outcome.err;
  expect_to_recover("continue");
}

/// Stopped twice, the second time on a full disk.
TEST_F(TrailFaultsTest, ASecondResumeIsByteEqual) {
  const auto first = run_shell(train("twice", "train.max_steps=20"));
  ASSERT_EQ(first.exit_code, 0) << first.everything();
  const auto second = on_a_full_disk(train("twice"));
  EXPECT_EQ(second.exit_code, 74) << second.everything();
  const auto third = run_shell(train("twice", "train.max_steps=70 parallel.ranks=2"));
  EXPECT_EQ(third.exit_code, 0) << third.everything();
  expect_to_recover("twice");
}

TEST_F(TrailFaultsTest, ReadErrorsThatPassAreWaitedForAndOthersTouchNothing) {
  const auto base = run_shell(train("base", "train.max_steps=20"));
  ASSERT_EQ(base.exit_code, 0) << base.everything();
  for (int at = 1; at <= 3; ++at) {
    const auto run = "read-" + std::to_string(at);
    fs::copy(path("base"), path(run), fs::copy_options::recursive);
    const auto for_good = run_shell(with_read_faults(at, 0) + train(run));
    EXPECT_EQ(for_good.exit_code, 74) << at << "\n" << for_good.everything();
    EXPECT_NE(for_good.err.find("trail.bin"), std::string::npos) << for_good.err;
    EXPECT_TRUE(trail(run) == trail("base")) << at;
    const auto once = run_shell(with_read_faults(at, 1) + train(run));
    EXPECT_EQ(once.exit_code, 0) << at << "\n" << once.everything();
    expect_to_recover(run);
  }
}

TEST_F(TrailFaultsTest, AProofOfWhatCannotBeReadIsNoRefutation) {
  for (const int at : {1, 3}) {
    const auto for_good = run_shell(with_read_faults(at, 0) + program_ + " prove " + path("calm"));
    EXPECT_EQ(for_good.exit_code, 74) << at << "\n" << for_good.everything();
    EXPECT_NE(for_good.err.find("trail.bin"), std::string::npos) << for_good.err;
    const auto once = run_shell(with_read_faults(at, 1) + program_ + " prove " + path("calm"));
    EXPECT_EQ(once.exit_code, 0) << at << "\n" << once.everything();
  }
}

}  // namespace
}  // namespace lockstep::testing
