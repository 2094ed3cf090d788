// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the environment says about the launcher.
#include "comm/mpi/mpi_runtime.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace lockstep {
namespace {

int size_in(const std::map<std::string, std::string>& environment) {
  return launcher_world_size([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(LauncherTest, NoLauncherMeansOneProcess) {
  EXPECT_EQ(size_in({}), 1);
}

TEST(LauncherTest, KnowsMpirunSrunAndPmi) {
  EXPECT_EQ(size_in({{"OMPI_COMM_WORLD_SIZE", "4"}}), 4);
  EXPECT_EQ(size_in({{"SLURM_STEP_NUM_TASKS", "8"}}), 8);
  EXPECT_EQ(size_in({{"PMI_SIZE", "3"}}), 3);
}

TEST(LauncherTest, MpirunInsideABatchJobCountsItself) {
  EXPECT_EQ(size_in({{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}}), 1);
}

TEST(LauncherTest, OneProcessInABatchScriptIsNotManySingletons) {
  EXPECT_EQ(size_in({{"SLURM_NTASKS", "8"}}), 1);
}

TEST(LauncherTest, NonsenseMeansOneProcess) {
  EXPECT_EQ(size_in({{"OMPI_COMM_WORLD_SIZE", "many"}}), 1);
}

}  // namespace
}  // namespace lockstep
