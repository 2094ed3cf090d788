// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Compressed IDX files, good and bad.
#include "common/error.hpp"
#include "data/idx.hpp"
#include "tests/data/allocation_probe.hpp"
#include "tests/data/idx_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep::gzip_test {
namespace {

using test::Bytes;
using test::expect_error;
using test::gzip;
using test::idx_file;
using test::idx_header;
using test::operator+;

void expect_damage(const Bytes& file, std::initializer_list<const char*> parts) {
  expect_error<DataError>([&] { parse_idx(file, "the-file"); }, parts);
}

/// An IDX file that does not compress well, so that its gzip has something of everything.
Bytes noisy_idx(std::uint32_t count) {
  std::mt19937 generator(7);
  Bytes file = idx_header({count});
  for (std::uint32_t i = 0; i < count; ++i) file.push_back(static_cast<std::uint8_t>(generator() % 50));
  return file;
}

bool holds(const IdxArray& array, const Bytes& file) {
  const auto bytes = array.bytes.span();
  return std::equal(bytes.begin(), bytes.end(),
                    file.begin() + static_cast<std::ptrdiff_t>(array.data_offset()), file.end());
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

TEST(GzipTest, EveryTruncationIsAnError) {
  const Bytes file = gzip(noisy_idx(500));
  for (std::size_t size = 0; size < file.size(); ++size) {
    SCOPED_TRACE(size);
    expect_damage(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)),
                  {"the-file: offset "});
  }
}

TEST(GzipTest, TruncationNamesTheOffsetInTheCompressedFile) {
  Bytes file = gzip(noisy_idx(500));
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
  // Harmless: the 8 header bytes of time stamp, flags, level and system, and unused bits at the end of the
  // last block.
  EXPECT_GT(detected, (file.size() - 10) * 8);
}

TEST(GzipTest, AWrongChecksumIsAnError) {
  Bytes file = gzip(idx_file({40}));
  file[file.size() - 8] ^= 1U;
  expect_damage(file, {"the-file: offset ", "damaged gzip data (incorrect data check)"});
}

TEST(GzipTest, AWrongLengthIsAnError) {
  Bytes file = gzip(idx_file({40}));
  file[file.size() - 4] ^= 1U;
  expect_damage(file, {"the-file: offset ", "damaged gzip data (incorrect length check)"});
}

TEST(GzipTest, TrailingBytesAreAnErrorAtTheirOffset) {
  const Bytes file = gzip(idx_file({40}));
  const std::string offset = "offset " + std::to_string(file.size());
  expect_damage(file + Bytes{0}, {offset.c_str(), "trailing bytes after the end of the gzip data"});
}

TEST(GzipTest, ASecondMemberIsAnErrorThatSaysSo) {
  const Bytes file = gzip(idx_file({40}));
  expect_damage(file + gzip(idx_file({40})), {"a second gzip member"});
  expect_damage(gzip(idx_header({40})) + gzip(Bytes(40)), {"a second gzip member"});
}

TEST(GzipTest, DataThatDisagreesWithTheHeaderIsAnErrorInUncompressedOffsets) {
  expect_damage(gzip(idx_file({40}) + Bytes{0}), {"offset 48 of the uncompressed data", "trailing"});
  expect_damage(gzip(idx_header({40}) + Bytes(39)),
                {"offset 47 of the uncompressed data", "1 of 40 data bytes"});
  expect_damage(gzip({0, 0, 8}), {"offset 3 of the uncompressed data", "magic number"});
  expect_damage(gzip({}), {"offset 0 of the uncompressed data", "magic number"});
}

TEST(GzipTest, GzipInsideGzipIsNotAnIdxFile) {
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

TEST(GzipTest, TheBestCompressionThereIsStaysWithinTheBound) {
  const Bytes plain = idx_header({20'000'000}) + Bytes(20'000'000);
  ASSERT_GT(plain.size(), gzip(plain).size() * 1000);
  EXPECT_EQ(parse_idx(gzip(plain), "zeros").bytes.size(), 20'000'000U);
}

}  // namespace
}  // namespace lockstep::gzip_test
