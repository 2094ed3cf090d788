// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// IDX files, plain and compressed, good and bad.
#include "data/idx.hpp"

#include "common/error.hpp"
#include "data/byte_source.hpp"
#include "tests/data/allocation_probe.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::idx_test {

namespace {

using test::Bytes;
using test::gzip;
using test::idx_file;
using test::idx_header;
using test::operator+;  // NOLINT(misc-unused-using-decls): clang-tidy does not see operators

void expect_damage(const Bytes& file, std::initializer_list<std::string_view> parts) {
  expect_error<DataError>([&] { parse_idx(file, "the-file"); }, parts);
}

bool holds(const IdxArray& array, const Bytes& file) {
  const auto bytes = array.bytes.span();
  return std::equal(bytes.begin(), bytes.end(),
                    file.begin() + static_cast<std::ptrdiff_t>(array.data_offset()), file.end());
}

/// Wherever it is cut.
void expect_truncations_to_be_damage(const Bytes& file) {
  for (std::size_t size = 0; size < file.size(); ++size) {
    SCOPED_TRACE(size);
    expect_damage(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)),
                  {"the-file: offset ", "; fetch it"});
  }
}

TEST(IdxTest, ImagesComeOutAsTheyWentIn) {
  const Bytes file = idx_file({5, 4, 3});
  const IdxArray array = parse_idx(file, "images");
  EXPECT_EQ(array.dims, (std::vector<std::int64_t>{5, 4, 3}));
  EXPECT_EQ(array.data_offset(), 16U);
  ASSERT_EQ(array.bytes.size(), 60U);
  EXPECT_TRUE(holds(array, file));
  EXPECT_EQ(parse_idx(idx_file({7}), "labels").bytes.size(), 7U);
  EXPECT_EQ(parse_idx(idx_file({2, 3, 4, 5}), "colour").bytes.size(), 120U);
}

TEST(IdxTest, WhatIsWrongIsSaidWithItsOffset) {
  expect_truncations_to_be_damage(idx_file({3, 2, 2}));
  expect_damage({}, {"offset 0", "empty"});
  expect_damage({0, 0, 8}, {"offset 3", "magic number", "truncated"});
  expect_damage({0, 0, 8, 2, 0, 0, 0, 5, 0}, {"offset 9", "header", "truncated"});
  expect_damage(idx_header({60000, 28, 28}), {"offset 16", "60000 x 28 x 28 = 47040000", "at most 0"});
  expect_damage(idx_file({3}) + Bytes{0}, {"the-file: offset 11", "trailing"});
  expect_damage({1, 0, 8, 1, 0, 0, 0, 0}, {"offset 0", "01 00 08 01"});
  expect_damage({'<', '!', 'D', 'O'}, {"web page"});
  for (const int type : {0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0x00, 0xFF}) {
    Bytes file = idx_file({4});
    file[2] = static_cast<std::uint8_t>(type);
    expect_damage(file, {"offset 2", fmt::format("element type 0x{:02x} is not supported", type)});
  }
  for (const int count : {0, 5, 255}) {
    Bytes file = idx_file({4}) + Bytes(2000);
    file[3] = static_cast<std::uint8_t>(count);
    expect_damage(file, {"offset 3", "dimensions"});
  }
  expect_damage(idx_header({0, 28, 28}), {"offset 4", "no elements"});
  expect_damage(idx_header({10, 28, 0}), {"offset 12", "no elements"});
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
  test::reset_allocation_probe();  // it sees a good file
  parse_idx(idx_file({1000}), "labels");
  EXPECT_EQ(test::largest_aligned_allocation(), 1000U);
}

TEST(IdxTest, AMissingFileIsAMissingDataError) {
  for (const char* path : {"/nowhere/at-all", "/dev/null/none"})
    expect_error<MissingDataError>([&] { read_idx(path); }, {path, ": no such file; check the path"});
}

TEST(IdxTest, ADirectoryOrADeviceIsNotAFile) {
  expect_error<DataError>([] { read_idx("/tmp"); }, {"/tmp", "not a regular file"});
  expect_error<DataError>([] { read_idx("/dev/zero"); }, {"/dev/zero", "not a regular file"});
  const test::TemporaryDirectory directory;
  const std::filesystem::path loop = directory.path() / "loop";
  std::filesystem::create_symlink("loop", loop);
  expect_error<IoError>([&] { read_idx(loop); },
                        {"loop: cannot be opened: Too many levels of symbolic links; check its permissions"});
}

// Compressed IDX files, good and bad.

/// An IDX file that does not compress well, so that its gzip has something of everything.
Bytes noisy_idx(std::uint32_t count) {
  std::mt19937 generator(7);
  Bytes file = idx_header({count});
  for (std::uint32_t i = 0; i < count; ++i) file.push_back(static_cast<std::uint8_t>(generator() % 50));
  return file;
}

TEST(GzipTest, ACompressedFileReadsAsThePlainOne) {
  const Bytes plain = idx_file({300, 28, 28}, 13);
  const IdxArray array = parse_idx(gzip(plain), "images.gz");
  EXPECT_EQ(array.dims, (std::vector<std::int64_t>{300, 28, 28}));
  EXPECT_TRUE(holds(array, plain));
}

TEST(GzipTest, AFileLargerThanTheInputBufferIsRead) {
  const Bytes plain = noisy_idx(2'000'000);
  ASSERT_GT(gzip(plain).size(), std::size_t{1} << 20);
  const test::TemporaryDirectory directory;
  test::write_file(directory.path() / "labels", gzip(plain));
  EXPECT_TRUE(holds(read_idx(directory.path() / "labels"), plain));
}

