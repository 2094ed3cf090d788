// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory, limits and facts of a machine, as the system and files in its form tell them.
#include "common/machine.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/temporary_directory.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {
namespace {

using testing::TemporaryDirectory;

constexpr rlim_t kGiB = rlim_t{1} << 30;

TEST(MissingThreadTest, AllLimitsThatHoldAreTold) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs more address space";
#else
  const SoftLimit tasks(RLIMIT_NPROC, 12345), space(RLIMIT_AS, 64 * kGiB);
  if (!tasks.is_set() || !space.is_set()) GTEST_SKIP() << "a hard limit is lower";
  const std::string text = explain_missing_thread();
  EXPECT_TRUE(text.starts_with(fmt::format(
      "a thread cannot be started: this process has {} threads, ulimit -u allows this user 12345, ulimit "
      "-v allows this process 64 GiB for its data and its threads' stacks",
      value_after("/proc/self/status", "Threads:"))))
      << text;
  EXPECT_FALSE(contains(text, {"the system allows"}));
#endif
}

TEST(OpenFilesTest, LimitIsRaisedAsFarAsItMay) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlim_t most = std::min<rlim_t>(before.rlim_max, 65'536);
  const rlimit small{200, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &small);
  EXPECT_EQ(raise_limit_of_open_files(), most);
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, most);
  EXPECT_EQ(now.rlim_max, before.rlim_max) << "it could not be raised again";
  EXPECT_EQ(raise_limit_of_open_files(), most);
  setrlimit(RLIMIT_NOFILE, &before);
}

/// A machine as /proc and /sys describe it.
class MachineTest : public ::testing::Test {
 protected:
  MachineTest() {
    write("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:   5000 kB\nSwapFree:   100 kB\n");
  }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  FreeMemory free(int processes = 1) const { return free_memory(processes, root_); }

  const TemporaryDirectory directory_;
  const std::filesystem::path root_ = directory_.path();
};

TEST_F(MachineTest, LeavesWhatIsAvailableAndSwap) {
  EXPECT_EQ(free().bytes, 5100U * 1024);
  EXPECT_EQ(free().limited_by, "this machine");
}

TEST_F(MachineTest, ACgroupLeavesItsLimitLessWhatIsUsedAndCannotBeGivenBack) {
  write("proc/self/cgroup", "0::/slurm/job_3\n");
  write("sys/fs/cgroup/slurm/job_3/memory.max", "max\n");
  write("sys/fs/cgroup/slurm/job_3/memory.current", "700000\n");
  write("sys/fs/cgroup/memory.max", "10\n");  // its use is not known
  write("sys/fs/cgroup/slurm/memory.max", "1000000\n");
  write("sys/fs/cgroup/slurm/memory.current", "700000\n");
  write("sys/fs/cgroup/slurm/memory.stat", "anon 5\ninactive_file 90000\nactive_file 10000\n");
  EXPECT_EQ(free().bytes, 400000U);
  EXPECT_EQ(free().limited_by, "the memory limit of its container or Slurm job");
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(free().bytes, 0U) << "more than full";
}

TEST_F(MachineTest, ACgroupOfVersionOneCountsToo) {
  write("proc/self/cgroup", "12:pids:/a\n9:cpu,memory:/docker/b\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(free().bytes, 200000U);
  write("sys/fs/cgroup/memory/memory.stat",
        "inactive_file 5\ntotal_inactive_file 30000\ntotal_active_file 1\n");
  EXPECT_EQ(free().bytes, 230001U);
  write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 150000\n");
  EXPECT_EQ(free().bytes, 300000U) << "no more can be given back than is used";
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "5222400\n");
  EXPECT_EQ(free().limited_by, "this machine") << "which has as much";
}

TEST_F(MachineTest, LinesOfCgroupsAreRead) {
  write("proc/self/cgroup", "nonsense\n9:memory\n12:pids:/a\n9:cpu,memory:/docker/b\n0::/x:y\n");
  const auto found = memory_cgroups(root_);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].mount, root_ / "sys/fs/cgroup/memory");
  EXPECT_EQ(found[0].path, "/docker/b");
  EXPECT_FALSE(found[0].is_version_2);
  EXPECT_EQ(found[1].mount, root_ / "sys/fs/cgroup");
  EXPECT_EQ(found[1].path, "/x:y");
  EXPECT_TRUE(found[1].is_version_2);
}

