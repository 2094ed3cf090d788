// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The pixels of a JPEG are ours: known for a file of each kind, and the same on every instruction set.
#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "data/pictures/jpeg_pixels.hpp"
#include "data/pictures/picture.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/support/source_path.hpp"

#include <gtest/gtest.h>
#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <numbers>
#include <random>
#include <sstream>

namespace lockstep {
namespace {

using testing::Bytes;

constexpr PictureColour kBoth[] = {PictureColour::kGrey, PictureColour::kRgb};

Bytes golden(const std::string& name) {
  const auto bytes = Env::posix().read(test::source_path("tests/golden/jpeg/" + name));
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {begin, begin + bytes.size()};
}

/// A line of tests/golden/jpeg/pixels.txt: a file, and what its pixels come to in grey and in colour.
struct Known {
  std::string file, grey, colour;
};

std::vector<Known> known_pixels() {
  std::ifstream list(test::source_path("tests/golden/jpeg/pixels.txt"));
  std::vector<Known> known;
  for (std::string line; std::getline(list, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    words >> known.emplace_back().file >> known.back().grey >> known.back().colour;
  }
  return known;
}

TEST(JpegTest, EveryKindHasItsKnownPixelsOnEveryInstructionSet) {
  const auto known = known_pixels();
  ASSERT_GE(known.size(), 16U);
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    for (const Known& one : known) {
      const Bytes file = golden(one.file);
      for (const PictureColour colour : kBoth) {
        const Picture picture = read_jpeg(one.file, file, colour);
        EXPECT_EQ(hex(sha256(std::as_bytes(std::span(picture.pixels)))),
                  colour == PictureColour::kRgb ? one.colour : one.grey)
            << one.file << ", " << cpu::simd_name();
      }
    }
  }
}

/// Coefficients that no encoder writes wrap and saturate alike everywhere.
TEST(JpegTest, NonsenseGivesTheSamePixelsOnEveryInstructionSet) {
  std::mt19937 random(29);
  constexpr std::size_t kBlocks = 500;
  std::vector<std::int16_t> numbers(64 * kBlocks);
  std::vector<std::uint16_t> steps(64);
  for (auto& number : numbers) number = static_cast<std::int16_t>(random() % 4 == 0 ? random() : 0);
  for (auto& step : steps) step = static_cast<std::uint16_t>(random() >> random() % 16U);
  reference::expect_same_bits(reference::all_targets(), [&] {
    std::vector<std::uint8_t> pixels(64 * kBlocks);
    inverse_dct(reinterpret_cast<const JpegBlock*>(numbers.data()), kBlocks,
                std::span<const std::uint16_t, 64>(steps), pixels.data(), 8 * kBlocks);
    return pixels;
  });
}

/// The definition, in double precision.
double slow_pixel(const JpegBlock& block, int row, int column) {
  double sum = 0;
  for (int v = 0; v < 8; ++v) {
    for (int u = 0; u < 8; ++u) {
      const double scale =
          (u == 0 ? std::numbers::sqrt2 / 2 : 1) * (v == 0 ? std::numbers::sqrt2 / 2 : 1) / 4;
      sum += scale * block[8 * v + u] * std::cos((2 * column + 1) * u * std::numbers::pi / 16) *
             std::cos((2 * row + 1) * v * std::numbers::pi / 16);
    }
  }
  return std::clamp(sum + 128, 0.0, 255.0);
}

TEST(JpegTest, TheTransformIsTheInverseOfTheDct) {
  std::mt19937 random(7);
  const std::vector<std::uint16_t> ones(64, 1);
  for (int i = 0; i < 50; ++i) {
    JpegBlock block;
    for (int k = 0; k < 64; ++k)
      block[k] = static_cast<std::int16_t>(static_cast<int>(random() % 301) - 150) / (k + 1);
    std::uint8_t pixels[64];
    inverse_dct(&block, 1, std::span<const std::uint16_t, 64>(ones), pixels, 8);
    for (int k = 0; k < 64; ++k)
      ASSERT_NEAR(pixels[k], slow_pixel(block, k / 8, k % 8), 1.0) << i << ' ' << k;
  }
}

TEST(JpegTest, HalvedColoursAreWidenedByATriangle) {
  const JpegPlane luma{.width = 6, .height = 2, .row_bytes = 6, .pixels = Bytes(12, 0)};
  const JpegPlane halved{
      .width = 3, .height = 1, .across = 2, .down = 2, .row_bytes = 3, .pixels = {0, 100, 20}};
  // As red, green and blue: red whole, green halved both ways, blue halved across.
  const JpegPlane across{
      .width = 3, .height = 2, .across = 2, .down = 1, .row_bytes = 3, .pixels = {0, 100, 20, 9, 9, 9}};
  const auto pixels = jpeg_pixels(std::vector{luma, halved, across}, JpegColours::kRgb, 3, 6, 2);
  const Bytes expected = {0, 25, 75, 80, 40, 20};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), pixels.begin() + 12));
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), pixels.begin() + 18))
      << "the row below has no other neighbour";
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), pixels.begin() + 24));
  EXPECT_EQ(pixels[30], 9);
}

TEST(JpegTest, TwelveBitsAreRefusedByName) {
  Bytes file = golden("420.jpg");
  const std::string text(file.begin(), file.end());
  file[text.find("\xff\xc0") + 4] = 12;
  try {
    read_jpeg("fine.jpg", file, PictureColour::kRgb);
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "fine.jpg: JPEG with 12 bits a channel; only 8 are read, so save it with 8");
  }
}

#ifdef LIBJPEG_TURBO_VERSION
// Other programs show the same pixels.

Bytes shown_by_libjpeg(const Bytes& file, bool colour) {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, file.data(), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = colour ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_start_decompress(&jpeg);
  Bytes row(std::size_t{jpeg.output_width} * 3), planes;
  const std::size_t channels = colour ? 3 : 1, size = std::size_t{jpeg.output_width} * jpeg.output_height;
  planes.resize(channels * size);
  for (std::size_t y = 0; y < jpeg.output_height; ++y) {
    JSAMPROW pointer = row.data();
    jpeg_read_scanlines(&jpeg, &pointer, 1);
    for (std::size_t x = 0; x < jpeg.output_width; ++x)
      for (std::size_t c = 0; c < channels; ++c)
        planes[c * size + y * jpeg.output_width + x] = row[channels * x + c];
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return planes;
}

TEST(JpegTest, PixelsAreThoseOfLibjpegTurbo) {
  for (const Known& one : known_pixels()) {
    const Bytes file = golden(one.file);
    if (one.file == "cmyk.jpg" || one.file == "sideways.jpg") continue;  // which it leaves to programs
    for (const PictureColour colour : kBoth)
      EXPECT_EQ(read_jpeg(one.file, file, colour).pixels,
                shown_by_libjpeg(file, colour == PictureColour::kRgb))
          << one.file;
  }
}
#endif

}  // namespace
}  // namespace lockstep
