// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Advice is in words until a program says how its users spell what they can set.
#include "common/buffers.hpp"
#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/common/sample_plugin.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {

namespace {

class AdviceTest : public ::testing::Test {
 protected:
  ~AdviceTest() override { spell_advice_as({}); }
};

TEST_F(AdviceTest, IsInWordsAtFirst) {
  EXPECT_EQ(advice("use a smaller {global_batch}, more ranks or {device}cpu"),
            "use a smaller global batch, more ranks or device cpu");
}

TEST_F(AdviceTest, IsSpeltAsTheProgramSays) {
  spell_advice_as({.global_batch = "data.global_batch", .timeout = "parallel.timeout_seconds"});
  EXPECT_EQ(advice("lower {global_batch} or raise {timeout}"),
            "lower data.global_batch or raise parallel.timeout_seconds");
  EXPECT_TRUE(contains(explain(std::bad_alloc()).text, {"data.global_batch"}));
}

TEST(ExplanationTest, APathThatCannotBeExaminedIsAnErrorOfFiles) {
  const std::error_code cause = std::make_error_code(std::errc::io_error);
  const Explanation told = explain(std::filesystem::filesystem_error("status", "/disk/a", cause));
  EXPECT_EQ(told.code, ExitCode::kIo);
  EXPECT_TRUE(told.text.starts_with("/disk/a: cannot be examined: Input/output error")) << told.text;
}

TEST(ExplanationTest, WhatRanOutIsToldFromABug) {
  const auto expect_memory = [](const std::exception& error) {
    EXPECT_EQ(explain(error).code, ExitCode::kDeviceUnavailable);
    EXPECT_TRUE(explain(error).text.starts_with("not enough memory; start fewer ranks"));
  };
  expect_memory(std::bad_alloc());
  expect_memory(std::length_error("a"));
  const Explanation threads = explain(std::system_error(EAGAIN, std::generic_category()));
  EXPECT_EQ(threads.code, ExitCode::kDeviceUnavailable);
  EXPECT_TRUE(threads.text.starts_with("a thread cannot be started: this process has "));
  const Explanation other = explain(std::system_error(EINVAL, std::generic_category(), "f"));
  EXPECT_EQ(other.code, ExitCode::kInternal);
  EXPECT_EQ(other.text, "internal error: f: Invalid argument; please report this");
  EXPECT_EQ(explain(IoError("disk full")).code, ExitCode::kIo);
  EXPECT_EQ(explain(IoError("disk full")).text, "disk full");
  EXPECT_THROW(throw_missing_thread(std::system_error(EINVAL, std::generic_category())), std::system_error);
  EXPECT_THROW(throw_missing_thread(std::system_error(EAGAIN, std::generic_category())), DeviceError);
}

TEST(ExplanationTest, AConditionThatDoesNotHoldIsToldWithItsPlace) {
  const auto fails = [] { LOCKSTEP_CHECK(1 + 1 == 3); };
  const int line = __LINE__ - 1;
  EXPECT_EQ(
      message_of<InternalError>(fails),
      fmt::format("internal error at {}:{}: '1 + 1 == 3' does not hold; please report this", __FILE__, line));
  EXPECT_NO_THROW([] { LOCKSTEP_CHECK(1 + 1 == 2); }());
}

TEST_F(AdviceTest, EveryNameHasAPlace) {
  spell_advice_as({"1", "2", "3", "4", "5", "6", "7", "8", "9"});
  EXPECT_EQ(advice("{global_batch}{per_rank_batch}{grain}{sample_counts}{device}{backend}{kernels}{timeout}"
                   "{run_directory}"),
            "123456789");
}

TEST_F(AdviceTest, APluginHasACopyOfItsOwnAndIsTold) {
  spell_advice_as({.backend = "--backend "});
  const Plugin plugin{"lockstep_sample_plugin", "a sample", "use something else"};
  const auto advise = plugin_function<decltype(sample_plugin_advise)>(plugin, "sample_plugin_advise");
  EXPECT_EQ(message_of<DeviceError>(advise), "use --backend mpi");
}

// Sizes that do not fit, and what a machine, a container or a shell leaves of its memory.

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

TEST(AlignedBufferTest, IsZeroAndAlignedOrAPartOfWhatOthersOwn) {
  AlignedBuffer<float> mine(3);
  EXPECT_EQ(mine.size(), 3U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mine.data()) % 64, 0U);
  EXPECT_TRUE(std::ranges::all_of(mine.span(), [](float value) { return value == 0; }));
  EXPECT_EQ(AlignedBuffer<float>(0).data(), nullptr);
  const auto owner = std::make_shared<AlignedBuffer<float>>(2);
  {
    AlignedBuffer<float> part(owner->data(), 2, owner);
    part[1] = 5;
    EXPECT_EQ(owner.use_count(), 2);
  }
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ((*owner)[1], 5) << "the memory stays its owner's";
}

