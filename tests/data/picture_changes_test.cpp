// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pictures made larger or smaller, laid on paper, inverted.
#include "tests/data/picture_fixture.hpp"

namespace lockstep {
namespace {

using testing::Bytes;
using testing::sheet;

TEST(PictureTest, LongerSidesAreInterpolatedWhereStepsWouldShow) {
  const Picture two{.name = "", .width = 2, .height = 1, .pixels = {0, 100}},
      three{.name = "", .width = 3, .height = 1, .pixels = {0, 60, 120}};
  EXPECT_EQ(resize(two, 4, 1, true).pixels, (Bytes{0, 25, 75, 100}));
  EXPECT_EQ(resize(three, 5, 1, true).pixels, (Bytes{0, 24, 60, 96, 120}));
  EXPECT_EQ(resize(sheet(1, 1, 77), 3, 2, true).pixels, Bytes(6, 77));
  EXPECT_EQ(resize(two, 4, 1).pixels, (Bytes{0, 0, 100, 100}));
}

TEST(PictureTest, ASizeIsOneNumberOrTwo) {
  EXPECT_EQ(parse_picture_size("20"), (PictureSize{20, 20}));
  EXPECT_EQ(parse_picture_size("32x24"), (PictureSize{32, 24}));
  EXPECT_EQ(parse_picture_size("4096x1"), (PictureSize{4096, 1}));
  for (const char* text : {"", "x", "0", "4097", "0x5", "5x0", "3x", "x3", "3x4x5", "-1", "3X4"})
    EXPECT_FALSE(parse_picture_size(text).has_value()) << text;
}

TEST(PictureTest, ProportionsAreRoundedToTheNearestPixel) {
  const Bytes tens = {0, 10, 20, 30, 40, 50, 0, 10, 20, 30, 40, 50},
              turned = {0, 0, 10, 10, 20, 20, 30, 30, 40, 40, 50, 50};
  const Picture wide{.name = "", .width = 6, .height = 2, .pixels = tens},
      high{.name = "", .width = 2, .height = 6, .pixels = turned};
  EXPECT_EQ(fit_picture(wide, {2, 1}, PictureFit::kCrop).pixels, (Bytes{15, 35}));
  EXPECT_EQ(fit_picture(high, {1, 2}, PictureFit::kCrop).pixels, (Bytes{15, 35}));
  EXPECT_EQ(fit_picture(wide, {3, 2}, PictureFit::kPad).pixels, (Bytes{5, 25, 45, 0, 0, 0}));
  EXPECT_EQ(fit_picture(high, {2, 3}, PictureFit::kPad).pixels, (Bytes{5, 0, 25, 0, 45, 0}));
  for (const auto& [side, nines] : {std::pair{6, 12}, {5, 5}}) {
    const Bytes padded = fit_picture(sheet(4, 1, 9), {side, side}, PictureFit::kPad).pixels;
    EXPECT_EQ(std::ranges::count(padded, 9), nines) << "a quarter of " << side;
  }
}

TEST(PictureTest, OtherProportionsAreCroppedPaddedOrSqueezed) {
  const Picture wide{.name = "", .width = 4, .height = 2, .pixels = {0, 100, 200, 200, 100, 0, 200, 200}};
  EXPECT_EQ(fit_picture(wide, {2, 2}, PictureFit::kSqueeze).pixels, (Bytes{50, 200, 50, 200}));
  EXPECT_EQ(fit_picture(wide, {2, 2}, PictureFit::kCrop).pixels, (Bytes{100, 200, 0, 200}));
  EXPECT_EQ(fit_picture(wide, {4, 4}, PictureFit::kPad).pixels,
            (Bytes{0, 0, 0, 0, 0, 100, 200, 200, 100, 0, 200, 200, 0, 0, 0, 0}));
  const Picture high{
      .name = "", .width = 1, .height = 3, .channels = 3, .pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  EXPECT_EQ(fit_picture(high, {1, 1}, PictureFit::kCrop).pixels, (Bytes{2, 5, 8}));
  EXPECT_EQ(fit_picture(high, {3, 3}, PictureFit::kPad).pixels[13], 5) << "the middle of the second channel";
  EXPECT_EQ(fit_picture(high, {3, 3}, PictureFit::kPad).pixels[12], 0);
  Bytes line(100);
  std::fill_n(line.begin() + 40, 10, std::uint8_t{9});
  EXPECT_EQ(fit_picture(sheet(100, 1, 9), {10, 10}, PictureFit::kPad).pixels, line)
      << "a pixel high at least";
  for (const PictureFit fit : {PictureFit::kCrop, PictureFit::kPad, PictureFit::kSqueeze}) {
    EXPECT_EQ(fit_picture(wide, {4, 2}, fit).pixels, wide.pixels);
    for (int width = 1; width < 9; ++width)
      EXPECT_EQ(fit_picture(wide, {width, 5}, fit).shape(), (ImageShape{1, 5, width})) << width;
  }
}

/// Sums and quotients of whole numbers, against the same in double precision.
TEST(PictureTest, AScaledPixelIsTheMeanOfItsArea) {
  Picture picture = sheet(37, 23, 0);
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
    picture.pixels[i] = static_cast<std::uint8_t>(i * 7919 % 251);
  for (const auto& [width, height] : {std::pair{10, 10}, {64, 9}, {1, 1}, {36, 24}}) {
    const Picture scaled = resize(picture, width, height);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        double sum = 0;
        for (int r = 0; r < 23; ++r) {
          for (int c = 0; c < 37; ++c) {
            const auto overlap = [](int at, int size, int source, int pixel) {
              const double scale = static_cast<double>(source) / size;
              return std::max(0.0,
                              std::min((at + 1) * scale, pixel + 1.0) - std::max<double>(at * scale, pixel)) /
                     scale;
            };
            sum += overlap(y, height, 23, r) * overlap(x, width, 37, c) *
                   picture.pixels[static_cast<std::size_t>(37 * r + c)];
          }
        }
        ASSERT_NEAR(scaled.pixels[static_cast<std::size_t>(y * width + x)], sum, 0.5 + 1e-9);
      }
    }
  }
}

TEST(PictureTest, WhatCannotBeSeenOnWhiteIsLaidOnBlack) {
  const auto laid = [](const Bytes& grey_alpha) {
    Picture picture = sheet(2, 1, 0);
    lay_on_paper(picture, grey_alpha);
    return std::pair(picture.pixels, picture.notes.at(0));
  };
  const std::string white = "transparent: laid on white", black = "transparent and light: laid on black";
  EXPECT_EQ(laid({239, 255, 0, 0}), std::pair(Bytes{239, 255}, white));
  EXPECT_EQ(laid({240, 255, 0, 0}), std::pair(Bytes{240, 0}, black));
  EXPECT_EQ(laid({255, 16, 0, 0}), std::pair(Bytes{16, 0}, black));
  EXPECT_EQ(laid({1, 127, 1, 128}), std::pair(Bytes{128, 128}, white));
  EXPECT_EQ(laid({255, 15, 0, 0}), std::pair(Bytes{255, 255}, white)) << "on black it is no better";
}

TEST(PictureTest, GreyIsTheWeightedSumOfColours) {
  EXPECT_EQ(grey_of(250, 0, 0), 74);
  EXPECT_EQ(grey_of(0, 250, 0), 146);
  EXPECT_EQ(grey_of(0, 0, 254), 28);
  EXPECT_EQ(grey_of(255, 255, 254), 254);
}

TEST(PictureTest, TheBorderTellsALightBackground) {
  EXPECT_FALSE(has_light_border(Bytes(9, 127), {1, 3, 3}));
  EXPECT_TRUE(has_light_border(Bytes(9, 128), {1, 3, 3}));
  EXPECT_TRUE(has_light_border(Bytes{255, 255, 0}, {1, 3, 1}));
  EXPECT_TRUE(has_light_border(Bytes{85, 255, 85, 85, 0, 85, 85, 255, 85}, {1, 3, 3})) << "1020 / 8";
  EXPECT_FALSE(has_light_border(Bytes{81, 255, 85, 85, 0, 85, 85, 255, 85}, {1, 3, 3}));
  for (const std::uint8_t light : {254, 255}) {
    Bytes planes(18, 0);
    std::fill_n(planes.begin(), 9, light);
    EXPECT_EQ(has_light_border(planes, {2, 3, 3}), light == 255) << "2040 / 16";
  }
  Picture picture{.name = "", .width = 3, .height = 3, .pixels = Bytes(9, 255)};
  picture.pixels[4] = 0;
  EXPECT_TRUE(has_light_border(picture.pixels, picture.shape()));
  invert(picture);
  EXPECT_FALSE(has_light_border(picture.pixels, picture.shape()));
  EXPECT_EQ(picture.pixels[4], 255);
}

}  // namespace
}  // namespace lockstep
