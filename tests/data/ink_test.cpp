// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The paper of a picture, and the ink on it: blocks, whose numbers are known.
#include "tests/data/picture_fixture.hpp"

namespace lockstep {
namespace {

using testing::drawn;
using testing::sheet;

TEST(PaperTest, LevelNoiseAndContrastAreRobust) {
  const auto paper_of = [](int paper, int ink, int pixels, Polarity polarity = Polarity::kFromPicture) {
    return examine_paper(drawn(5, 5, {{1, 1, 1 + pixels, 2}}, ink, paper), polarity);
  };
  const Paper light = paper_of(200, 50, 3), dark = paper_of(20, 240, 3);
  EXPECT_EQ(std::tuple(light.level, light.noise, light.light, light.contrast),
            std::tuple(200.0, 0.0, true, 150.0));
  EXPECT_EQ(std::tuple(dark.level, dark.noise, dark.light, dark.contrast),
            std::tuple(20.0, 0.0, false, 220.0));
  EXPECT_EQ(paper_of(200, 50, 2).contrast, 0) << "two pixels may be dirt";
  EXPECT_EQ(paper_of(20, 240, 2).contrast, 0);
  EXPECT_EQ(paper_of(200, 50, 3, Polarity::kLightInk).contrast, 0);
  const Paper noisy = examine_paper(drawn(8, 2, {{0, 1, 8, 2}}, 110, 100), Polarity::kFromPicture);
  EXPECT_EQ(noisy.level, 110);
  EXPECT_DOUBLE_EQ(noisy.noise, 14.826);
}

TEST(PaperTest, TheBorderIsAFiftiethOfTheShorterSide) {
  for (const auto& [side, level] : {std::pair{98, 200.0}, {100, 100.0}}) {
    const Picture rings = drawn(
        side, side,
        {{0, 1, 2, side - 1}, {side - 2, 1, side, side - 1}, {0, 1, side, 2}, {0, side - 2, side, side - 1}},
        100, 200);
    EXPECT_EQ(examine_paper(rings, Polarity::kFromPicture).level, level) << side;
  }
  const Picture half = drawn(5, 5, {{1, 1, 4, 4}, {0, 0, 5, 1}, {0, 1, 1, 4}}, 100, 200);
  EXPECT_EQ(examine_paper(half, Polarity::kFromPicture).level, 200) << "8 of 16 pixels";
}

TEST(PaperTest, InkIsDarkerWhereTheThirdMomentSaysSo) {
  const auto is_light = [](int lighter, int darker, int darker_pixels) {
    Picture picture = sheet(10, 10, 100);
    std::fill_n(picture.pixels.begin() + 30, 4, static_cast<std::uint8_t>(lighter));
    std::fill_n(picture.pixels.begin() + 60, darker_pixels, static_cast<std::uint8_t>(darker));
    return examine_paper(picture, Polarity::kFromPicture).light;
  };
  EXPECT_FALSE(is_light(255, 0, 12));
  EXPECT_TRUE(is_light(255, 0, 20)) << "20 * 100^3, and 4 * 155^3";
  EXPECT_FALSE(is_light(150, 50, 4)) << "as much of both";
}

TEST(PaperTest, APixelInFiftyThousandMoreMayBeDirt) {
  const auto contrast = [](int width, int height, int ink_pixels) {
    return examine_paper(drawn(width, height, {{1, 0, 1 + ink_pixels, 1}}, 50, 200), Polarity::kFromPicture)
        .contrast;
  };
  EXPECT_EQ(contrast(250, 200, 3), 0);
  EXPECT_EQ(contrast(250, 200, 4), 150);
  EXPECT_EQ(contrast(49999, 1, 3), 150);
}

TEST(PaperTest, InkBeginsAboveTheNoiseAndEndsBelowTheContrast) {
  const auto paper = [](double noise, bool light = true) {
    return Paper{.level = light ? 200.0 : 20.0, .noise = noise, .light = light, .contrast = 100};
  };
  for (const auto& [noise, value, share] : {std::tuple{0, 192, 0.0},
                                            {0, 151, 0.5},
                                            {0, 110, 1.0},
                                            {0, 111, 81.0 / 82},
                                            {10, 180, 0.0},
                                            {10, 145, 0.5},
                                            {40, 130, 0.5}})
    EXPECT_NEAR(paper(noise).ink(static_cast<std::uint8_t>(value)), share, 1e-12) << noise << ", " << value;
  EXPECT_NEAR(paper(0, false).ink(69), 0.5, 1e-12);
  EXPECT_TRUE(!paper(0).is_ink(165) && paper(0).is_ink(164));
  EXPECT_TRUE(!paper(0, false).is_ink(54) && paper(0, false).is_ink(56));
  EXPECT_TRUE(!Paper{.contrast = 6}.is_blank() && Paper{.contrast = 5.9}.is_blank());
  EXPECT_TRUE(
      (!Paper{.noise = 2, .contrast = 8}.is_blank() && Paper{.noise = 2.1, .contrast = 8}.is_blank()));
}

/// @param speck  columns from there on have none that counts
void expect_mask(const Picture& picture, const Ink& ink, int reach, int speck) {
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x) {
      bool is_near = false;
      for (int v = std::max(0, y - reach); v <= std::min(picture.height - 1, y + reach); ++v)
        for (int u = std::max(0, x - reach); u <= std::min(speck - 1, x + reach); ++u)
          is_near = is_near || picture.pixels[static_cast<std::size_t>(v * picture.width + u)] != 0;
      ASSERT_EQ(ink.mask[static_cast<std::size_t>(y * picture.width + x)], is_near) << x << ", " << y;
    }
}

TEST(InkTest, PiecesTouchAtCornersAndSpecksAreNone) {
  const Paper black{.contrast = 255};
  const auto sides = [](const Box& box) { return std::array{box.left, box.top, box.right, box.bottom}; };
  using Sides = std::array<int, 4>;
  const Picture picture = drawn(30, 20, {{20, 5, 22, 7}, {2, 3, 12, 13}, {12, 13, 13, 14}, {27, 17, 28, 18}});
  const Ink ink = find_ink(picture, black);
  ASSERT_EQ(ink.pieces.size(), 2U);
  EXPECT_EQ(ink.pieces[0].pixels, 101);
  EXPECT_EQ(sides(ink.pieces[0].box), (Sides{2, 3, 13, 14}));
  EXPECT_EQ(ink.pieces[1].pixels, 4);
  EXPECT_EQ(sides(ink.pieces[1].box), (Sides{20, 5, 22, 7}));
  EXPECT_EQ(sides(ink.box), (Sides{2, 3, 22, 14}));
  expect_mask(picture, ink, 1, 27);
  const Picture touching = drawn(30, 20, {{0, 0, 20, 10}, {25, 15, 28, 16}});
  EXPECT_EQ(find_ink(touching, black).pieces.size(), 2U) << "3 of 200 pixels are no speck";
  for (const auto& [right, reach] : {std::pair{90, 2}, {89, 1}}) {
    const Picture wide = drawn(100, 20, {{10, 8, right, 10}});
    expect_mask(wide, find_ink(wide, black), reach, 100);
  }
}

/// Found from their first pixel on, to the right and to the left, and as far as the picture's edges.
TEST(InkTest, PiecesGrowToAllSides) {
  const Picture picture =
      drawn(11, 11, {{6, 0, 8, 8}, {0, 6, 6, 8}, {0, 3, 5, 5}, {9, 0, 11, 2}, {0, 9, 4, 11}});
  const Ink ink = find_ink(picture, {.contrast = 255});
  std::vector<std::int64_t> sizes;
  for (const Piece& piece : ink.pieces) sizes.push_back(piece.pixels);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{28, 10, 8, 4}));
  expect_mask(picture, ink, 1, 11);
}

}  // namespace
}  // namespace lockstep
