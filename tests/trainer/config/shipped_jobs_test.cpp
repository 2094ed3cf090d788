// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The job files that ship with Lockstep.
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/optimizers/optimizer.hpp"
#include "trainer/optimizers/schedule.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace lockstep {
namespace {

std::filesystem::path source_directory() {
  const char* source = std::getenv("LOCKSTEP_SOURCE_DIR");
  return source == nullptr ? "." : source;
}

std::filesystem::path jobs_directory() {
  return source_directory() / "launch" / "jobs";
}

TEST(ShippedJobsTest, AllAreValidAndLeaveTheirDirectoryToTheProgram) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(jobs_directory())) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    const Job job = load_job(entry.path().string(), {});
    EXPECT_EQ(job.run.dir, "auto");
    EXPECT_EQ(job.name, entry.path().stem());
    ++count;
  }
  EXPECT_GE(count, 5U);
}

TEST(ShippedModelsTest, TheHelpOfTheKeyModelNamesAll) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() / "models")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().stem(), help = find_job_key("model")->meaning;
    EXPECT_TRUE(help.find(" " + name + ",") != help.npos) << name << " is not in: " << help;
    ++count;
  }
  EXPECT_GE(count, 6U);
}

TEST(ShippedJobsTest, MainJobHasWorkForEightRanksAndIsTheDefaultJobOtherwise) {
  const Job job = load_job((jobs_directory() / "mnist.yaml").string(), {});
  EXPECT_GE(job.data.global_batch / job.parallel.grain, 8);
  Job otherwise = parse_job("model: net\n", "job.yaml");
  otherwise.data.global_batch = job.data.global_batch;
  otherwise.train.optimizer.lr = job.train.optimizer.lr;
  otherwise.train.optimizer.nesterov = job.train.optimizer.nesterov;
  EXPECT_EQ(to_yaml(job), to_yaml(otherwise));
}

/// A new optimiser or schedule is to be computed with the same bits everywhere: tests/arithmetic trains it.
TEST(ArithmeticJobsTest, EveryOptimizerAndScheduleIsAmongThem) {
  const auto directory = source_directory() / "tests" / "arithmetic";
  std::ifstream rows(directory / "jobs.txt");
  std::set<std::string_view> optimizers, schedules;
  std::vector<Job> jobs;
  for (std::string row; std::getline(rows, row);) {
    if (row.starts_with("#")) continue;
    std::istringstream words(row);
    std::vector<std::string> changes;
    std::string word;
    for (words >> word; words >> word;) {
      if (const auto at = word.find("HERE"); at != std::string::npos) word.replace(at, 4, directory.string());
      changes.push_back(word);
    }
    jobs.push_back(load_job((directory / "job.yaml").string(), changes));
  }
  for (const Job& job : jobs) {
    optimizers.insert(job.train.optimizer.kind);
    schedules.insert(job.train.schedule.kind);
  }
  for (const OptimizerKind& kind : optimizer_kinds())
    EXPECT_TRUE(optimizers.contains(kind.name)) << kind.name;
  for (const ScheduleKind& kind : schedule_kinds()) EXPECT_TRUE(schedules.contains(kind.name)) << kind.name;
}

}  // namespace
}  // namespace lockstep