TEST(UsableCpusTest, ThereMayBeMoreThanASetHolds) {
  const AffinityCall with_5000 = [](pid_t /*process*/, std::size_t bytes, cpu_set_t* sets) {
    errno = EINVAL;
    if (8 * bytes < 5000) return -1;
    for (const std::size_t cpu : {1UL, 1023UL, 1024UL, 4999UL})
      CPU_SET(cpu % CPU_SETSIZE, sets + cpu / CPU_SETSIZE);
    return 0;
  };
  EXPECT_EQ(usable_cpus(0, with_5000), (std::vector{1, 1023, 1024, 4999}));
  static int refusal = 0, calls = 0;
  const AffinityCall refuses = [](pid_t /*process*/, std::size_t /*bytes*/, cpu_set_t* /*sets*/) {
    errno = refusal;
    return ++calls > 9 ? 0 : -1;
  };
  for (const auto& [error, most] : {std::pair(EPERM, 1), {EINVAL, 7}}) {
    refusal = error, calls = 0;
    EXPECT_EQ(usable_cpus(0, refuses), std::vector<int>());
    EXPECT_EQ(calls, most) << "up to 65,536 CPUs";
  }
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mine)) cpus.push_back(cpu);
  EXPECT_EQ(usable_cpus(), cpus);
}

