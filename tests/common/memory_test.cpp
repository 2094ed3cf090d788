// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sizes that do not fit, and what a machine, a container or a shell leaves of its memory.
#include "common/memory.hpp"

#include "common/checked_size.hpp"
#include "common/error.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace lockstep {
namespace {

TEST(CheckedSizeTest, ProductsThatFitAreProducts) {
  EXPECT_EQ(checked_product(), 1U);
  EXPECT_EQ(checked_product(65536, 65537, std::uint64_t{3}), 12885098496U);
  EXPECT_EQ(checked_product(std::uint64_t{1} << 63, 1), std::uint64_t{1} << 63);
  EXPECT_EQ(checked_product(0, kTooLarge - 1, 5), 0U);
  EXPECT_EQ(checked_sum(1, std::uint64_t{2}, 3L), 6U);
}

TEST(CheckedSizeTest, WhatDoesNotFitIsBeyondEveryLimit) {
  constexpr int kMost = std::numeric_limits<int>::max();
  EXPECT_EQ(checked_product(kMost, kMost, kMost), kTooLarge);
  EXPECT_EQ(checked_product(std::uint64_t{1} << 32, std::uint64_t{1} << 32), kTooLarge);
  EXPECT_EQ(checked_product(-1, 1), kTooLarge);
  EXPECT_EQ(checked_product(-1, 0), kTooLarge);
  EXPECT_EQ(checked_sum(kTooLarge, 1), kTooLarge);
  EXPECT_EQ(checked_sum(5, -3), kTooLarge);
}

/// A machine as /proc and /sys describe it.
class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-memory-XXXXXX").string();
    root_ = mkdtemp(name.data());
    write("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:   5000 kB\nSwapFree:   100 kB\n");
  }
  ~MachineTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  FreeMemory free() const { return free_memory(1, root_); }

 private:
  std::filesystem::path root_;
};

TEST_F(MachineTest, LeavesWhatIsAvailableAndSwap) {
  EXPECT_EQ(free().bytes, 5100U * 1024);
  EXPECT_EQ(free().limited_by, "this machine");
}

TEST_F(MachineTest, ACgroupLeavesItsLimitLessWhatIsUsedAndCannotBeGivenBack) {
  write("proc/self/cgroup", "0::/slurm/job_3\n");
  write("sys/fs/cgroup/slurm/job_3/memory.max", "max\n");
  write("sys/fs/cgroup/slurm/memory.max", "1000000\n");
  write("sys/fs/cgroup/slurm/memory.current", "700000\n");
  write("sys/fs/cgroup/slurm/memory.stat", "anon 5\ninactive_file 90000\nactive_file 10000\n");
  EXPECT_EQ(free().bytes, 400000U);
  EXPECT_EQ(free().limited_by, "the memory limit of its container or Slurm job");
}

TEST_F(MachineTest, ACgroupOfVersionOneCountsToo) {
  write("proc/self/cgroup", "12:pids:/a\n9:cpu,memory:/docker/b\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(free().bytes, 200000U);
}

TEST_F(MachineTest, AFullCgroupLeavesNothing) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1000\n");
  write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(free().bytes, 0U);
}

TEST(MemoryTest, WhatNoMachineHasIsRefusedInOneSentence) {
  try {
    require_memory(kTooLarge - 1, "a dream", "wake up");
    FAIL() << "accepted";
  } catch (const MemoryError& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), ExitCode::kDeviceUnavailable);
    EXPECT_TRUE(message.starts_with("not enough memory: a dream would take 16 EiB, and ")) << message;
    EXPECT_TRUE(message.ends_with("; wake up")) << message;
  }
  EXPECT_NO_THROW(require_memory(1000, "little", ""));
}

TEST(MemoryTest, BytesAreWrittenForPeople) {
  EXPECT_EQ(format_memory(0), "0 B");
  EXPECT_EQ(format_memory(1023), "1023 B");
  EXPECT_EQ(format_memory(1536), "1.5 KiB");
  EXPECT_EQ(format_memory(55 << 20), "55 MiB");
  EXPECT_EQ(format_memory(1023 << 20), "1.0 GiB");
  EXPECT_EQ(format_memory(std::uint64_t{73} << 27), "9.1 GiB");
  EXPECT_EQ(format_memory(kTooLarge), "more bytes than 64 bits can count");
}

}  // namespace
}  // namespace lockstep
