// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The real file system behind its seam, and what is made of its calls.
#include "common/env.hpp"

#include "common/error.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/temporary_directory.hpp"

#include <sys/stat.h>

namespace lockstep {

namespace {

using testing::TemporaryDirectory;

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
  EXPECT_EQ(as_text(env.read_last(directory.path() + "/b", 2)), "lo");
  EXPECT_EQ(as_text(env.read_last(directory.path() + "/b", 9)), "hello");
  replace_file(env, directory.path() + "/b", bytes_of("newer"));
  EXPECT_EQ(as_text(env.read(directory.path() + "/b")), "newer");
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
    EXPECT_THROW(env.list(none), MissingDataError);
  }
  EXPECT_NO_THROW(env.remove_file(directory.path("none")));
  EXPECT_TRUE(env.remove_directory(directory.path("none"), {}));
  for (const std::string& other : {directory.path(), std::string("/dev/zero")})
    EXPECT_THROW(env.read(other), DataError);
  EXPECT_THROW(env.create(file), IoError) << "it is there";
  expect_error<IoError>([&] { env.create("/proc/lockstep"); }, {"/proc/lockstep: cannot create"});
  EXPECT_FALSE(env.exists(link)) << "it leads nowhere";
  EXPECT_THROW(env.size(fifo), DataError);
  EXPECT_THROW(env.list(file), MissingDataError);
  EXPECT_THROW(env.remove_file(directory.path()), IoError);
  EXPECT_THROW(env.rename(directory.path("none"), file), IoError);
  EXPECT_NO_THROW(env.make_directory(directory.path()));
  EXPECT_THROW(env.make_directory(file), IoError);
  EXPECT_THROW(env.make_directory(directory.path("none") + "/a"), IoError);
  expect_error<IoError>([&] { env.remove_file("/proc/self/stat"); },
                        {"cannot remove", "; choose a directory that this user may write to"});
  EXPECT_THROW(env.remove_directory("/proc/self/task", {}), IoError);
  EXPECT_NO_THROW(env.sync_directory("/proc")) << "it cannot be synced, and need not";
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

TEST(EnvTest, NewDirectoriesAreSyncedInThoseAboveThem) {
  class NotedSyncs final : public MemoryEnv {
   public:
    std::vector<std::string> synced;
    void sync_directory(const std::string& path) override { synced.push_back(path); }
  } env;
  const TemporaryDirectory directory;
  const std::string runs = directory.path("runs"), run = runs + "/a/b";
  EXPECT_FALSE(make_directory_and_parents(env, run));
  EXPECT_TRUE(std::filesystem::is_directory(run));
  EXPECT_EQ(env.synced, (std::vector<std::string>{runs + "/a", runs, directory.path()}));
  EXPECT_FALSE(make_directory_and_parents(env, run));
  EXPECT_TRUE(make_directory_and_parents(env, "/dev/null/x"));
  EXPECT_EQ(env.synced.size(), 3U) << "nothing else is new";
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

TEST(AppendFileTest, APartThatCannotBeRemovedIsSaid) {
  AppendFile file("/dev/full");
  static_cast<void>(test::error_of<IoError>([&] { file.append(std::string("1")); }));
  EXPECT_EQ(message_of<IoError>([&] { file.sync(); }), "/dev/full: cannot be cut back: Invalid argument");
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

TEST(PosixEnvTest, AClaimThatIsNotWrittenWholeIsAnError) {
  const TemporaryDirectory directory;
  const std::string lock = directory.path("lock");
  const auto claim = Env::posix().claim(lock);
  const SmallDisk disk(3);
  EXPECT_EQ(message_of<IoError>([&] { claim->write("hello"); }),
            lock + ": cannot write: No space left on device; free some space or choose another directory");
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
  write_synced(env, folder, {});
  EXPECT_FALSE(claim->has_its_name()) << "its folder is a file now";
}

TEST(PathTest, ParentDirectory) {
  EXPECT_EQ(parent_directory("a/b/c"), "a/b");
  EXPECT_EQ(parent_directory("a/b/"), "a");
  EXPECT_EQ(parent_directory("a"), ".");
  EXPECT_EQ(parent_directory("/a"), "/");
}

}  // namespace

}  // namespace lockstep
