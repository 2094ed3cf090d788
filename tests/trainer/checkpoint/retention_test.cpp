// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which checkpoints stay.
#include "trainer/checkpoint/retention.hpp"

#include "tests/common/files/memory_env.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

class RetentionTest : public ::testing::Test {
 protected:
  RetentionTest() { env_.make_directory("run"); }

  void save(std::int64_t step, std::optional<double> accuracy = std::nullopt) {
    CheckpointState state = make_state(step);
    state.facts.test_accuracy = accuracy;
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

TEST_F(RetentionTest, LastOnesStay) {
  for (const int step : {10, 20, 30, 40}) save(step);
  EXPECT_EQ(prune_checkpoints(env_, "run", {2, 0, false}), 2U);
  EXPECT_EQ(steps(), (Steps{40, 30}));
  EXPECT_EQ(env_.list("run/checkpoints").size(), 2U) << "nothing is left behind under another name";
}

TEST_F(RetentionTest, MultiplesStay) {
  for (const int step : {10, 20, 30, 40, 50}) save(step);
  prune_checkpoints(env_, "run", {1, 20, false});
  EXPECT_EQ(steps(), (Steps{50, 40, 20}));
}

TEST_F(RetentionTest, BestStaysTheOlderAmongEquals) {
  save(10, 0.5);
  save(20, 0.9);
  save(30, 0.9);
  save(40, 0.7);
  save(50);
  prune_checkpoints(env_, "run", {1, 0, true});
  EXPECT_EQ(steps(), (Steps{50, 20}));
}

TEST_F(RetentionTest, NewestGoodOneStaysWhenAllNewerAreDamaged) {
  for (const int step : {10, 20, 30, 40}) save(step);
  for (const char* step : {"30", "40"})
    env_.file(std::string("run/checkpoints/step-000000") + step + "/model.safetensors").pop_back();
  prune_checkpoints(env_, "run", {1, 0, false});
  EXPECT_EQ(steps(), (Steps{40, 20}));
}

TEST_F(RetentionTest, DamagedOneIsNeverTheBest) {
  save(10, 0.6);
  save(20, 0.9);
  save(30, 0.5);
  env_.file("run/checkpoints/step-00000020/manifest.json")[5] ^= std::byte{1};
  prune_checkpoints(env_, "run", {1, 0, true});
  EXPECT_EQ(steps(), (Steps{30, 10}));
}

TEST_F(RetentionTest, AtLeastOneStaysWhateverThePolicy) {
  save(10);
  save(20);
  prune_checkpoints(env_, "run", {0, 0, false});
  EXPECT_EQ(steps(), (Steps{20}));
}

}  // namespace
}  // namespace lockstep
