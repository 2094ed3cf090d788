// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench allreduce` on host and device memory, and what it says where NCCL cannot be.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::testing {
namespace {

constexpr const char* kSmall = "bench allreduce --max-bytes 4096 --repetitions 3 ";

bool has_gpu() {
  return lockstep(std::string(kSmall) + "--backend mpi --device cuda").exit_code == 0;
}

void expect_refusal(const Outcome& outcome, int exit_code, const std::string& mention) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.everything();
  EXPECT_EQ(outcome.err.find("lockstep: "), 0U) << outcome.everything();
  EXPECT_EQ(outcome.err.find("lockstep: ", 1), std::string::npos) << outcome.everything();
  EXPECT_NE(outcome.err.find(mention), std::string::npos) << outcome.everything();
}

/// Six rows: three sizes, two types.
void expect_table(const Outcome& outcome, const std::string& title) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.everything();
  EXPECT_NE(outcome.out.find(title), std::string::npos) << outcome.everything();
  for (const char* column : {"size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong"})
    EXPECT_NE(outcome.out.find(column), std::string::npos) << column << " is not in\n" << outcome.out;
  std::size_t rows = 0;
  for (auto at = outcome.out.find(" sum "); at != std::string::npos; at = outcome.out.find(" sum ", at + 1))
    ++rows;
  EXPECT_EQ(rows, 6U) << outcome.out;
}

TEST(BenchAllreduceTest, HostMemoryOverMpi) {
  expect_table(lockstep_on_ranks(3, kSmall), "all-reduce over mpi, 3 ranks");
}

TEST(BenchAllreduceTest, DeviceMemoryThroughTheHost) {
  const std::string emulated = std::string(kSmall) + "--device emulated ";
  expect_table(lockstep_on_ranks(2, emulated), "all-reduce over mpi through pinned memory");
  expect_table(lockstep(emulated + "--backend thread --ranks 3"), "thread through pinned memory");
  expect_table(lockstep(emulated), "1 rank,");
}

TEST(BenchAllreduceTest, NcclWithoutAGpuIsOneLine) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  expect_refusal(lockstep(std::string(kSmall) + "--backend nccl"), 69, "parallel.device=cpu");
}

TEST(BenchAllreduceTest, NcclNeedsGpus) {
  for (const std::string device : {"cpu", "emulated"})
    expect_refusal(lockstep(std::string(kSmall) + "--backend nccl --device " + device), 2, device);
}

}  // namespace
}  // namespace lockstep::testing
