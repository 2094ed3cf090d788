// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// launch/jobs/cifar10.yaml, as it is, on a few images in CIFAR's format.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::testing::cifar_job_test {
namespace {

/// Image i is of class i % 10, which can be seen from its colour.
std::string records(int first, int count) {
  std::string bytes;
  for (int i = first; i < first + count; ++i) {
    bytes.push_back(static_cast<char>(i % 10));
    for (int channel = 0; channel < 3; ++channel)
      for (int pixel = 0; pixel < 1024; ++pixel)
        bytes.push_back(static_cast<char>(25 * (i % 10) * (channel + 1) + (pixel * (i + 7)) % 24));
  }
  return bytes;
}

std::string made_set(const TemporaryDirectory& directory) {
  auto folder = directory.path("cifar-10-batches-bin");
  std::filesystem::create_directory(folder);
  for (int i = 0; i < 5; ++i)
    write_text(folder + "/data_batch_" + std::to_string(i + 1) + ".bin", records(8 * i, 8));
  write_text(folder + "/test_batch.bin", records(100, 15));
  return folder;
}

TEST(CifarJobTest, TrainsAndEvaluatesTheSameOnAnyNumberOfRanks) {
  const TemporaryDirectory directory;
  const std::string job = "train " + std::string(std::getenv("LOCKSTEP_SOURCE_DIR")) +
                          "/launch/jobs/cifar10.yaml data.root=" + made_set(directory) +
                          " data.global_batch=16 parallel.grain=4 train.epochs=2 run.dir=";
  const auto run = directory.path("run");
  const Outcome alone = lockstep(job + run);
  ASSERT_EQ(alone.exit_code, 0) << alone.everything();
  const Outcome ranks = lockstep_on_ranks(2, job + directory.path("two"));
  EXPECT_EQ(ranks.last_line(), alone.last_line()) << ranks.everything();
  const auto end = read_metrics(run).back();
  EXPECT_EQ(end["event"], "end") << end;
  const Outcome evaluated = lockstep("eval " + run);
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.everything();
  EXPECT_NE(evaluated.out.find(" of 15"), std::string::npos) << evaluated.out;
  EXPECT_EQ(evaluated.last_line(), alone.last_line());
}

}  // namespace
}  // namespace lockstep::testing::cifar_job_test