/// While it lives, a limit of this process is lower.
class SoftLimit {
 public:
  SoftLimit(decltype(RLIMIT_AS) resource, rlim_t value) : resource_(resource) {
    getrlimit(resource_, &before_);
    const rlimit lower{value, before_.rlim_max};
    is_set_ = setrlimit(resource_, &lower) == 0;
  }
  ~SoftLimit() { setrlimit(resource_, &before_); }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;

  /// False: the hard limit is lower still.
  bool is_set() const { return is_set_; }

 private:
  decltype(RLIMIT_AS) resource_;
  rlimit before_{};
  bool is_set_ = false;
};
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
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-memory-XXXXXX").string();
    root_ = mkdtemp(name.data());
    write("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:   5000 kB\nSwapFree:   100 kB\n");
  }
  ~MachineTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  FreeMemory free(int processes = 1) const { return free_memory(processes, root_); }

  std::filesystem::path root_;
};

TEST_F(MachineTest, LeavesWhatIsAvailableAndSwap) {
  EXPECT_EQ(free().bytes, 5100U * 1024);
  EXPECT_EQ(free().limited_by, "this machine");
}

TEST_F(MachineTest, ACgroupLeavesItsLimitLessWhatIsUsedAndCannotBeGivenBack) {
  write("proc/self/cgroup", "0::/slurm/job_3\n");
  write("sys/fs/cgroup/slurm/job_3/memory.max", "max\n");
  write("sys/fs/cgroup/slurm/job_3/memory.current", "700000\n");
  write("sys/fs/cgroup/memory.max", "10\n");  // whose use is not known
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

TEST_F(MachineTest, AFullCgroupLeavesNothing) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1000\n");
  write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(free().bytes, 0U);
}

