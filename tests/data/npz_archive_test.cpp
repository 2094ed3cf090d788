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
    test::Bytes all(source->remaining_at_most());
    source->read(all);
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
  const std::size_t end64 = end_, locator = end64 + 56;
  insert(end64, test::Bytes(56 + 20));
  put(end64, 0x06064B50, 4);
  put(end64 + 40, 51 + 32, 8);
  put(end64 + 48, directory_at_, 8);
  put(locator, 0x07064B50, 4);
  put(locator + 8, end64, 8);
  for (const std::size_t at : {12U, 16U}) put(locator + 20 + at, 0xFFFFFFFF, 4);
  EXPECT_EQ(read(), "wxyz");
  put(end64, 0, 1);
  expect_refused("its 64-bit end is none");
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
  put(directory_at_ + 10, 8, 2);
  put(directory_at_ + 24, 0x7FFFFFFF, 4);
  expect_refused("an entry claims more than it can hold");
  bytes_ = good;
  put(directory_at_ + 10, 8, 2);
  put(30 + 5, 0xFF, 1);  // a block of deflated data that is none
  expect_refused("a.npz:a: damaged at byte 0: it cannot be inflated");
  bytes_ = npz({{"a", "|u1", "4", "wxyz"}, {"a", "|u1", "4", "wxyz"}});
  expect_refused("two arrays have one name");
  bytes_ = test::bytes_of("PK");
  expect_refused("it has no directory at its end");
}

}  // namespace
}  // namespace lockstep::npz_test