TEST(GzipTest, TheFirstBytesDecideAndNotTheName) {
  const test::TemporaryDirectory directory;
  const Bytes plain = idx_file({40});
  test::write_file(directory.path() / "plain.gz", plain);
  test::write_file(directory.path() / "packed", gzip(plain));
  EXPECT_TRUE(holds(read_idx(directory.path() / "plain.gz"), plain));
  EXPECT_TRUE(holds(read_idx(directory.path() / "packed"), plain));
}

TEST(GzipTest, EveryTruncationIsAnErrorWithTheOffsetInTheCompressedFile) {
  Bytes file = gzip(noisy_idx(500));
  expect_truncations_to_be_damage(file);
  file.resize(200);
  expect_damage(file, {"the-file: offset 200", "truncated"});
}

TEST(GzipTest, EveryBitFlipIsDetectedOrHarmless) {
  const Bytes plain = noisy_idx(3000);
  const Bytes file = gzip(plain);
  std::size_t detected = 0;
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    Bytes damaged = file;
    damaged[bit / 8] = static_cast<std::uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
    try {
      EXPECT_TRUE(holds(parse_idx(damaged, "flipped"), plain)) << "bit " << bit << " changed the data unseen";
    } catch (const DataError&) {
      ++detected;
    }
  }
  // Harmless: the 8 header bytes of time stamp, flags, level and system, and unused bits of the last
  // block.
  EXPECT_GT(detected, (file.size() - 10) * 8);
}

TEST(GzipTest, AWrongChecksumOrLengthIsAnError) {
  for (const auto& [from_the_end, check] : {std::pair{8, "data"}, {4, "length"}}) {
    Bytes file = gzip(idx_file({40}));
    *(file.end() - from_the_end) ^= 1U;
    const std::string words = std::string("damaged gzip data (incorrect ") + check + " check)";
    expect_damage(file, {"the-file: offset ", words});
  }
}

TEST(GzipTest, TrailingBytesOrASecondMemberAreAnErrorAtTheirOffset) {
  const Bytes file = gzip(idx_file({40}));
  const std::string offset = "offset " + std::to_string(file.size());
  expect_damage(file + Bytes{0}, {offset, "trailing bytes after the end of the gzip data"});
  expect_damage(file + gzip(idx_file({40})), {"a second gzip member"});
  expect_damage(gzip(idx_header({40})) + gzip(Bytes(40)), {"a second gzip member"});
}

TEST(GzipTest, DataThatDisagreesWithTheHeaderIsAnErrorInUncompressedOffsets) {
  expect_damage(gzip(idx_file({40}) + Bytes{0}), {"offset 48 of the uncompressed data", "trailing"});
  expect_damage(gzip(idx_header({40}) + Bytes(39)),
                {"offset 47 of the uncompressed data", "1 of 40 data bytes"});
  expect_damage(gzip({0, 0, 8}), {"offset 3 of the uncompressed data", "magic number"});
  expect_damage(gzip({}), {"offset 0 of the uncompressed data", "magic number"});
  expect_damage(gzip(gzip(idx_file({40}))), {"not an IDX file", "1f 8b"});
}

TEST(GzipTest, AllocationIsBoundedByWhatTheCompressedDataCanHold) {
  for (const std::uint32_t count : {0x7FFFFFFFU, 1U << 30, 1U << 20}) {
    const Bytes file = gzip(idx_header({count}) + Bytes(8));
    test::reset_allocation_probe();
    expect_damage(file, {"the-file", "promises"});
    EXPECT_EQ(test::largest_aligned_allocation(), 0U) << count;
  }
}

/// The first buffer is filled, the second is not; one for all that is promised is larger.
TEST(GzipTest, ABufferGrowsToTwiceItsSizeAsDataArrive) {
  const Bytes file = gzip(idx_header({560'000}) + Bytes(500'000) + noisy_idx(1000));
  const std::size_t most = 2 * (8 * file.size() + 262'144);
  ASSERT_LT(most, 560'000U);
  test::reset_allocation_probe();
  expect_damage(file, {"58992 of 560000 data bytes are missing: truncated"});
  EXPECT_GE(test::largest_aligned_allocation(), 524'288U);
  EXPECT_LE(test::largest_aligned_allocation(), most);
}

TEST(GzipTest, WhatMayFollowIsToldBeforeAnythingIsRead) {
  const Bytes file = gzip(idx_file({40}));
  MemorySource compressed(file, "the-file");
  GzipSource source(compressed);
  EXPECT_EQ(source.worth_reserving(), 8 * file.size() + 262144);
  EXPECT_EQ(source.remaining_at_most(), 1032 * (file.size() + 64));
  Bytes all(100);
  EXPECT_EQ(source.read(all), 48U);
  EXPECT_EQ(source.remaining_at_most(), 0U);
}

TEST(GzipTest, TheBestCompressionThereIsStaysWithinTheBound) {
  const Bytes plain = idx_header({20'000'000}) + Bytes(20'000'000);
  ASSERT_GT(plain.size(), gzip(plain).size() * 1000);
  EXPECT_EQ(parse_idx(gzip(plain), "zeros").bytes.size(), 20'000'000U);
}

}  // namespace

}  // namespace lockstep::idx_test