TEST(MemoryTest, WhatNoMachineHasIsRefusedInOneSentence) {
  const auto message = message_of<MemoryError>([] { require_memory(kTooLarge - 1, "a dream", "wake up"); });
  EXPECT_TRUE(message.starts_with("not enough memory: a dream would take 16 EiB, and ")) << message;
  EXPECT_TRUE(message.ends_with("; wake up")) << message;
  EXPECT_NO_THROW(require_memory(1000, "little", ""));
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

const Plugin kSample{"lockstep_sample_plugin", "a sample", "use something else"};

TEST(PluginTest, ObjectsOfAPluginWorkAndThrowErrorsOfTheirType) {
  const auto make = plugin_function<decltype(sample_plugin_greeter)>(kSample, "sample_plugin_greeter");
  const std::unique_ptr<test::Greeter> greeter(make());
  EXPECT_EQ(greeter->greet("rank 1"), "good morning, rank 1");
  EXPECT_THROW(greeter->greet(""), UsageError);
}

TEST(PluginTest, ErrorsKeepTheirTypeTextAndExitCodeAcrossTheBoundary) {
  const auto fail = plugin_function<decltype(sample_plugin_throw)>(kSample, "sample_plugin_throw");
  EXPECT_THROW(fail(0), DeviceError);
  EXPECT_THROW(fail(2), InternalError);
  EXPECT_EQ(message_of<PeerLostError>([&] { fail(1); }), "peer");
}

TEST(PluginTest, LoadingAgainGivesTheSameAddress) {
  EXPECT_EQ(plugin_symbol(kSample, "sample_plugin_throw"), plugin_symbol(kSample, "sample_plugin_throw"));
}

TEST(PluginTest, AFileThatIsNotThereIsNamedWithThePlacesAndTheFix) {
  const auto text = message_of<DeviceError>([] {
    plugin_symbol({"lockstep_nothing", "NCCL", "use another one"}, "f");
  });
  EXPECT_TRUE(contains(text, {"built without lockstep_nothing.so (looked in " + plugin_folders()[0].string() +
                                  " and " + plugin_folders()[1].string(),
                              "NCCL and build again", "use another one"}));
}

TEST(PluginTest, LoadedOnesAndAddedFoldersAreKnownOnce) {
  for (int i = 0; i < 2; ++i) {
    plugin_symbol(kSample, "sample_plugin_throw");
    look_for_plugins_in("/nowhere/plugins");
  }
  const auto folders = plugin_folders();
  EXPECT_EQ(folders[1], (folders[0] / "../lib/lockstep").lexically_normal());
  EXPECT_EQ(folders.back(), "/nowhere/plugins");
  EXPECT_EQ(std::ranges::count(folders, folders.back()), 1);
  EXPECT_EQ(std::ranges::count(loaded_plugins(), std::filesystem::path("lockstep_sample_plugin.so"),
                               &std::filesystem::path::filename),
            1);
}

TEST(InstalledTest, FilesBesideTheProgramComeFirstAndThoseOfTheSourcesLast) {
  const auto folders = shared_directories("launch/jobs");
  ASSERT_EQ(folders.size(), 2U);
  EXPECT_EQ(folders[0], plugin_folders()[0].parent_path() / "share/lockstep/jobs");
  EXPECT_TRUE(folders[1].string().ends_with("/launch/jobs")) << folders[1];
}

TEST(InstalledTest, AScriptHasItsInstalledNameWhereItIsFound) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path("lockstep-conjure")) << "";
  {
    const test::SetVariable path("PATH", ("/nowhere:" + directory.path()).c_str());
    EXPECT_EQ(script_command("conjure"), "lockstep-conjure");
    EXPECT_EQ(script_command("juggle"), "launch/juggle");
  }
  const test::SetVariable none("PATH", nullptr);
  EXPECT_EQ(script_command("conjure"), "launch/conjure");
}

TEST(PluginTest, ALibraryThatIsNotThereIsNamedWithTheFix) {
  const auto message = message_of<DeviceError>([] {
    plugin_symbol({"lockstep_lonely_plugin", "NCCL", "use MPI"}, "lonely_plugin");
  });
  expect_one_line_with(message,
                       {"lockstep_lonely_plugin.so: libmissing_library.so: cannot open shared object",
                        "LD_LIBRARY_PATH", "install NCCL", "use MPI"});
}

TEST(PluginTest, AFunctionThatIsNotThereMeansAnotherVersion) {
  expect_error<DeviceError>([] { plugin_symbol(kSample, "sample_plugin_of_next_year"); },
                            {"'sample_plugin_of_next_year'", "another version", "use something else"});
}

