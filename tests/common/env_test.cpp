// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The real file system behind the seam, and SHA-256, on which all else stands.
#include "common/env.hpp"

#include "common/digest.hpp"
#include "common/error.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace lockstep {
namespace {

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
  try {
    const auto file = Env::posix().create("/proc/lockstep");
    FAIL() << "created";
  } catch (const IoError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("/proc/lockstep: cannot create")) << error.what();
  }
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
