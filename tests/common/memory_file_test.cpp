// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory that processes of a host share: what one offers, another finds, and it takes nothing else for it.
#include "common/memory_file.hpp"

#include "tests/support/prelude.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {
namespace {

TEST(MemoryFileTest, WhatOneWritesIntoZerosAnotherReads) {
  const auto mine = MemoryFile::of_zeros(5000);
  ASSERT_NE(mine, nullptr);
  const auto other = MemoryFile::open(mine->offer());
  ASSERT_NE(other, nullptr);
  ASSERT_EQ(other->bytes().size(), 5000U);
  EXPECT_NE(other->bytes().data(), mine->bytes().data());
  EXPECT_TRUE(std::ranges::all_of(other->bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
  mine->bytes()[4999] = std::byte{7};
  other->bytes()[0] = std::byte{8};
  EXPECT_EQ(other->bytes()[4999], std::byte{7});
  EXPECT_EQ(mine->bytes()[0], std::byte{8});
}

TEST(MemoryFileTest, PartsBeginAlignedAndCannotBeChanged) {
  const std::vector<std::byte> first(9, std::byte{1}), none, second(200'000, std::byte{2});
  const std::vector<std::span<const std::byte>> parts = {first, none, second};
  const auto mine = MemoryFile::of_parts(parts);
  ASSERT_NE(mine, nullptr);
  const auto other = MemoryFile::open(mine->offer());
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(other->bytes().data()) % MemoryFile::kPartAlignment, 0U);
  EXPECT_TRUE(std::ranges::equal(other->bytes().first(first.size()), first));
  EXPECT_TRUE(std::ranges::equal(other->bytes().subspan(MemoryFile::kPartAlignment), second));
  EXPECT_LT(::pwrite(static_cast<int>(mine->offer().descriptor), "y", 1, 0), 0);
  EXPECT_DEATH(other->bytes()[0] = std::byte{1}, "");
}

TEST(MemoryFileTest, MoreThanAFileCanHaveIsNotToBeHad) {
  EXPECT_EQ(MemoryFile::of_zeros(std::numeric_limits<std::size_t>::max()), nullptr);
  EXPECT_EQ(MemoryFile::next_part(0), 0U);
  EXPECT_EQ(MemoryFile::next_part(1), 64U);
  EXPECT_EQ(MemoryFile::next_part(64), 64U);
}

/// A file without pages may be larger than all addresses of a process.
TEST(MemoryFileTest, MoreThanCanBeMappedIsNotOpened) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 60;
  const int descriptor = ::memfd_create("lockstep", MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(descriptor, kBytes), 0);
  ASSERT_EQ(::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_EQ(MemoryFile::open(
                {.pid = ::getpid(), .descriptor = descriptor, .bytes = kBytes - MemoryFile::kPartAlignment}),
            nullptr);
  ::close(descriptor);
}

TEST(MemoryFileTest, AnotherProcessFindsItAndItEndsWithTheLast) {
  auto mine = MemoryFile::of_zeros(64);
  ASSERT_NE(mine, nullptr);
  const MemoryFileOffer offer = mine->offer();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto its = MemoryFile::open(offer);
    if (its != nullptr) its->bytes()[63] = std::byte{9};
    ::_exit(its != nullptr ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(mine->bytes()[63], std::byte{9});
  mine.reset();
  EXPECT_EQ(MemoryFile::open(offer), nullptr);
}

TEST(MemoryFileTest, OnlyTheMemoryThatWasOfferedIsTakenForIt) {
  EXPECT_EQ(MemoryFile::open({}), nullptr);
  const auto mine = MemoryFile::of_zeros(64);
  ASSERT_NE(mine, nullptr);
  MemoryFileOffer offer = mine->offer();
  ++offer.key[1];
  EXPECT_EQ(MemoryFile::open(offer), nullptr) << "of another run, under the same numbers";
  offer = mine->offer();
  ++offer.bytes;
  EXPECT_EQ(MemoryFile::open(offer), nullptr);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const int shrinks = ::memfd_create("lockstep", MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(shrinks, 128), 0);
  for (const int descriptor : {pipe[0], shrinks}) {
    offer = {.pid = ::getpid(), .descriptor = descriptor, .bytes = 64};
    EXPECT_EQ(MemoryFile::open(offer), nullptr) << descriptor;
    ::close(descriptor);
  }
  ::close(pipe[1]);
}

}  // namespace
}  // namespace lockstep