/// Two cores at most, as any machine may have.
TEST_F(MachineTest, CoresAreNoMoreThanTheLeastQuotaLeaves) {
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
  const int all = CPU_COUNT(&mine);
  const auto cores = [&] { return available_cores(root_); };
  EXPECT_EQ(cores(), all) << "there is no cgroup";
  write("proc/self/cgroup", "0::/slurm/job_3\n");
  write("sys/fs/cgroup/slurm/job_3/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), all);
  write("sys/fs/cgroup/slurm/cpu.max", "100001 100000\n");
  EXPECT_EQ(cores(), std::min(all, 2)) << "more than one is two";
  write("sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_EQ(cores(), 1) << "a tenth of one is one";
  write("proc/self/cgroup", "9:cpu,cpuacct:/docker/b\n5:cpuset:/docker/b\n");
  write("sys/fs/cgroup/cpu/docker/b/cpu.cfs_period_us", "50000\n");
  write("sys/fs/cgroup/cpu/docker/b/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cores(), all);
  write("sys/fs/cgroup/cpu/docker/b/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(cores(), std::min(all, 2));
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(cores(), 1);
}

TEST_F(MachineTest, LimitsOfTheShellAreThoseOfEachProcess) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs more address space";
#else
  write("proc/meminfo", "MemAvailable: 1000000000 kB\n");
  write("proc/self/status", "VmSize: 1048576 kB\nVmData:\t2097152 kB\n");
  const SoftLimit space(RLIMIT_AS, 64 * kGiB), much(RLIMIT_DATA, 900 * kGiB);
  if (!space.is_set() || !much.is_set()) GTEST_SKIP() << "a hard limit is lower";
  EXPECT_EQ(free(2).bytes, 126 * kGiB);
  EXPECT_EQ(free(2).limited_by, "ulimit -v");
  const SoftLimit data(RLIMIT_DATA, 32 * kGiB);
  EXPECT_EQ(free(2).bytes, 60 * kGiB);
  EXPECT_EQ(free(2).limited_by, "ulimit -d");
  write("proc/self/status", "VmSize: 999999999 kB\n");
  EXPECT_EQ(free(2).bytes, 0U);
  EXPECT_EQ(free(2).limited_by, "ulimit -v");
#endif
}

TEST_F(MachineTest, LinesOfProcAreFoundByTheirBeginning) {
  write("lines", "a:  \tx y\nb:\na: second\n  c\n");
  EXPECT_EQ(value_after(root_ / "lines", "a:"), "x y");
  EXPECT_EQ(value_after(root_ / "lines", "b:"), "");
  EXPECT_EQ(value_after(root_ / "lines", "c"), "");
  EXPECT_EQ(value_after(root_ / "none", "a:"), "");
  write("7/stat", "7 (a) b) S 1 2");
  EXPECT_EQ(process_stat(root_ / "7"), "S 1 2");
  write("7/stat", "7 (a)");
  EXPECT_EQ(process_stat(root_ / "7"), "");
  write("7/stat", "7 (a) R");
  EXPECT_EQ(process_stat(root_ / "7"), "R");
  write("7/stat", "nothing");
  EXPECT_EQ(process_stat(root_ / "7"), "");
}

TEST(MemoryTest, WhatNoMachineHasIsRefusedInOneSentence) {
  const auto message = message_of<MemoryError>([] { require_memory(kTooLarge - 1, "a dream", "wake up"); });
  EXPECT_TRUE(message.starts_with("not enough memory: a dream would take 16 EiB, and ")) << message;
  EXPECT_TRUE(message.ends_with("; wake up")) << message;
  EXPECT_THROW(require_memory((std::uint64_t{1} << 44) - 1, "16 TiB", ""), MemoryError);
  EXPECT_NO_THROW(require_memory(1000, "little", ""));
}

/// Read here, since resident_bytes() would raise the peak.
TEST(MemoryTest, ThePeakIsNoLessThanNowThoughNothingElseAsked) {
  std::vector<std::vector<std::byte>> pieces;
  for (int i = 0; i < 20; ++i) {
    pieces.emplace_back(100'000, std::byte{1});
    std::ifstream statm("/proc/self/statm");
    std::uint64_t all = 0, resident = 0;  // pages
    statm >> all >> resident;
    ASSERT_GE(peak_resident_bytes(), resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  }
}

TEST(MemoryTest, ThePeakIsNeverBelowWhatIsResident) {
  std::uint64_t before = 0;
  std::vector<std::vector<std::byte>> pieces;
  for (int i = 0; i < 200; ++i) {
    pieces.emplace_back(100'000, std::byte{1});
    const std::uint64_t now = resident_bytes();
    pieces.back() = {};  // smaller again
    const std::uint64_t peak = peak_resident_bytes();
    ASSERT_GT(now, 0U);
    ASSERT_GE(peak, now) << "after piece " << i;
    ASSERT_GE(peak, before) << "after piece " << i;
    before = peak;
    pieces.back().assign(100'000, std::byte{1});
  }
}

/// In KiB there, and never quite exactly.
TEST(MemoryTest, ThePeakIsTheOneThatLinuxCounts) {
  const std::vector<std::byte> much(64 << 20, std::byte{1});
  const std::uint64_t peak = peak_resident_bytes();
  rusage usage{};
  ASSERT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_GE(peak, much.size() / 2);
  EXPECT_LE(peak, 1536 * static_cast<std::uint64_t>(usage.ru_maxrss)) << "half more at most";
}

TEST(MemoryTest, WhatAnotherProcessHasTooIsShared) {
  constexpr std::uint64_t kShared = 64 << 20;
  const std::vector<std::byte> shared(kShared, std::byte{1});
  const std::uint64_t before = shared_resident_bytes();
  const pid_t child = fork();  // has all that this process has
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  const std::uint64_t now = shared_resident_bytes();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_GE(now, before + kShared * 4 / 5);
  EXPECT_LE(now, peak_resident_bytes() + (4 << 20));  // Linux counts the peak less exactly
}

TEST(MachineFactsTest, NameBootAndClocksAreThoseOfTheSystem) {
  std::array<char, 256> name{};
  ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  EXPECT_EQ(host_name(), name.data());
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  EXPECT_EQ(host_boot_id(), boot);
  EXPECT_NEAR(now_seconds(), static_cast<double>(std::time(nullptr)), 100);
  EXPECT_GE(seconds_since(Clock::now() - std::chrono::seconds(2)), 2);
  EXPECT_LT(seconds_since(Clock::now() - std::chrono::seconds(2)), 100);
}

TEST(MemoryTest, BytesAreWrittenForPeople) {
  EXPECT_EQ(format_memory(0), "0 B");
  EXPECT_EQ(format_memory(1023), "1023 B");
  EXPECT_EQ(format_memory(1024), "1.0 KiB");
  EXPECT_EQ(format_memory(1536), "1.5 KiB");
  EXPECT_EQ(format_memory(10 << 10), "10 KiB");
  EXPECT_EQ(format_memory(999 << 10), "999 KiB");
  EXPECT_EQ(format_memory(1000 << 10), "1.0 MiB");
  EXPECT_EQ(format_memory(55 << 20), "55 MiB");
  EXPECT_EQ(format_memory(1023 << 20), "1.0 GiB");
  EXPECT_EQ(format_memory(std::uint64_t{73} << 27), "9.1 GiB");
  EXPECT_EQ(format_memory(kTooLarge), "more bytes than 64 bits can count");
}

}  // namespace
}  // namespace lockstep