// The real file system behind the seam, and SHA-256, on which all else stands.

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(PosixEnvTest, WhatIsWrittenIsRead) {
  const TemporaryDirectory directory;
  Env& env = Env::posix();
  write_synced(env, directory.path() + "/a", bytes_of("hello"));
  EXPECT_EQ(env.read(directory.path() + "/a").size(), 5U);
  env.rename(directory.path() + "/a", directory.path() + "/b");
  env.sync_directory(directory.path());
  EXPECT_EQ(env.list(directory.path()), std::vector<std::string>{"b"});
  EXPECT_FALSE(env.exists(directory.path() + "/a"));
  EXPECT_TRUE(env.exists(directory.path() + "/b"));
  EXPECT_EQ(env.size(directory.path() + "/b"), 5U);
  EXPECT_EQ(as_text(env.read(directory.path() + "/b")), "hello");
  EXPECT_EQ(as_text(env.read_first(directory.path() + "/b", 4)), "hell");
  for (const char* name : {"/c", "/a"}) write_synced(env, directory.path() + name, {});
  EXPECT_EQ(env.list(directory.path()), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(PosixEnvTest, EachKindOfThingIsToldFromTheOthers) {
  const TemporaryDirectory directory;
  Env& env = Env::posix();
  const std::string file = directory.path("file"), link = directory.path("link"),
                    fifo = directory.path("fifo");
  write_synced(env, file, bytes_of("1"));
  std::filesystem::create_symlink(directory.path("gone"), link);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(env.entry(file).kind, EntryKind::kFile);
  EXPECT_EQ(env.entry(file).names, 1U);
  EXPECT_EQ(env.entry(directory.path()).kind, EntryKind::kDirectory);
  EXPECT_EQ(env.entry(link).kind, EntryKind::kLink);
  EXPECT_EQ(env.entry(fifo).kind, EntryKind::kOther);
  for (const std::string& none : {directory.path("none"), file + "/none"}) {
    EXPECT_EQ(env.entry(none).kind, EntryKind::kNothing);
    EXPECT_FALSE(env.exists(none));
    EXPECT_THROW(env.read(none), MissingDataError);
    EXPECT_THROW(env.size(none), MissingDataError);
  }
  EXPECT_FALSE(env.exists(link)) << "it leads nowhere";
  EXPECT_THROW(env.size(fifo), DataError);
  EXPECT_THROW(env.list(file), MissingDataError);
  EXPECT_THROW(env.remove_file(directory.path()), IoError);
  EXPECT_THROW(env.rename(directory.path("none"), file), IoError);
  EXPECT_NO_THROW(env.make_directory(directory.path()));
  EXPECT_THROW(env.make_directory(file), IoError);
  EXPECT_THROW(env.make_directory(directory.path("none") + "/a"), IoError);
}

TEST(PosixEnvTest, ADirectoryGoesWithItsFilesUnlessThereIsMore) {
  const TemporaryDirectory directory;
  Env& env = Env::posix();
  const std::string path = directory.path("d"), link = directory.path("link");
  env.make_directory(path);
  for (const char* name : {"/a", "/b"}) write_synced(env, path + name, {});
  env.make_directory(path + "/folder");
  std::filesystem::create_directory_symlink(path, link);
  const std::vector<std::string> names = {"a", "folder", "gone"};
  EXPECT_TRUE(env.remove_directory(link, names));
  EXPECT_EQ(env.entry(link).kind, EntryKind::kNothing);
  EXPECT_EQ(env.list(path).size(), 3U) << "no link is followed";
  EXPECT_FALSE(env.remove_directory(path, names));
  EXPECT_EQ(env.list(path), (std::vector<std::string>{"b", "folder"}));
  EXPECT_FALSE(env.remove_directory(path + "/b", names)) << "that is a file";
  std::filesystem::remove(path + "/folder");
  EXPECT_TRUE(env.remove_directory(path, std::vector<std::string>{"b"}));
  EXPECT_FALSE(env.exists(path));
}

TEST(PosixEnvTest, NewFilesAndDirectoriesAreForAllThatTheMaskAllows) {
  const TemporaryDirectory directory;
  const mode_t before = ::umask(0);
  write_synced(Env::posix(), directory.path("file"), {});
  Env::posix().make_directory(directory.path("directory"));
  AppendFile(directory.path("appended")).sync();
  ::umask(before);
  const auto mode = [&](const char* name) {
    return static_cast<unsigned>(std::filesystem::status(directory.path(name)).permissions());
  };
  EXPECT_EQ(mode("file"), 0666U);
  EXPECT_EQ(mode("directory"), 0777U);
  EXPECT_EQ(mode("appended"), 0666U);
}

TEST(PosixEnvTest, ErrorsNameTheLimitThatHelps) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("a");
  const auto file = Env::posix().create(path);
  {
    const SmallDisk disk(3);
    EXPECT_EQ(message_of<IoError>([&] { file->write(bytes_of("hello")); }),
              path + ": cannot write: File too large; raise the limit on the size of files (ulimit -f)");
  }
  const SoftLimit files(RLIMIT_NOFILE, 0);
  EXPECT_EQ(message_of<IoError>([&] { Env::posix().read(path); }),
            path + ": cannot open: Too many open files; raise the limit on open files (ulimit -n)");
  EXPECT_EQ(
      message_of<IoError>([&] { Env::posix().create(path + "2"); }),
      path + "2: cannot create the file: Too many open files; raise the limit on open files (ulimit -n)");
}

TEST(OwnFileTest, WhatIsInTheWayIsNamed) {
  const TemporaryDirectory directory;
  Env& env = Env::posix();
  const std::string file = directory.path("file"), folder = directory.path("folder"),
                    link = directory.path("link");
  write_synced(env, file, {});
  env.make_directory(folder);
  env.make_directory(folder + "/inner");  // by which the folder has another name
  std::filesystem::create_symlink(file, link);
  const auto refusal = [&](const std::string& path, EntryKind kind) {
    return test::error_of<IoError>([&] { require_own(env, path, kind); });
  };
  const std::string fix =
      "; a run writes only into its own directory: move this away, or choose another run directory";
  EXPECT_EQ(refusal(file, EntryKind::kFile), "");
  EXPECT_EQ(refusal(folder, EntryKind::kDirectory), "");
  EXPECT_EQ(refusal(directory.path("none"), EntryKind::kFile), "");
  EXPECT_EQ(refusal(link, EntryKind::kFile), link + ": is a symbolic link" + fix);
  EXPECT_EQ(refusal(folder, EntryKind::kFile), folder + ": is not a regular file" + fix);
  EXPECT_EQ(refusal(file, EntryKind::kDirectory), file + ": is not a directory" + fix);
  std::filesystem::create_hard_link(file, directory.path("twin"));
  EXPECT_EQ(refusal(file, EntryKind::kFile),
            file + ": is a file that has another name elsewhere (a hard link)" + fix);
}

TEST(EnvTest, AReplacementThatFailsLeavesNothingAndLeftoversDoNotHinder) {
  MemoryEnv env;
  env.fail_at(2, false);  // the write
  EXPECT_THROW(replace_file(env, "a", bytes_of("new")), IoError);
  EXPECT_FALSE(env.exists("a") || env.exists("a.tmp"));
  write_synced(env, "a.tmp", bytes_of("of a crash"));
  replace_file(env, "a", bytes_of("new"));
  EXPECT_EQ(as_text(env.read("a")), "new");
  EXPECT_FALSE(env.exists("a.tmp"));
}

TEST(EnvTest, TheFirstNameThatNothingHasIsFree) {
  MemoryEnv env;
  EXPECT_EQ(free_name(env, "p"), "p");
  for (const char* name : {"p", "p.2"}) write_synced(env, name, {});
  EXPECT_EQ(free_name(env, "p"), "p.3");
  EXPECT_EQ(free_name(env, "p", "-"), "p-2");
}

TEST(EnvTest, WhatMayPassIsTriedAgainThreeTimes) {
  class NotedPauses final : public MemoryEnv {
   public:
    std::vector<std::int64_t> pauses;
    void pause(std::chrono::milliseconds duration) override { pauses.push_back(duration.count()); }
  } env;
  int tries = 0;
  const auto succeed_at = [&](int try_number) {
    return [&tries, try_number] { return ++tries < try_number ? throw IoError("away") : tries; };
  };
  EXPECT_EQ(read_patiently(env, succeed_at(4)), 4);
  EXPECT_EQ(env.pauses, (std::vector<std::int64_t>{20, 100, 400}));
  tries = 0;
  EXPECT_THROW(read_patiently(env, succeed_at(5)), IoError);
  EXPECT_EQ(tries, 4);
  EXPECT_THROW(read_patiently(env, [&]() -> int { throw MissingDataError("gone"); }), MissingDataError);
  EXPECT_EQ(env.pauses.size(), 6U) << "nothing to wait for";
}

TEST(AppendFileTest, IsCutBackAndWritesLaterWhatAFullDiskRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("a");
  const auto text = [&] { return std::string(as_text(Env::posix().read(path))); };
  {
    AppendFile file(path);
    file.append(std::string("12345"));
    file.sync();
    {
      const SmallDisk disk(7);
      static_cast<void>(test::error_of<IoError>([&] { file.append(std::string("6789")); }));
      EXPECT_EQ(
          message_of<IoError>([&] { file.sync(); }),
          path + ": cannot be written: File too large; raise the limit on the size of files (ulimit -f)");
      EXPECT_EQ(text(), "12345");
    }
    file.append(std::string("0"));
    file.sync();
  }
  EXPECT_EQ(text(), "1234567890");
  AppendFile(path, 3).append(std::string("x"));
  EXPECT_EQ(text(), "123x");
  expect_error<IoError>([&] { AppendFile(directory.path("none") + "/a"); },
                        {"/none/a: cannot be opened for writing: No such file or directory"});
}

TEST(PosixEnvTest, FileThatExistsIsNotCreatedAgain) {
  const TemporaryDirectory directory;
  write_synced(Env::posix(), directory.path() + "/a", bytes_of("1"));
  EXPECT_THROW(Env::posix().create(directory.path() + "/a"), IoError);
}

TEST(PosixEnvTest, ReplaceFileLeavesOnlyTheNewOne) {
  const TemporaryDirectory directory;
  replace_file(Env::posix(), directory.path() + "/a", bytes_of("old"));
  replace_file(Env::posix(), directory.path() + "/a", bytes_of("newer"));
  EXPECT_EQ(Env::posix().read(directory.path() + "/a").size(), 5U);
  EXPECT_EQ(Env::posix().list(directory.path()).size(), 1U);
}

TEST(PosixEnvTest, MissingFileAndDirectoryAreMissingData) {
  EXPECT_THROW(Env::posix().read("/nowhere/a"), MissingDataError);
  EXPECT_THROW(Env::posix().list("/nowhere"), MissingDataError);
}

TEST(PosixEnvTest, WhatIsNoRegularFileIsNotRead) {
  const TemporaryDirectory directory;
  EXPECT_THROW(Env::posix().read(directory.path()), DataError);
  EXPECT_THROW(Env::posix().read("/dev/zero"), DataError);
}

TEST(PosixEnvTest, FileThatCannotBeCreatedIsNamed) {
  const auto message = message_of<IoError>([] { Env::posix().create("/proc/lockstep"); });
  EXPECT_TRUE(message.starts_with("/proc/lockstep: cannot create")) << message;
}

TEST(PosixEnvTest, RemovingWhatIsNotThereIsFine) {
  EXPECT_NO_THROW(Env::posix().remove_file("/nowhere/a"));
  EXPECT_TRUE(Env::posix().remove_directory("/nowhere/b", {}));
}

TEST(PosixEnvTest, ClaimExcludesUntilItEnds) {
  const TemporaryDirectory directory;
  auto first = Env::posix().claim(directory.path() + "/lock");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(Env::posix().claim(directory.path() + "/lock"), nullptr);
  first->write("a long text");
  first->write("short");
  EXPECT_EQ(as_text(Env::posix().read(directory.path() + "/lock")), "short");
  EXPECT_TRUE(first->has_its_name());
  first.reset();
  EXPECT_NE(Env::posix().claim(directory.path() + "/lock"), nullptr);
}

TEST(PosixEnvTest, AClaimKnowsWhenItsFileHasLostItsName) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path("folder"), lock = folder + "/lock";
  Env& env = Env::posix();
  env.make_directory(folder);
  const auto claim = env.claim(lock);
  env.rename(lock, folder + "/other");
  EXPECT_FALSE(claim->has_its_name());
  write_synced(env, lock, {});
  EXPECT_FALSE(claim->has_its_name()) << "that is another file";
  env.remove_file(lock);
  env.rename(folder + "/other", lock);
  EXPECT_TRUE(claim->has_its_name());
  env.rename(folder, directory.path("elsewhere"));
  EXPECT_FALSE(claim->has_its_name());
}

