// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading that fails, once or for good, at every call: an error that passes is waited for, one that does not
/// is said, and in neither case is a good checkpoint passed over or removed.
#include "common/error.hpp"
#include "tests/common/files/memory_env.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/retention.hpp"

#include <gtest/gtest.h>

namespace lockstep::read_fault_test {
namespace {

const std::string kRun = "run";

CheckpointState evaluated(std::int64_t step, double accuracy) {
  CheckpointState state = make_state(step);
  state.facts.test_accuracy = accuracy;
  return state;
}

/// Steps 100 (the best), 200, 300, and the remains of an interrupted save and of a replacement.
MemoryDisk disk_of_a_run() {
  MemoryEnv env;
  env.make_directory(kRun);
  save_checkpoint(env, kRun, evaluated(100, 0.9));
  save_checkpoint(env, kRun, evaluated(200, 0.8));
  save_checkpoint(env, kRun, evaluated(300, 0.7));
  save_checkpoint(env, kRun, evaluated(150, 0.1));
  env.rename("run/checkpoints/step-00000150", "run/checkpoints/.tmp-removed-step-00000150");
  return env.disk();
}

/// What a start does: looks for the newest checkpoint, cleans up, prunes. @returns the step to go on from
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

/// Lets every call in turn fail. @returns how many there were
std::size_t fail_every_call(bool for_good, std::size_t* refused) {
  const MemoryDisk base = disk_of_a_run();
  for (std::size_t call = 0;; ++call) {
    MemoryEnv env(base);
    env.fail_at(call, for_good);
    SCOPED_TRACE("call " + std::to_string(call));
    try {
      EXPECT_EQ(start(env), 300);
      if (env.calls() <= call) return call;
    } catch (const IoError& error) {
      EXPECT_NE(std::string(error.what()).find("injected"), std::string::npos);
      ++*refused;
    }
    expect_nothing_good_is_gone(env.disk());
    MemoryEnv again(env.disk());
    EXPECT_EQ(start(again), 300) << "when reading works again";
    if (::testing::Test::HasFailure()) return call;
  }
}

TEST(ReadFaultTest, OneFailedCallPassesOverNothingAndRemovesNothingGood) {
  std::size_t refused = 0;
  const std::size_t calls = fail_every_call(false, &refused);
  RecordProperty("calls", static_cast<int>(calls));
  EXPECT_GE(calls, 40U);
}

TEST(ReadFaultTest, DyingDiskPassesOverNothingAndRemovesNothingGood) {
  std::size_t refused = 0;
  const std::size_t calls = fail_every_call(true, &refused);
  RecordProperty("calls", static_cast<int>(calls));
  EXPECT_GE(calls, 30U);
  EXPECT_GE(refused, 10U) << "an error that stays is said";
}

/// Reading of one file fails so often; everything else works.
class Unreadable {
 public:
  Unreadable(MemoryEnv& env, std::string path, int times) : path_(std::move(path)), left_(times) {
    env.on_call = [this](const std::string& call, const std::string& file) {
      if (call == "read" && file.starts_with(path_) && left_-- > 0)
        throw IoError(file + ": cannot read: injected");
    };
  }

 private:
  std::string path_;
  int left_;
};

TEST(ReadFaultTest, ErrorThatPassesIsWaitedFor) {
  MemoryEnv env(disk_of_a_run());
  const Unreadable unreadable(env, "run/checkpoints/step-00000300", 2);
  EXPECT_EQ(start(env), 300);
  EXPECT_EQ(env.pauses(), 2U);
}

TEST(ReadFaultTest, ErrorThatStaysNamesTheCheckpointAndTheWayOut) {
  MemoryEnv env(disk_of_a_run());
  const Unreadable unreadable(env, "run/checkpoints/step-00000300", 1000);
  try {
    start(env);
    FAIL() << "the newest checkpoint was passed over";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("move run/checkpoints/step-00000300 away"), std::string::npos)
        << error.what();
  }
}

TEST(ReadFaultTest, UnreadableBestIsNotPruned) {
  MemoryEnv env(disk_of_a_run());
  const Unreadable unreadable(env, "run/checkpoints/step-00000100", 1000);
  EXPECT_EQ(start(env), 300);
  expect_nothing_good_is_gone(env.disk());
}

TEST(ReadFaultTest, NewerVersionIsNotDamage) {
  MemoryEnv env(disk_of_a_run());
  auto& manifest = env.file("run/checkpoints/step-00000300/manifest.json");
  std::string text(reinterpret_cast<const char*>(manifest.data()), manifest.size());
  text.resize(text.size() - manifest_seal("").size());
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 9");
  text += manifest_seal(text);
  const auto bytes = std::as_bytes(std::span(text));
  manifest.assign(bytes.begin(), bytes.end());
  EXPECT_THROW(start(env), ConfigError);
  EXPECT_TRUE(env.exists("run/checkpoints/step-00000300"));
}

/// A run that saves and prunes while somebody looks.
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
}  // namespace lockstep::read_fault_test
