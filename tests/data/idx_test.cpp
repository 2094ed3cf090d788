// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Plain IDX files, good and bad.
#include "data/idx.hpp"

#include "common/error.hpp"
#include "tests/data/allocation_probe.hpp"
#include "tests/data/idx_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::idx_test {
namespace {

using test::Bytes;
using test::expect_error;
using test::idx_file;
using test::idx_header;
using test::operator+;

void expect_damage(const Bytes& file, std::initializer_list<const char*> parts) {
  expect_error<DataError>([&] { parse_idx(file, "the-file"); }, parts);
}

TEST(IdxTest, ImagesComeOutAsTheyWentIn) {
  const Bytes file = idx_file({5, 4, 3});
  const IdxArray array = parse_idx(file, "images");
  EXPECT_EQ(array.dims, (std::vector<std::int64_t>{5, 4, 3}));
  EXPECT_EQ(array.data_offset(), 16U);
  ASSERT_EQ(array.bytes.size(), 60U);
  EXPECT_TRUE(std::equal(array.bytes.span().begin(), array.bytes.span().end(), file.begin() + 16));
}

TEST(IdxTest, LabelsAndFourDimensionsAreRead) {
  EXPECT_EQ(parse_idx(idx_file({7}), "labels").bytes.size(), 7U);
  EXPECT_EQ(parse_idx(idx_file({2, 3, 4, 5}), "colour").bytes.size(), 120U);
}

TEST(IdxTest, AFileOnDiskReadsAsItsBytesInMemory) {
  const test::TemporaryDirectory directory;
  const Bytes file = idx_file({50, 28, 28}, 13);
  const auto path = directory.path() / "any name.at all";
  test::write_file(path, file);
  const IdxArray array = read_idx(path);
  EXPECT_TRUE(
      std::equal(array.bytes.span().begin(), array.bytes.span().end(), file.begin() + 16, file.end()));
}

TEST(IdxTest, EveryTruncationIsAnErrorThatNamesTheFile) {
  const Bytes file = idx_file({3, 2, 2});
  for (std::size_t size = 0; size < file.size(); ++size) {
    SCOPED_TRACE(size);
    expect_damage(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)),
                  {"the-file: offset ", "; fetch it"});
  }
}

TEST(IdxTest, TruncationSaysWhatIsMissing) {
  expect_damage({}, {"offset 0", "empty"});
  expect_damage({0, 0, 8}, {"offset 3", "magic number", "truncated"});
  expect_damage({0, 0, 8, 2, 0, 0, 0, 5, 0}, {"offset 9", "header", "truncated"});
  expect_damage(idx_header({60000, 28, 28}), {"offset 16", "60000 x 28 x 28 = 47040000", "at most 0"});
}

TEST(IdxTest, TrailingBytesAreAnError) {
  expect_damage(idx_file({3}) + Bytes{0}, {"the-file: offset 11", "trailing"});
}

TEST(IdxTest, AWrongMagicIsAnErrorThatShowsIt) {
  expect_damage({1, 0, 8, 1, 0, 0, 0, 0}, {"offset 0", "01 00 08 01"});
  expect_damage({'<', '!', 'D', 'O'}, {"web page"});
}

TEST(IdxTest, OtherElementTypesAreAnError) {
  for (const int type : {0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0x00, 0xFF}) {
    Bytes file = idx_file({4});
    file[2] = static_cast<std::uint8_t>(type);
    expect_damage(file, {"offset 2", "element type"});
  }
}

TEST(IdxTest, NoDimensionsOrTooManyAreAnError) {
  for (const int count : {0, 5, 255}) {
    Bytes file = idx_file({4}) + Bytes(2000);
    file[3] = static_cast<std::uint8_t>(count);
    expect_damage(file, {"offset 3", "dimensions"});
  }
}

TEST(IdxTest, AnEmptyDimensionIsAnError) {
  expect_damage(idx_header({0, 28, 28}), {"offset 4", "no elements"});
  expect_damage(idx_header({10, 28, 0}), {"offset 12", "no elements"});
}

TEST(IdxTest, SizesWhoseProductOverflowsAreAnError) {
  const std::uint32_t most = 0xFFFFFFFF;
  expect_damage(idx_header({most, most, most, most}), {"offset 4", "more than"});
  expect_damage(idx_header({65536, 65536}), {"offset 8", "more than"});
  expect_damage(idx_header({0x80000000, 2, 0}), {"more than"});
}

TEST(IdxTest, APromiseThatTheFileCannotKeepAllocatesNothing) {
  for (const std::uint32_t count : {0xFFFFFFFFU, 0x7FFFFFFFU, 1U << 30, 9U}) {
    const Bytes file = idx_header({count}) + Bytes(8);
    test::reset_allocation_probe();
    expect_damage(file, {"the-file"});
    EXPECT_EQ(test::largest_aligned_allocation(), 0U) << count;
  }
}

TEST(IdxTest, TheAllocationProbeSeesAGoodFile) {
  test::reset_allocation_probe();
  parse_idx(idx_file({1000}), "labels");
  EXPECT_EQ(test::largest_aligned_allocation(), 1000U);
}

TEST(IdxTest, AMissingFileIsAMissingDataError) {
  expect_error<MissingDataError>([] { read_idx("/nowhere/at-all"); }, {"/nowhere/at-all", "no such file"});
}

TEST(IdxTest, ADirectoryOrADeviceIsNotAFile) {
  expect_error<DataError>([] { read_idx("/tmp"); }, {"/tmp", "not a regular file"});
  expect_error<DataError>([] { read_idx("/dev/zero"); }, {"/dev/zero", "not a regular file"});
}

}  // namespace
}  // namespace lockstep::idx_test