TEST(PathTest, ParentDirectory) {
  EXPECT_EQ(parent_directory("a/b/c"), "a/b");
  EXPECT_EQ(parent_directory("a/b/"), "a");
  EXPECT_EQ(parent_directory("a"), ".");
  EXPECT_EQ(parent_directory("/a"), "/");
}

TEST(Sha256Test, KnownDigests) {
  EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(bytes_of("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PiecesGiveTheDigestOfTheWhole) {
  Sha256 hash;
  hash.update(bytes_of("a"));
  hash.update({});
  hash.update(bytes_of("bc"));
  EXPECT_EQ(hash.so_far(), sha256(bytes_of("abc")));
  EXPECT_EQ(hash.finish(), sha256(bytes_of("abc")));
}

TEST(Sha256Test, DigitsComeBackAsBytesOrAsZeros) {
  const Sha256Digest digest = sha256(bytes_of("abc"));
  const std::string digits = hex(digest);
  EXPECT_EQ(digest_of_hex(digits), digest);
  for (const std::string& wrong :
       {digits + "0", digits.substr(1), "g" + digits.substr(1), "B" + digits.substr(1)})
    EXPECT_EQ(digest_of_hex(wrong), Sha256Digest{}) << wrong;
}

TEST(QuickDigestTest, IsThatOfItsDefinition) {
  const auto digest = [](std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7);
    return quick_digest(bytes);
  };
  EXPECT_EQ(digest(0), "36be529c85cfa370904501f19319df7fd60b959252aa3d85736ab18b293d2049");
  EXPECT_EQ(digest(63), "ccf7ec83fb79a4e680e55100e709b0759c903fe8cf3f6f7eac405399d3db8a47");
  EXPECT_EQ(digest(64), "a6aa8d6d5d864aae0b4c419a54d453d7df23433b669682b99db2356ef767c301");
  EXPECT_EQ(digest(200), "3ae1dcb268e23b96f81c0b000fa2ae904329da9db0e30ae1fe627545d2dfd08e");
}

TEST(JsonTextTest, HasTheLayoutAndCharactersThatAreAskedFor) {
  const auto ordered = nlohmann::ordered_json::parse(R"({"b":1,"a":"\u00e9"})");
  EXPECT_EQ(json_text(ordered), "{\"b\":1,\"a\":\"\xc3\xa9\"}");
  EXPECT_EQ(json_text(ordered, 2), "{\n  \"b\": 1,\n  \"a\": \"\xc3\xa9\"\n}");
  EXPECT_EQ(json_text_in_ascii(ordered), R"({"b":1,"a":"\u00e9"})");
  EXPECT_EQ(json_text(nlohmann::json("\xff")), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(json_text(parse_json("[1, 2]")), "[1,2]");
  EXPECT_EQ(json_text(parse_json_or_discard("[1, 2]"), 1), "[\n 1,\n 2\n]");
  EXPECT_TRUE(parse_json_or_discard("[1,").is_discarded());
  EXPECT_THROW(parse_json("[1,"), nlohmann::json::parse_error);
}

}  // namespace

}  // namespace lockstep
