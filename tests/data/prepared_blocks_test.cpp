// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Blocks of ink made ready for a model, pixel by pixel.
#include "tests/data/picture_fixture.hpp"

namespace lockstep {
namespace {

using testing::drawn;
using testing::sheet;

const PictureFrame kWhole{.share = 1, .centre_by_mass = false, .one_figure = false};

PreparedPicture made_ready(const Picture& picture, const PictureFrame& frame = {}) {
  return prepare_picture(picture, 28, 28, frame, Polarity::kFromPicture);
}

int pixel(const Picture& picture, int x, int y) {
  return picture.pixels.at(static_cast<std::size_t>(y * picture.width + x));
}

/// From 40 pixels on, the paper next to the ink comes along.
TEST(PreparedBlocksTest, LargerInkKeepsItsSoftEdge) {
  for (const auto& [side, edge] : {std::pair{39, 255}, {40, 134}, {100, 205}}) {
    const Picture image = made_ready(drawn(200, 200, {{50, 50, 50 + side, 50 + side}}, 0, 255)).picture;
    for (const auto& [x, y] : {std::pair{14, 4}, {14, 23}, {4, 14}, {23, 14}})
      EXPECT_EQ(pixel(image, x, y), edge) << side << ": " << x << ", " << y;
    EXPECT_EQ(pixel(image, 14, 14), 255) << side;
    EXPECT_EQ(pixel(image, 14, 3), 0) << side;
    EXPECT_EQ(pixel(image, 14, 24), 0) << side;
  }
}

TEST(PreparedBlocksTest, ItsMiddleIsThatOfItsMass) {
  EXPECT_EQ(made_ready(drawn(60, 60, {{20, 15, 23, 35}, {28, 15, 31, 35}}, 0, 255)).picture.pixels,
            drawn(28, 28, {{9, 4, 12, 24}, {17, 4, 20, 24}}).pixels);
}

TEST(PreparedBlocksTest, SmallInkIsMadeLargerSmoothly) {
  const Picture ring =
      drawn(60, 60, {{20, 20, 30, 24}, {20, 26, 30, 30}, {20, 24, 24, 26}, {26, 24, 30, 26}}, 0, 255);
  const Picture image = made_ready(ring).picture;
  EXPECT_EQ(pixel(image, 13, 12), 64);
  EXPECT_EQ(pixel(image, 13, 13), 0);
}

TEST(PreparedBlocksTest, AFrameCanHaveNoMargin) {
  const Picture lying = made_ready(drawn(200, 200, {{10, 80, 190, 120}}, 0, 255), kWhole).picture,
                standing = made_ready(drawn(200, 200, {{80, 10, 120, 190}}, 0, 255), kWhole).picture;
  for (const int along : {0, 27}) {
    EXPECT_GT(pixel(lying, along, 13), 200);
    EXPECT_GT(pixel(standing, 13, along), 200);
  }
  for (const auto& [across, is_ink] : {std::pair{10, false}, {11, true}, {16, true}, {17, false}}) {
    EXPECT_EQ(pixel(lying, 13, across) > 200, is_ink) << across;
    EXPECT_EQ(pixel(standing, across, 13) > 200, is_ink) << across;
    EXPECT_EQ(pixel(lying, 13, across) == 0, !is_ink) << across;
  }
}

TEST(PreparedBlocksTest, GreyPaperOrAnotherSizeIsNoImageOfTheSet) {
  EXPECT_EQ(made_ready(drawn(28, 28, {{4, 4, 24, 24}}, 255, 1)).done,
            std::vector<std::string>{"cut out and centred"});
  for (const auto& [width, height] : {std::pair{28, 56}, {56, 28}})
    EXPECT_EQ(made_ready(drawn(width, height, {{4, 4, 24, 24}})).picture.shape(), (ImageShape{1, 28, 28}));
}

/// Seen from afar it is half as large, and its edges are grey.
TEST(PreparedBlocksTest, ALargePictureIsLookedAtWhereItsInkIs) {
  for (const int height : {2048, 1024})
    EXPECT_EQ(made_ready(drawn(2048, height, {{1000, 400, 1039, 439}}, 0, 255)).picture.pixels,
              drawn(28, 28, {{4, 4, 24, 24}}).pixels)
        << height;
}

TEST(PreparedBlocksTest, ABlankPictureHasTheSizeThatWasAskedFor) {
  EXPECT_EQ(made_ready(sheet(3000, 1, 9)).warnings, std::vector<std::string>{"there is nothing on it"});
  EXPECT_EQ(prepare_picture(sheet(50, 50, 7), 56, 40, {}, Polarity::kFromPicture).picture.shape(),
            (ImageShape{1, 40, 56}));
  EXPECT_EQ(scale_picture(sheet(10, 20, 0), 56, 40, Polarity::kLightInk).picture.shape(),
            (ImageShape{1, 40, 56}));
}

TEST(PreparedBlocksTest, PiecesOneInsideTheOtherAreOneFigure) {
  const Picture picture =
      drawn(200, 200, {{40, 50, 50, 150}, {40, 140, 120, 150}, {104, 60, 144, 130}}, 0, 255);
  EXPECT_EQ(made_ready(picture).warnings, std::vector<std::string>{});
}

}  // namespace
}  // namespace lockstep
