// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "data/picture.hpp"

#include "kernels/runtime/error.hpp"

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

/// A PNG of `width` x `height` pixels with `channels` bytes each, as libpng writes it.
Bytes encode_png(std::uint32_t width, std::uint32_t height, std::uint32_t format, const Bytes& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  png_alloc_size_t size = 0;
  EXPECT_NE(png_image_write_get_memory_size(image, size, 0, pixels.data(), 0, nullptr), 0);
  Bytes file(size);
  EXPECT_NE(png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr), 0);
  file.resize(size);
  return file;
}

std::string error_of(const Bytes& file, std::optional<std::int64_t> only = {}) {
  try {
    parse_pictures(file, "picture", only);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(PictureTest, GreyPngKeepsItsPixels) {
  const Bytes pixels = {0, 50, 100, 150, 200, 255};
  const auto pictures = parse_pictures(encode_png(3, 2, PNG_FORMAT_GRAY, pixels), "picture");
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_EQ(pictures[0].width, 3);
  EXPECT_EQ(pictures[0].height, 2);
  EXPECT_EQ(pictures[0].pixels, pixels);
}

TEST(PictureTest, ColourPngTurnsGreyAndTransparentTurnsBlack) {
  const Bytes pixels = {255, 255, 255, 255, 255, 255, 255, 0};
  const auto pictures = parse_pictures(encode_png(2, 1, PNG_FORMAT_RGBA, pixels), "picture");
  EXPECT_EQ(pictures[0].pixels, (Bytes{255, 0}));
}

TEST(PictureTest, EveryTruncationAndBitFlipOfAPngIsAnErrorOrAPicture) {
  const Bytes file = encode_png(5, 4, PNG_FORMAT_GRAY, Bytes(20, 77));
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(error_of({file.begin(), file.begin() + static_cast<long>(size)}), "") << size;
  }
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    Bytes flipped = file;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    error_of(flipped);  // must neither crash nor throw anything else
  }
}

TEST(PictureTest, PgmWithCommentsAndAnotherMaximumIsScaled) {
  const auto pictures =
      parse_pictures(bytes_of(std::string("P5 # made by hand\n2 1\n# largest\n15\n\x0f\x03", 37)), "picture");
  EXPECT_EQ(pictures[0].pixels, (Bytes{255, 51}));
}

TEST(PictureTest, DamagedPgmSaysWhatIsWrong) {
  EXPECT_NE(error_of(bytes_of("P5")).find("expected the width"), std::string::npos);
  EXPECT_NE(error_of(bytes_of("P5 2 x 255\n")).find("expected the height"), std::string::npos);
  EXPECT_NE(error_of(bytes_of("P5 2 2 255\nabc")).find("truncated PGM"), std::string::npos);
  EXPECT_NE(error_of(bytes_of("P5 2 2 65535\n12345678")).find("16 bits"), std::string::npos);
  EXPECT_NE(error_of(bytes_of("P5 99999999999 2 255\n")).find("expected the width"), std::string::npos);
}

TEST(PictureTest, AHugeSizeIsRefusedBeforeMemoryIsAskedFor) {
  EXPECT_NE(error_of(bytes_of("P5 2000000000 2000000000 255\n")).find("pixels"), std::string::npos);
  Bytes png = encode_png(1, 1, PNG_FORMAT_GRAY, {0});
  std::fill_n(png.begin() + 16, 8, std::uint8_t{0x7f});  // IHDR: width and height; its CRC is wrong now, too
  EXPECT_NE(error_of(png), "no error");
}

TEST(PictureTest, AnIdxFileHoldsManyPicturesOfWhichOneCanBePicked) {
  Bytes file = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 10, 20, 30, 40};
  const auto all = parse_pictures(file, "set");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].name, "set[1]");
  EXPECT_EQ(all[1].pixels, (Bytes{30, 40}));
  EXPECT_EQ(parse_pictures(file, "set", 1)[0].pixels, (Bytes{30, 40}));
  EXPECT_NE(error_of(file, 2).find("there is no image 2"), std::string::npos);
}

TEST(PictureTest, OnlyIdxFilesHaveAnIndex) {
  EXPECT_NE(error_of(bytes_of("P5 1 1 255\nx"), 0).find("IDX"), std::string::npos);
}

TEST(PictureTest, ResizingAveragesAreas) {
  const Picture picture{.name = "", .width = 4, .height = 2, .pixels = {0, 100, 200, 200, 100, 0, 200, 200}};
  EXPECT_EQ(resize(picture, 2, 1).pixels, (Bytes{50, 200}));
  EXPECT_EQ(resize(picture, 4, 2).pixels, picture.pixels);
  EXPECT_EQ(resize(picture, 8, 4).pixels.size(), 32U);
  EXPECT_EQ(resize(picture, 3, 1).pixels, (Bytes{50, 125, 200}));
}

TEST(PictureTest, TheBorderTellsALightBackground) {
  Picture picture{.name = "", .width = 3, .height = 3, .pixels = Bytes(9, 255)};
  picture.pixels[4] = 0;
  EXPECT_TRUE(has_light_background(picture));
  invert(picture);
  EXPECT_FALSE(has_light_background(picture));
  EXPECT_EQ(picture.pixels[4], 255);
}

}  // namespace
}  // namespace lockstep
