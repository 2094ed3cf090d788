// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which of several processes leaves a command to rank 0.
#include "trainer/ranks/launched_rank.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

namespace lockstep {
namespace {

/// As mpirun -np 2 lockstep hash RUN sets it.
class LaunchedRankTest : public ::testing::Test {
 protected:
  LaunchedRankTest() { launch("1", "lockstep", "hash run", "1"); }
  ~LaunchedRankTest() override {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMMAND", "OMPI_ARGV", "OMPI_NUM_APP_CTX"})
      unsetenv(name);
  }
  static void launch(const char* rank, const char* command, const char* arguments, const char* programs) {
    setenv("OMPI_COMM_WORLD_RANK", rank, 1);
    setenv("OMPI_COMMAND", command, 1);
    setenv("OMPI_ARGV", arguments, 1);
    setenv("OMPI_NUM_APP_CTX", programs, 1);
  }
  static bool repeats() {
    const std::array<const char*, 3> argv = {"build/release/lockstep", "hash", "run"};
    return repeats_rank_0(3, argv.data());
  }
};

TEST_F(LaunchedRankTest, ARankWithTheSameCommandLineRepeatsRank0) {
  EXPECT_EQ(launched_rank(), 1);
  EXPECT_TRUE(repeats());
}

TEST_F(LaunchedRankTest, Rank0RepeatsNobody) {
  launch("0", "lockstep", "hash run", "1");
  EXPECT_FALSE(repeats());
}

TEST_F(LaunchedRankTest, BehindAScriptEachRankMayHaveArgumentsOfItsOwn) {
  launch("1", "sh", "-c lockstep hash run", "1");
  EXPECT_FALSE(repeats());
}

TEST_F(LaunchedRankTest, SeveralProgramsInOneLaunchMayDiffer) {
  launch("1", "lockstep", "hash run", "2");
  EXPECT_FALSE(repeats());
}

}  // namespace
}  // namespace lockstep
