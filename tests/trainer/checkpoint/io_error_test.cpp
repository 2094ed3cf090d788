// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Input/output errors and full disks: the save says so, and the last good checkpoint stays.
#include "common/error.hpp"
#include "tests/common/files/memory_env.hpp"
#include "tests/support/effort.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/retention.hpp"

#include <gtest/gtest.h>

namespace lockstep::io_error_test {
namespace {

const std::string kRun = "run";

MemoryDisk disk_with_checkpoint(std::int64_t step) {
  MemoryEnv env;
  env.make_directory(kRun);
  save_checkpoint(env, kRun, make_state(step));
  return env.disk();
}

void expect_good(const MemoryDisk& disk, std::int64_t old_step, std::int64_t new_step) {
  MemoryEnv env(disk);
  const auto found = find_latest(env, kRun, [](const std::string&) {});
  ASSERT_TRUE(found.has_value());
  const std::int64_t step = found->state.facts.step;
  EXPECT_TRUE(step == old_step || step == new_step) << step;
  EXPECT_TRUE(same(found->state, make_state(step)));
  save_checkpoint(env, kRun, make_state(new_step));  // and the next one works
  EXPECT_EQ(find_latest(env, kRun, [](const std::string&) {})->state.facts.step, new_step);
}

/// As a crash between two renames leaves it, if the disk then damages the one that has the name.
MemoryDisk disk_with_damaged_beside_replaced(std::int64_t step) {
  MemoryEnv env(disk_with_checkpoint(step));
  const auto path = kRun + "/checkpoints/" + checkpoint_name(step);
  env.rename(path, path + kReplacedSuffix);
  env.make_directory("other");
  env.rename(save_checkpoint(env, "other", make_state(step)), path);
  env.file(path + "/" + kModelFile).back() ^= std::byte{1};
  return env.disk();
}

/// Saves step `saved` on a disk with step 100 while every call in turn fails. @returns the number of failures
std::size_t fail_every_call(std::int64_t saved, bool for_good,
                            const MemoryDisk& base = disk_with_checkpoint(100)) {
  for (std::size_t call = 0;; ++call) {
    MemoryEnv env(base);
    env.fail_at(call, for_good);
    SCOPED_TRACE("call " + std::to_string(call));
    try {
      save_checkpoint(env, kRun, make_state(saved));
      prune_checkpoints(env, kRun, {1, 0, false});
      if (env.calls() <= call) return call;  // nothing was left to fail
    } catch (const IoError& error) {
      EXPECT_NE(std::string(error.what()).find("injected"), std::string::npos);
    }
    expect_good(env.disk(), 100, saved);
    if (::testing::Test::HasFailure()) return call;
  }
}

TEST(IoErrorTest, OneFailedCallKeepsTheLastGoodCheckpoint) {
  EXPECT_GE(fail_every_call(200, false), 40U);
}
TEST(IoErrorTest, TheReplacedOneBesideADamagedOneIsTheLastGoodCheckpointAndStays) {
  EXPECT_GE(fail_every_call(100, false, disk_with_damaged_beside_replaced(100)), 30U);
  EXPECT_GE(fail_every_call(100, true, disk_with_damaged_beside_replaced(100)), 30U);
}
TEST(IoErrorTest, DyingDiskKeepsTheLastGoodCheckpoint) {
  EXPECT_GE(fail_every_call(200, true), 40U);
}
TEST(IoErrorTest, FailedReplacementKeepsTheCheckpointOfThatStep) {
  EXPECT_GE(fail_every_call(100, false), 25U);
}
TEST(IoErrorTest, DyingDiskDuringReplacementKeepsACheckpoint) {
  EXPECT_GE(fail_every_call(100, true), 25U);
}

TEST(IoErrorTest, FullDiskAtAnyByteKeepsTheLastGoodCheckpointAndLeavesNoRubbish) {
  const MemoryDisk base = disk_with_checkpoint(100);
  const std::size_t used = base.used_bytes();
  constexpr std::size_t kTries = test::effort(200, 20);
  std::size_t failures = 0;
  for (std::size_t room = 0; room < used; room += test::effort(7, 61)) {
    MemoryEnv env(base);
    env.set_capacity(used + room);
    try {
      save_checkpoint(env, kRun, make_state(200));
    } catch (const IoError& error) {
      EXPECT_NE(std::string(error.what()).find("no space left"), std::string::npos);
      EXPECT_EQ(env.disk().used_bytes(), used) << "what was written must go, or the disk stays full";
      ++failures;
    }
    expect_good(env.disk(), 100, 200);
  }
  EXPECT_GE(failures, kTries);
}

TEST(IoErrorTest, ErrorNamesTheFile) {
  MemoryEnv env(disk_with_checkpoint(100));
  env.set_capacity(env.disk().used_bytes() + 10);
  try {
    save_checkpoint(env, kRun, make_state(200));
    FAIL() << "a full disk was not noticed";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("step-00000200/model.safetensors"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockstep::io_error_test
