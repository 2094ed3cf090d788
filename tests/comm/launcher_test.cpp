// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the environment says about the launcher.
#include "comm/launcher.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace lockstep {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

int size_in(const Variables& variables) {
  return read_launch(environment_of(variables)).world_size;
}

Launcher launcher_in(const Variables& variables) {
  return read_launch(environment_of(variables)).launcher;
}

TEST(LauncherTest, SrunWithoutPmixIsTold) {
  const Variables bare = {{"SLURM_NODELIST", "n1"}, {"SLURM_STEPID", "0"}};
  EXPECT_EQ(launcher_in(bare), Launcher::kSrun);
  for (const char* help : {"PMIX_RANK", "PMI_RANK"}) {
    Variables helped = bare;
    helped[help] = "0";
    EXPECT_EQ(launcher_in(helped), Launcher::kPmi) << help;
  }
  const Variables batch_script = {{"SLURM_NODELIST", "n1"}, {"SLURM_NTASKS", "4"}};
  EXPECT_EQ(launcher_in(batch_script), Launcher::kNone);
  EXPECT_EQ(launcher_in({}), Launcher::kNone);
}

TEST(LauncherTest, MpirunInsideAStepIsTheLauncher) {
  EXPECT_EQ(launcher_in({{"SLURM_NODELIST", "n1"},
                         {"SLURM_STEPID", "0"},
                         {"PMIX_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"}}),
            Launcher::kOpenMpi);
}

TEST(LauncherTest, TheRankIsThatOfTheLauncherNextToTheProcess) {
  EXPECT_EQ(read_launch(environment_of({{"OMPI_COMM_WORLD_RANK", "3"}, {"SLURM_PROCID", "0"}})).rank, 3);
  EXPECT_EQ(read_launch(environment_of({{"SLURM_PROCID", "5"}})).rank, 5);
  EXPECT_EQ(read_launch(environment_of({})).rank, 0);
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
