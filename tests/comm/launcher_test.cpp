// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What the environment says about the launcher.
#include "comm/launcher.hpp"

#include "comm/mpi/rank_watch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

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

// Who has not come is named as well as the processes of the host tell.

namespace {

Absence four_ranks(std::vector<LaunchedProcess> processes) {
  return {.rank = 0,
          .ranks = 4,
          .host = "node1",
          .place = "MPI_Init",
          .seconds = 30,
          .own_program = "/bin/lockstep",
          .processes = std::move(processes)};
}

LaunchedProcess waiting(int rank) {
  return {rank, 100 + rank, 'S', "/bin/lockstep", true};
}

bool says(const Absence& absence, const std::string& words) {
  return absence_report(absence).find(words) != std::string::npos;
}

TEST(AbsenceReportTest, NamesWhoWaitsWhereAndHowLong) {
  EXPECT_TRUE(
      says(four_ranks({waiting(0)}), "rank 0 of 4 on node1 waited 30 s for the other ranks in MPI_Init"));
}

TEST(AbsenceReportTest, NamesAStoppedRankEvenIfItHadCome) {
  const LaunchedProcess stopped{1, 101, 'T', "/bin/lockstep", true};
  const auto absence = four_ranks({waiting(0), stopped, waiting(2), waiting(3)});
  EXPECT_TRUE(says(absence, "rank 1 (pid 101) is stopped: kill -CONT 101")) << absence_report(absence);
  EXPECT_FALSE(says(absence, "rank 2"));
}

TEST(AbsenceReportTest, NamesAnotherProgram) {
  const auto absence =
      four_ranks({waiting(0), {1, 101, 'S', "/usr/bin/sleep", false}, waiting(2), waiting(3)});
  EXPECT_TRUE(says(absence, "rank 1 (pid 101) is another program: /usr/bin/sleep"))
      << absence_report(absence);
}

TEST(AbsenceReportTest, NamesOneThatHasNotComeYet) {
  const auto absence =
      four_ranks({waiting(0), {1, 101, 'D', "/bin/lockstep", false}, waiting(2), waiting(3)});
  EXPECT_TRUE(says(absence, "rank 1 (pid 101) has not come there (it is in state D)"));
}

TEST(AbsenceReportTest, ListsRanksThatAreNotOnThisHost) {
  EXPECT_TRUE(says(four_ranks({waiting(0)}), "of ranks 1-3: on another host"))
      << absence_report(four_ranks({}));
  EXPECT_TRUE(says(four_ranks({waiting(0), waiting(2), waiting(3)}), "of rank 1: on another host"));
}

TEST(AbsenceReportTest, BlamesTheNetworkWhenAllAreThere) {
  EXPECT_TRUE(
      says(four_ranks({waiting(0), waiting(1), waiting(2), waiting(3)}), "lockstep doctor --hostfile"));
}

TEST(AbsenceReportTest, TheFirstRankOfAHostThatCanSpeaks) {
  const LaunchedProcess stopped{0, 100, 'T', "/bin/lockstep", true};
  auto absence = four_ranks({stopped, waiting(1), waiting(2)});
  EXPECT_FALSE(speaks_for_host(absence));
  absence.rank = 1;
  EXPECT_TRUE(speaks_for_host(absence));
  absence.rank = 2;
  EXPECT_FALSE(speaks_for_host(absence));
}

TEST(LaunchedProcessesTest, NobodyIsSeenOutsideAJob) {
  if (std::getenv("PMIX_NAMESPACE") != nullptr) GTEST_SKIP() << "under a launcher";
  EXPECT_TRUE(launched_processes("mark").empty());
}

}  // namespace

}  // namespace lockstep
