// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files that a user has named, and those of a run, are whole or not at all. Nothing of others is replaced.
#include "common/output_file.hpp"

#include "common/error.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"

#include <sys/stat.h>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() { write_synced(env_, mine_, std::as_bytes(std::span("mine"))); }

  void expect_mine_untouched() const { EXPECT_EQ(env_.size(mine_), sizeof "mine"); }

  Env& env_ = Env::posix();
  const testing::TemporaryDirectory directory_, others_;
  const std::string mine_ = directory_.path("mine");
};

TEST_F(OutputFileTest, ReplacesNothingUnlessTold) {
  EXPECT_EQ(message_of<UsageError>([&] { write_output_file(env_, mine_, {}, false); }),
            mine_ + ": is there already; --force replaces it");
  expect_mine_untouched();
  EXPECT_NO_THROW(write_output_file(env_, mine_, {}, true));
  EXPECT_EQ(env_.size(mine_), 0U);
  EXPECT_NO_THROW(write_output_file(env_, directory_.path("new"), {}, false));
  EXPECT_EQ(env_.list(directory_.path()), (std::vector<std::string>{"mine", "new"}));
}

TEST_F(OutputFileTest, ReplacesOnlyRegularFilesEvenIfTold) {
  const std::string link = others_.path("link"), fifo = others_.path("fifo"), folder = directory_.path();
  fs::create_symlink(mine_, link);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string other = ": is not a regular file (a device or a FIFO); name another file",
                    within = ": is a directory; name a file in it, such as " + folder;
  for (const auto& [path, why] : std::vector<std::pair<std::string, std::string>>{
           {link, ": is a symbolic link, which is not followed; name the file itself"},
           {fifo, other},
           {"/dev/null", other},
           {folder, within + "/model.npz"},
           {folder + "/new/", within + "/new/model.npz"},
           {"", "the file to write has no name; give one such as model.npz"}})
    EXPECT_EQ(message_of<UsageError>([&, where = path] { write_output_file(env_, where, {}, true); }),
              path + why);
  EXPECT_TRUE(fs::is_fifo(fifo));
  expect_mine_untouched();
}

TEST_F(OutputFileTest, OneThatIsGivenUpLeavesNothing) {
  const std::string path = directory_.path("new");
  {
    OutputFile file(env_, path, false), other(env_, path, false);
    file.write(std::as_bytes(std::span("half")));
    EXPECT_EQ(env_.list(directory_.path()).size(), 3U);
  }
  EXPECT_EQ(env_.list(directory_.path()), std::vector<std::string>{"mine"});
  std::optional<OutputFile> published(std::in_place, env_, path, false);
  published->publish();
  OutputFile next(env_, path, true);
  published.reset();
  EXPECT_NO_THROW(next.publish()) << "what is published removes nothing";
}

TEST_F(OutputFileTest, OneThatCannotBeSyncedOrClosedReplacesNothing) {
  MemoryEnv env;
  env.make_directory("run");
  write_synced(env, "run/out", std::as_bytes(std::span("old")));
  for (const std::string failing : {"fsync", "close", "fsync the directory"}) {
    EXPECT_EQ(env.file("run/out").size(), sizeof "old");
    env.on_call = [&](const std::string& call, const std::string& path) {
      if (call == failing) throw IoError(path);
    };
    EXPECT_THROW(write_output_file(env, "run/out", {}, true), IoError) << failing;
  }
}

TEST_F(OutputFileTest, DoesNotReplaceWhatCameMeanwhile) {
  const std::string path = directory_.path("out");
  for (const bool replace : {true, false}) {
    OutputFile file(env_, path, replace);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_THROW(file.publish(), UsageError);
    EXPECT_TRUE(fs::is_fifo(path));
    fs::remove(path);
  }
  OutputFile file(env_, path, false);
  write_synced(env_, path, std::as_bytes(std::span("came")));
  EXPECT_EQ(message_of<UsageError>([&] { file.publish(); }),
            path + ": is there already; --force replaces it");
  EXPECT_EQ(env_.size(path), sizeof "came");
}

// Files of a run: replaced without a question, and none but its own.

TEST(OwnFileTest, WhatIsInTheWayIsNamed) {
  const testing::TemporaryDirectory directory;
  Env& env = Env::posix();
  const std::string file = directory.path("file"), folder = directory.path("folder"),
                    link = directory.path("link");
  write_synced(env, file, {});
  env.make_directory(folder);
  env.make_directory(folder + "/inner");  // by which the folder has another name
  fs::create_symlink(file, link);
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
  fs::create_hard_link(file, directory.path("twin"));
  EXPECT_EQ(refusal(file, EntryKind::kFile),
            file + ": is a file that has another name elsewhere (a hard link)" + fix);
  make_own(env, file);
  EXPECT_EQ(refusal(file, EntryKind::kFile), "");
}

TEST(OwnFileTest, AFileOfOneNameStaysAsItIs) {
  MemoryEnv env;
  write_synced(env, "a", {});
  env.start_trace();
  make_own(env, "a");
  EXPECT_TRUE(env.trace().empty());
}

}  // namespace
}  // namespace lockstep
