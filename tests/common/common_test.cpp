// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Advice is in words until a program says how its users spell what they can set.
#include "common/buffers.hpp"
#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/installed.hpp"
#include "common/machine.hpp"
#include "tests/common/sample_plugin.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"

#include <sys/resource.h>
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
  EXPECT_EQ(format_memory(1536), "1.5 KiB");
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
  EXPECT_TRUE(contains(text, {"built without lockstep_nothing.so", plugin_folders()[0].string(),
                              plugin_folders()[1].string(), "NCCL and build again", "use another one"}));
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
  EXPECT_NO_THROW(Env::posix().remove_directory("/nowhere/b", {}));
}

TEST(PosixEnvTest, ClaimExcludesUntilItEnds) {
  const TemporaryDirectory directory;
  auto first = Env::posix().claim(directory.path() + "/lock");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(Env::posix().claim(directory.path() + "/lock"), nullptr);
  first.reset();
  EXPECT_NE(Env::posix().claim(directory.path() + "/lock"), nullptr);
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
  EXPECT_EQ(hash.finish(), sha256(bytes_of("abc")));
}

}  // namespace

}  // namespace lockstep
