// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the environment says about the launcher.
#include "comm/mpi/mpi_runtime.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

namespace lockstep {
namespace {

using Variables = std::map<std::string, std::string>;

std::function<const char*(const char*)> environment_of(const Variables& variables) {
  return [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

int size_in(const Variables& variables) {
  return launcher_world_size(environment_of(variables));
}

TEST(LauncherTest, SrunWithoutPmixIsTold) {
  const Variables bare = {{"SLURM_NODELIST", "n1"}, {"SLURM_STEPID", "0"}};
  EXPECT_TRUE(is_srun_without_pmix(environment_of(bare)));
  for (const char* help : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_SIZE"}) {
    Variables helped = bare;
    helped[help] = "0";
    EXPECT_FALSE(is_srun_without_pmix(environment_of(helped))) << help;
  }
  const Variables batch_script = {{"SLURM_NODELIST", "n1"}, {"SLURM_NTASKS", "4"}};
  EXPECT_FALSE(is_srun_without_pmix(environment_of(batch_script)));
  EXPECT_FALSE(is_srun_without_pmix(environment_of({})));
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
