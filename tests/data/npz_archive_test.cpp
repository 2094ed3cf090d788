// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Archives of arrays byte by byte: with comments, in 64 bits, and those that lie.
#include "common/error.hpp"
#include "data/byte_source.hpp"
#include "data/tables/readers.hpp"
#include "tests/data/npz_fixture.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::npz_test {
namespace {

/// One array of four bytes, and the parts of its archive that are changed.
class NpzBytesTest : public test::DirectoryTest {
 protected:
  NpzBytesTest() : bytes_(npz({{"a", "|u1", "4", "wxyz"}})) {
    end_ = bytes_.size() - 22;
    directory_at_ = little_endian(bytes_, end_ + 16, 4);
  }
  void put(std::size_t at, std::uint64_t number, int count) {
    for (int i = 0; i < count; ++i)
      bytes_.at(at + static_cast<std::size_t>(i)) = static_cast<std::uint8_t>(number >> (8 * i));
  }
  void insert(std::size_t at, const test::Bytes& more) {
    bytes_.insert(bytes_.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  }
  std::string read() const {
    write("a.npz", bytes_);
    const NpzArchive archive(path("a.npz"));
    const auto source = archive.open(archive.names().back());
    test::Bytes all(source->remaining_at_most() + 1);
    all.resize(source->read(all));
    return {all.end() - 4, all.end()};
  }
  void expect_refused(const char* part) const {
    expect_error<DataError>([&] { read(); }, {"a.npz", part});
  }

  test::Bytes bytes_;
  std::size_t end_ = 0, directory_at_ = 0;
};

TEST_F(NpzBytesTest, AreReadAlsoWithACommentAndIn64Bits) {
  for (const std::size_t comment : {0U, 65535U, 5U}) {
    put(end_ + 20, comment, 2);
    bytes_.resize(end_ + 22 + comment, 'c');
    EXPECT_EQ(read(), "wxyz");
  }
  const std::uint64_t packed = little_endian(bytes_, directory_at_ + 20, 4);
  for (const std::size_t at : {20U, 24U, 42U}) put(directory_at_ + at, 0xFFFFFFFF, 4);
  const std::size_t extra = directory_at_ + 46 + 5;
  insert(extra, test::Bytes(32));
  put(directory_at_ + 30, 32, 2);
  put(extra, 9, 2);  // a field of something else, then that of the sizes
  put(extra + 4, 1, 2);
  put(extra + 6, 24, 2);
  for (const std::size_t at : {8U, 16U}) put(extra + at, packed, 8);
  end_ += 32;
  put(end_ + 12, 51 + 32, 4);
  EXPECT_EQ(read(), "wxyz");
  for (const std::size_t at : {20U, 24U}) put(directory_at_ + at, packed, 4);
  put(extra + 6, 8, 2);  // the last of the three numbers alone is in 64 bits
  put(extra + 8, 0, 8);
  EXPECT_EQ(read(), "wxyz");
  insert(extra + 32, {9, 0, 0xFF, 0xFF, 'c', 'c', 'c'});  // a field that promises more, and a comment
  put(directory_at_ + 30, 32 + 4, 2);
  put(directory_at_ + 32, 3, 2);
  end_ += 7;
  put(end_ + 12, 51 + 39, 4);
  EXPECT_EQ(read(), "wxyz");
  put(directory_at_ + 30, 32 + 3, 2);  // no whole field is left
  put(directory_at_ + 32, 4, 2);
  EXPECT_EQ(read(), "wxyz");
  put(extra + 6, 7, 2);
  expect_refused("its directory is damaged");  // seven bytes are no number
  put(extra + 6, 8, 2);
  const std::size_t end64 = end_, locator = end64 + 56;
  insert(end64, test::Bytes(56 + 20));
  put(end64, 0x06064B50, 4);
  put(end64 + 40, 51 + 39, 8);
  put(end64 + 48, directory_at_, 8);
  put(locator, 0x07064B50, 4);
  put(locator + 8, end64, 8);
  for (const std::size_t at : {12U, 16U}) put(locator + 20 + at, 0xFFFFFFFF, 4);
  EXPECT_EQ(read(), "wxyz");
  put(locator + 15, 1, 1);
  expect_refused("it ends too early");
  put(locator + 15, 0, 1);
  put(locator + 20 + 20, 65535, 2);  // the longest comment
  bytes_.resize(locator + 20 + 22 + 65535, 'c');
  EXPECT_EQ(read(), "wxyz");
  put(end64, 0, 1);
  expect_refused("its 64-bit end is none");
}

TEST_F(NpzBytesTest, MayLackArraysOrNames) {
  put(directory_at_ + 28, 0, 2);
  put(end_ + 12, 46, 4);
  EXPECT_EQ(read(), "wxyz");
  put(directory_at_ + 42, 0xFFFFFFFF, 4);  // in a field of 64 bits that has no bytes
  put(directory_at_ + 30, 4, 2);
  put(end_ + 12, 50, 4);
  put(directory_at_ + 46, 1, 4);
  expect_refused("its directory is damaged");
  write("empty.npz", npz({}));
  EXPECT_TRUE(NpzArchive(path("empty.npz")).names().empty());
}

TEST_F(NpzBytesTest, ThatAreCutWhileTheyAreReadAreRefused) {
  write("a.npz", bytes_);
  const auto source = NpzArchive(path("a.npz")).open("a");
  std::filesystem::resize_file(path("a.npz"), 30 + 5 + 1);
  test::Bytes all(4);
  expect_error<DataError>([&] { source->read(all); }, {"a.npz:a: damaged at byte 1: ends too early"});
}

TEST_F(NpzBytesTest, ThatLieAreRefused) {
  const test::Bytes good = bytes_;
  struct Case {
    std::size_t at;
    std::uint64_t number;
    int count;
    const char* part;
  };
  for (const Case& lie :
       {Case{directory_at_ + 8, 1, 2, "it is encrypted"},
        {directory_at_, 0, 1, "its directory is damaged"},
        {directory_at_ + 28, 6, 2, "its directory is damaged"},
        {directory_at_ + 10, 1, 2, "a.npz:a is packed by method 1, and stored or deflated ones are"},
        {directory_at_ + 20, 3, 4, "a.npz:a is packed by method 0"},
        {directory_at_ + 42, 1, 4, "no entry at the place that its directory gives"},
        {directory_at_ + 42, 0xFFFFFF, 4, "it ends too early"},
        {directory_at_ + 20, 0xFFFFFF, 4, "an entry reaches beyond the end"},
        {end_, 0, 1, "it has no directory at its end"},
        {end_ + 20, 1, 2, "it has no directory at its end"},
        {end_ + 12, (1 << 20) + 1, 4, "its directory is larger than 1 MiB"},
        {end_ + 12, 1 << 20, 4, "it ends too early"}}) {
    bytes_ = good;
    put(lie.at, lie.number, lie.count);
    expect_refused(lie.part);
  }
  bytes_ = good;
  for (const std::size_t at : {20U, 24U}) put(directory_at_ + at, good.size() - 35, 4);
  expect_refused("its CRC is not that of the archive");
  bytes_ = good;
  const std::uint64_t packed = little_endian(good, directory_at_ + 20, 4);
  put(directory_at_ + 10, 8, 2);
  put(30 + 5, 0xFF, 1);  // a block of deflated data that is none
  put(directory_at_ + 24, (packed + 1) * 1032, 4);
  expect_refused("an entry claims more than it can hold");
  put(directory_at_ + 24, (packed + 1) * 1032 - 1, 4);
  expect_refused("a.npz:a: damaged at byte 0: it cannot be inflated");
  bytes_ = npz({{"a", "|u1", "4", "wxyz"}, {"a", "|u1", "4", "wxyz"}});
  expect_refused("two arrays have one name");
  bytes_ = test::bytes_of("PK");
  expect_refused(
      "a.npz: no archive of arrays: it has no directory at its end; save it again with numpy.savez");
}

}  // namespace
}  // namespace lockstep::npz_test
