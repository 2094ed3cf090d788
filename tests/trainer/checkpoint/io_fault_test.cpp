// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Input/output errors and full disks: the save says so, and the last good checkpoint stays.
#include "common/error.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

MemoryDisk disk_with_checkpoint(std::int64_t step) {
  RunEnv env;
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
std::size_t save_while_every_call_fails(std::int64_t saved, bool for_good, const MemoryDisk& base) {
  for (std::size_t call = 0;; ++call) {
    MemoryEnv env(base);
    env.fail_at(call, for_good);
    SCOPED_TRACE("call " + std::to_string(call));
    try {
      save_checkpoint(env, kRun, make_state(saved));
      prune_checkpoints(env, kRun, {1, 0, false});
      if (env.calls() <= call) return call;  // nothing was left to fail
    } catch (const IoError& error) {
      test::expect_words(error.what(), {"injected"});
    }
    expect_good(env.disk(), 100, saved);
    if (::testing::Test::HasFailure()) return call;
  }
}

/// Also where the save replaces the checkpoint of its step, and where that is damaged.
TEST(IoErrorTest, FailedCallsAndADyingDiskKeepTheLastGoodCheckpoint) {
  const MemoryDisk good = disk_with_checkpoint(100), damaged = disk_with_damaged_beside_replaced(100);
  for (const bool for_good : {false, true}) {
    SCOPED_TRACE(for_good);
    EXPECT_GE(save_while_every_call_fails(200, for_good, good), 40U);
    EXPECT_GE(save_while_every_call_fails(100, for_good, good), 25U);
    EXPECT_GE(save_while_every_call_fails(100, for_good, damaged), 30U);
  }
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
      test::expect_words(error.what(), {"run/checkpoints/.tmp-step-00000200/", "no space left"});
      EXPECT_EQ(env.disk().used_bytes(), used) << "what was written must go, or the disk stays full";
      ++failures;
    }
    expect_good(env.disk(), 100, 200);
  }
  EXPECT_GE(failures, kTries);
}

// Reading that fails, once or for good, at every call. An error that passes is waited for, one that does not
// is said, and in neither case is a good checkpoint passed over or removed.

CheckpointState evaluated(std::int64_t step, double accuracy) {
  CheckpointState state = make_state(step);
  state.facts.test_accuracy = accuracy;
  return state;
}

/// Steps 100 (the best), 200, 300, and the remains of an interrupted save and of a replacement.
MemoryDisk disk_of_a_run() {
  RunEnv env;
  save_checkpoint(env, kRun, evaluated(100, 0.9));
  save_checkpoint(env, kRun, evaluated(200, 0.8));
  save_checkpoint(env, kRun, evaluated(300, 0.7));
  save_checkpoint(env, kRun, evaluated(150, 0.1));
  env.rename("run/checkpoints/step-00000150", "run/checkpoints/.tmp-removed-step-00000150");
  return env.disk();
}

/// Does the work of a start: finds the newest checkpoint, cleans up, prunes. @returns the step to go on from
std::int64_t start(MemoryEnv& env) {
  std::vector<std::string> damaged;
  const auto found = find_latest(
      env, kRun, [](const std::string&) {}, &damaged);
  remove_leftovers(env, kRun);
  set_aside_damaged(env, kRun, damaged, [](const std::string&) {});
  prune_checkpoints(env, kRun, {.last = 1, .every_steps = 0, .best = true});
  return found ? found->state.facts.step : 0;
}

/// The newest and the best are there, whole, under their names.
void expect_nothing_good_is_gone(const MemoryDisk& disk) {
  MemoryEnv env(disk);
  for (const char* step : {"100", "300"})
    EXPECT_TRUE(verify_checkpoint(env, "run/checkpoints/step-00000" + std::string(step)).empty()) << step;
}

/// Lets every call in turn fail. @returns how many there were, and how many starts were refused
std::pair<std::size_t, std::size_t> start_while_every_call_fails(bool for_good) {
  const MemoryDisk base = disk_of_a_run();
  std::size_t refused = 0;
  for (std::size_t call = 0;; ++call) {
    MemoryEnv env(base);
    env.fail_at(call, for_good);
    SCOPED_TRACE("call " + std::to_string(call));
    try {
      EXPECT_EQ(start(env), 300);
      if (env.calls() <= call) return {call, refused};
    } catch (const IoError& error) {
      test::expect_words(error.what(), {"injected"});
      ++refused;
    }
    expect_nothing_good_is_gone(env.disk());
    MemoryEnv again(env.disk());
    EXPECT_EQ(start(again), 300) << "when reading works again";
    if (::testing::Test::HasFailure()) return {call, refused};
  }
}

TEST(ReadFaultTest, FailedCallsAndADyingDiskPassOverNothingAndRemoveNothingGood) {
  EXPECT_GE(start_while_every_call_fails(false).first, 40U);
  const auto [calls, refused] = start_while_every_call_fails(true);
  EXPECT_GE(calls, 30U);
  EXPECT_GE(refused, 10U) << "an error that stays is said";
}

/// Reading of files that begin so fails so often; everything else works.
void make_unreadable(MemoryEnv& env, const std::string& path, int times) {
  env.on_call = [path, left = times](const std::string& call, const std::string& file) mutable {
    if (call == "read" && file.starts_with(path) && left-- > 0)
      throw IoError(file + ": cannot read: injected");
  };
}

TEST(ReadFaultTest, ErrorThatPassesIsWaitedForAndOneThatStaysNamesTheCheckpointAndTheWayOut) {
  const std::string newest = "run/checkpoints/step-00000300";
  MemoryEnv env(disk_of_a_run());
  make_unreadable(env, newest, 2);
  EXPECT_EQ(start(env), 300);
  EXPECT_EQ(env.pauses(), 2U);
  make_unreadable(env, newest, 1000);
  test::expect_error<IoError>([&] { start(env); }, {"move " + newest + " away"});
}

TEST(ReadFaultTest, UnreadableBestIsNotPruned) {
  MemoryEnv env(disk_of_a_run());
  make_unreadable(env, "run/checkpoints/step-00000100", 1000);
  EXPECT_EQ(start(env), 300);
  expect_nothing_good_is_gone(env.disk());
}

TEST(ReadFaultTest, NewerVersionIsNotDamage) {
  MemoryEnv env(disk_of_a_run());
  const std::string manifest = "run/checkpoints/step-00000300/manifest.json";
  std::string text = text_of(manifest, env);
  text.resize(text.size() - manifest_seal("").size());
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 9");
  text += manifest_seal(text);
  replace_file(env, manifest, std::as_bytes(std::span(text)));
  EXPECT_THROW(start(env), ConfigError);
  EXPECT_TRUE(env.exists("run/checkpoints/step-00000300"));
}

/// A run that saves and prunes while a reader looks.
TEST(ReadFaultTest, CheckpointThatIsPrunedMeanwhileMakesItLookAgain) {
  MemoryEnv env(disk_of_a_run());
  int reads = 0;
  env.on_call = [&](const std::string& call, const std::string&) {
    if (call != "read" || ++reads != 2) return;
    env.on_call = nullptr;
    save_checkpoint(env, kRun, make_state(400));
    remove_checkpoints(env, kRun, {"run/checkpoints/step-00000300", "run/checkpoints/step-00000200"});
  };
  std::vector<std::string> told;
  const auto found = open_checkpoint(env, kRun, [&](const std::string& line) { told.push_back(line); });
  EXPECT_EQ(found.state.facts.step, 400);
  EXPECT_TRUE(told.empty()) << told.front();
}

}  // namespace
}  // namespace lockstep
