// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Who has not come is named as well as the processes of the host tell.
#include "comm/mpi/absence_report.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep {
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
