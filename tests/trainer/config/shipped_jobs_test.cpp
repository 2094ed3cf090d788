// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The job files that ship with Lockstep.
#include "trainer/config/job.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep {
namespace {

std::filesystem::path jobs_directory() {
  const char* source = std::getenv("LOCKSTEP_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / "launch" / "jobs";
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

TEST(ShippedJobsTest, MainJobHasWorkForEightRanksAndIsTheDefaultJobOtherwise) {
  const Job job = load_job((jobs_directory() / "mnist.yaml").string(), {});
  EXPECT_GE(job.data.global_batch / job.parallel.grain, 8);
  Job otherwise = parse_job("model: net\n", "job.yaml");
  otherwise.data.global_batch = job.data.global_batch;
  otherwise.train.optimizer.lr = job.train.optimizer.lr;
  otherwise.train.optimizer.nesterov = job.train.optimizer.nesterov;
  EXPECT_EQ(to_yaml(job), to_yaml(otherwise));
}

}  // namespace
}  // namespace lockstep
