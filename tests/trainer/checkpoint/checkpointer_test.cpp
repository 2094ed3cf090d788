// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Saving in the background: one at a time, errors delivered, nothing lost at the end.
#include "common/error.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

#include <latch>
namespace lockstep {

namespace {

class AsyncCheckpointerTest : public ::testing::Test {
 protected:
  AsyncCheckpointerTest() { env_.make_directory("run"); }

  /// From now on a save stops at its first rename until release() is called.
  void hold() {
    env_.on_call = [this](const std::string& call, const std::string&) {
      if (call == "rename" && !released_.try_wait()) released_.wait();
    };
  }
  void release() { released_.count_down(); }

  MemoryEnv env_;
  std::latch released_{1};
};

TEST_F(AsyncCheckpointerTest, SaveReturnsBeforeTheSnapshotIsWritten) {
  hold();
  AsyncCheckpointer saver(env_, "run", {});
  CheckpointState state = make_state(100);
  saver.save(state);
  state.weights.assign(state.weights.size(), 0);  // training goes on
  EXPECT_FALSE(saver.finished_within(std::chrono::milliseconds(0)));
  release();
  saver.finish();
  EXPECT_TRUE(saver.finished_within(std::chrono::milliseconds(0)));
  EXPECT_TRUE(same(load_checkpoint(env_, "run/checkpoints/step-00000100"), make_state(100)));
}

TEST_F(AsyncCheckpointerTest, SecondSaveWaitsForTheFirstAndThePolicyIsApplied) {
  for (const std::size_t kept : {8U, 2U}) {
    AsyncCheckpointer saver(env_, "run", {static_cast<std::int64_t>(kept), 0, false});
    for (int step = 1; step <= 8; ++step) saver.save(make_state(step));
    saver.finish();
    EXPECT_EQ(list_checkpoints(env_, "run").size(), kept);
  }
}

TEST_F(AsyncCheckpointerTest, ErrorArrivesAtTheNextCallOnce) {
  AsyncCheckpointer saver(env_, "run", {});
  env_.fail_at(5, false);
  saver.save(make_state(100));
  EXPECT_THROW(saver.save(make_state(200)), IoError);
  env_.fail_at(5, false);
  saver.save(make_state(200));  // the disk has recovered, or so it seems
  EXPECT_THROW(saver.finish(), IoError);
  EXPECT_NO_THROW(saver.finish());
  saver.save(make_state(200));
  saver.finish();
  EXPECT_EQ(list_checkpoints(env_, "run").at(0).step, 200);
}

TEST_F(AsyncCheckpointerTest, WithoutAThreadOfItsOwnItSavesAllTheSame) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs the memory that this takes away";
#else
  AsyncCheckpointer saver(env_, "run", {});
  const NoMoreThreads none;
  saver.save(make_state(100));
  EXPECT_TRUE(saver.finished_within(std::chrono::milliseconds(0)));
  env_.fail_at(5, false);
  saver.save(make_state(200));
  EXPECT_THROW(saver.finish(), IoError) << "its errors arrive as ever";
  EXPECT_EQ(list_checkpoints(env_, "run").at(0).step, 100);
#endif
}

TEST_F(AsyncCheckpointerTest, DestructorWaits) {
  { AsyncCheckpointer(env_, "run", {}).save(make_state(100)); }
  EXPECT_EQ(list_checkpoints(env_, "run").size(), 1U);
}

// Checkpoints that are kept.

class RetentionTest : public ::testing::Test {
 protected:
  RetentionTest() { env_.make_directory("run"); }

  void save(std::int64_t step, std::optional<double> accuracy = std::nullopt,
            const std::string& test_samples = "10") {
    CheckpointState state = make_state(step);
    state.facts.test_accuracy = accuracy;
    state.facts.data["test_samples"] = test_samples;
    save_checkpoint(env_, "run", state);
  }

  /// Steps that are left, newest first.
  std::vector<std::int64_t> steps() {
    std::vector<std::int64_t> result;
    for (const CheckpointEntry& entry : list_checkpoints(env_, "run")) result.push_back(entry.step);
    return result;
  }

  MemoryEnv env_;
};

using Steps = std::vector<std::int64_t>;

TEST_F(RetentionTest, WhatThePolicyNamesStays) {
  struct Row {
    std::vector<std::pair<std::int64_t, std::optional<double>>> saved;
    KeepPolicy keep;
    Steps left;
  };
  const std::optional<double> none{};
  const Row rows[] = {
      {{{10, none}, {20, none}, {30, none}, {40, none}}, {2, 0, false}, {40, 30}},
      {{{10, none}, {20, none}, {30, none}, {40, none}, {50, none}}, {1, 20, false}, {50, 40, 20}},
      {{{10, 0.5}, {20, 0.9}, {30, 0.9}, {40, 0.7}, {50, none}}, {1, 0, true}, {50, 20}},  // the older best
      {{{10, none}, {20, none}}, {0, 0, false}, {20}}};                                    // at least one
  for (const Row& row : rows) {
    for (const auto& [step, accuracy] : row.saved) save(step, accuracy);
    EXPECT_EQ(prune_checkpoints(env_, "run", row.keep), row.saved.size() - row.left.size());
    EXPECT_EQ(steps(), row.left) << &row - rows;
    EXPECT_EQ(env_.list("run/checkpoints").size(), row.left.size()) << "nothing stays under another name";
    for (const std::string& name : env_.list("run/checkpoints"))
      env_.remove_directory("run/checkpoints/" + name, checkpoint_files());
  }
}

TEST_F(RetentionTest, TheBestIsTheBestOfTheNewestTestSet) {
  save(10, 1.0, "5");
  for (const auto& [step, accuracy] : {std::pair(20, 0.5), {30, 0.6}, {40, 0.4}}) save(step, accuracy);
  prune_checkpoints(env_, "run", {1, 0, true});
  EXPECT_EQ(steps(), (Steps{40, 30}));
}

TEST_F(RetentionTest, NewestGoodOneStaysWhenAllNewerAreDamaged) {
  for (const int step : {10, 20, 30, 40}) save(step);
  for (const char* step : {"30", "40"})
    env_.file(std::string("run/checkpoints/step-000000") + step + "/model.safetensors").pop_back();
  prune_checkpoints(env_, "run", {1, 0, false});
  EXPECT_EQ(steps(), (Steps{40, 20}));
}

/// To go on from, if the next replay finds a rank that computes wrongly.
TEST_F(RetentionTest, NewestUpToTheLastReplayStays) {
  for (const int step : {10, 20, 30, 40}) save(step);
  KnownCheckpoints known{.accuracy = {}, .good = {}, .replayed = 20};
  prune_checkpoints(env_, "run", {1, 0, false}, known);
  EXPECT_EQ(steps(), (Steps{40, 20}));
}

TEST_F(RetentionTest, DamagedOneIsNeverTheBest) {
  save(10, 0.6);
  save(20, 0.9);
  save(30, 0.5);
  env_.file("run/checkpoints/step-00000020/manifest.json")[5] ^= std::byte{1};
  KnownCheckpoints known;
  prune_checkpoints(env_, "run", {1, 0, true}, known);
  EXPECT_EQ(steps(), (Steps{30, 10}));
  EXPECT_EQ(known.accuracy.size(), 2U) << "what was removed is forgotten";
}

}  // namespace

}  // namespace lockstep
