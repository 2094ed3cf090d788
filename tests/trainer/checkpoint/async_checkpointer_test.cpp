// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Saving in the background: one at a time, errors delivered, nothing lost at the end.
#include "trainer/checkpoint/async_checkpointer.hpp"

#include "common/error.hpp"
#include "tests/common/files/memory_env.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"

#include <gtest/gtest.h>

#include <atomic>
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

TEST_F(AsyncCheckpointerTest, SnapshotIsWrittenAsItWas) {
  AsyncCheckpointer saver(env_, "run", {});
  CheckpointState state = make_state(100);
  saver.save(state);
  state.weights.assign(state.weights.size(), 0);  // training goes on
  saver.finish();
  EXPECT_TRUE(same(load_checkpoint(env_, "run/checkpoints/step-00000100"), make_state(100)));
}

TEST_F(AsyncCheckpointerTest, SaveReturnsBeforeItIsWritten) {
  hold();
  AsyncCheckpointer saver(env_, "run", {});
  saver.save(make_state(100));
  EXPECT_TRUE(saver.busy());
  release();
  saver.finish();
  EXPECT_FALSE(saver.busy());
  saver.save(make_state(300));
  saver.finish();
  EXPECT_EQ(list_checkpoints(env_, "run").size(), 2U);
}

TEST_F(AsyncCheckpointerTest, SecondSaveWaitsForTheFirst) {
  AsyncCheckpointer saver(env_, "run", {10, 0, false});
  for (int step = 1; step <= 8; ++step) saver.save(make_state(step));
  saver.finish();
  EXPECT_EQ(list_checkpoints(env_, "run").size(), 8U);
}

TEST_F(AsyncCheckpointerTest, PolicyIsApplied) {
  AsyncCheckpointer saver(env_, "run", {2, 0, false});
  for (int step = 1; step <= 5; ++step) saver.save(make_state(step));
  saver.finish();
  EXPECT_EQ(list_checkpoints(env_, "run").size(), 2U);
}

TEST_F(AsyncCheckpointerTest, ErrorArrivesAtTheNextCallOnce) {
  AsyncCheckpointer saver(env_, "run", {});
  env_.fail_at(5, false);
  saver.save(make_state(100));
  EXPECT_THROW(saver.save(make_state(200)), IoError);
  saver.save(make_state(200));  // the disk has recovered
  saver.finish();
  EXPECT_EQ(list_checkpoints(env_, "run").at(0).step, 200);
}

TEST_F(AsyncCheckpointerTest, ErrorArrivesInFinish) {
  AsyncCheckpointer saver(env_, "run", {});
  env_.fail_at(5, false);
  saver.save(make_state(100));
  EXPECT_THROW(saver.finish(), IoError);
  EXPECT_NO_THROW(saver.finish());
}

TEST_F(AsyncCheckpointerTest, WithoutAThreadOfItsOwnItSavesAllTheSame) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs the memory that this takes away";
#else
  AsyncCheckpointer saver(env_, "run", {});
  const NoMoreThreads none;
  saver.save(make_state(100));
  EXPECT_FALSE(saver.busy());
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

}  // namespace
}  // namespace lockstep
