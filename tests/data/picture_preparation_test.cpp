// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "data/pictures/preparation.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

using testing::draw_digit;
using testing::drawn;
using testing::sheet;

PreparedPicture prepared(const Picture& picture, Polarity polarity = Polarity::kFromPicture) {
  return prepare_picture(picture, 28, 28, {}, polarity);
}

/// Mean over 784 pixels, in grey levels.
double mean_difference(const Picture& a, const Picture& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
  return sum / static_cast<double>(a.pixels.size());
}

/// The least over shifts by one pixel, which rounding may cause.
double difference_but_for_rounding(const Picture& a, const Picture& b) {
  double least = 255;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      Picture moved = a;
      std::rotate(moved.pixels.begin(), moved.pixels.begin() + (dy * 28 + dx + 784) % 784,
                  moved.pixels.end());
      least = std::min(least, mean_difference(moved, b));
    }
  }
  return least;
}

Picture dark_digit(int digit) {
  Picture picture = sheet(200, 200, 255);
  draw_digit(picture, digit, 100, 100, 140, 0, 9);
  return picture;
}

bool warns(const PreparedPicture& result, const std::string& what) {
  return std::any_of(result.warnings.begin(), result.warnings.end(),
                     [&](const std::string& warning) { return warning.find(what) != std::string::npos; });
}

TEST(PicturePreparationTest, InkFillsTwentyPixelsAndItsCentreOfMassLiesInTheMiddle) {
  for (int digit = 0; digit < 10; ++digit) {
    const PreparedPicture result = prepared(dark_digit(digit));
    EXPECT_TRUE(result.warnings.empty()) << digit << ": " << result.warnings.at(0);
    EXPECT_EQ(result.done, (std::vector<std::string>{"inverted", "cut out and centred"}));
    double mass = 0, x_sum = 0, y_sum = 0;
    int top = 28, bottom = 0;
    for (int y = 0; y < 28; ++y) {
      for (int x = 0; x < 28; ++x) {
        const double ink =
            result.picture.pixels[static_cast<std::size_t>(y) * 28 + static_cast<std::size_t>(x)];
        mass += ink, x_sum += ink * (x + 0.5), y_sum += ink * (y + 0.5);
        if (ink < 100) continue;
        top = std::min(top, y);
        bottom = std::max(bottom, y + 1);
      }
    }
    EXPECT_NEAR(x_sum / mass, 14, 0.6) << digit;
    EXPECT_NEAR(y_sum / mass, 14, 0.6) << digit;
    EXPECT_GE(bottom - top, 18) << digit;
    EXPECT_LE(bottom - top, 20) << digit;
    EXPECT_EQ(*std::max_element(result.picture.pixels.begin(), result.picture.pixels.end()), 255);
  }
}

TEST(PicturePreparationTest, PlaceSizeContrastAndPolarityLeaveNoTrace) {
  const Picture plain = prepared(dark_digit(3)).picture;
  struct Case {
    const char* what;
    Picture paper;
    double x, y, size;
    int ink;
    double radius;
  };
  for (const Case& c : {Case{"off-centre", sheet(600, 400, 255), 100, 290, 140, 0, 9},
                        Case{"large", sheet(1500, 1500, 255), 700, 800, 1200, 0, 77},
                        Case{"small", sheet(900, 900, 255), 700, 80, 60, 0, 3.9},
                        Case{"faint", sheet(200, 200, 150), 100, 100, 140, 135, 9},
                        Case{"light on dark", sheet(200, 200, 20), 100, 100, 140, 240, 9},
                        Case{"grey on black", sheet(200, 200, 0), 100, 100, 140, 60, 9}}) {
    Picture picture = c.paper;
    draw_digit(picture, 3, c.x, c.y, c.size, c.ink, c.radius);
    const PreparedPicture result = prepared(picture);
    EXPECT_TRUE(result.warnings.empty()) << c.what << ": " << result.warnings.at(0);
    EXPECT_LT(difference_but_for_rounding(result.picture, plain), 6) << c.what;
  }
}

/// Adds `change(x, y)` to every pixel; x and y from 0 to 1.
void shade(Picture& picture, const std::function<double(double, double)>& change) {
  std::size_t i = 0;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x, ++i) {
      const double value = picture.pixels[i] + change(static_cast<double>(x) / picture.width,
                                                      static_cast<double>(y) / picture.height);
      picture.pixels[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
    }
  }
}

TEST(PicturePreparationTest, ABlankSheetIsSaidToBeBlank) {
  for (const int grey : {0, 128, 255}) {
    const PreparedPicture blank = prepared(sheet(50, 50, grey));
    EXPECT_TRUE(warns(blank, "nothing on it")) << grey;
    EXPECT_EQ(blank.picture.pixels, std::vector<std::uint8_t>(784)) << grey;
  }
  EXPECT_TRUE(warns(prepared(sheet(1, 1, 9)), "nothing on it"));
  Picture shaded = sheet(100, 100, 100);
  shade(shaded, [](double x, double y) { return 100 * x - 50 * y; });
  EXPECT_TRUE(warns(prepared(shaded), "nothing on it"));
  Picture noise = sheet(100, 100, 128);
  std::uint32_t random = 1;
  shade(noise, [&](double, double) {
    random = random * 1664525U + 1013904223U;
    return static_cast<double>(random >> 24U) - 128;
  });
  EXPECT_TRUE(warns(prepared(noise), "nothing on it"));
}

TEST(PicturePreparationTest, SpecksAreLeftOut) {
  Picture dirty = dark_digit(7);
  for (const std::size_t at : {405U, 39000U, 20010U}) dirty.pixels[at] = 0;
  const PreparedPicture result = prepared(dirty);
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_LT(mean_difference(result.picture, prepared(dark_digit(7)).picture), 1);
}

TEST(PicturePreparationTest, OtherSetsHaveOtherSizesAndFrames) {
  const PreparedPicture result =
      prepare_picture(dark_digit(3), 56, 40, {.share = 1, .centre_by_mass = false, .one_figure = false},
                      Polarity::kFromPicture);
  EXPECT_EQ(result.picture.shape(), (ImageShape{1, 40, 56}));
  const auto row = [&](std::size_t y) {
    const auto begin = result.picture.pixels.begin() + static_cast<long>(y * 56);
    return *std::max_element(begin, begin + 56);
  };
  EXPECT_GT(row(0), 50);
  EXPECT_GT(row(39), 50);
}

// Blocks of ink, whose numbers are known.

std::vector<std::string> warnings_of(std::initializer_list<Box> blocks) {
  return prepared(drawn(200, 200, blocks, 0, 255)).warnings;
}

TEST(PicturePreparationTest, ABlockIsCutOutAndCentred) {
  const auto placed = [](const Box& block) {
    return prepared(drawn(60, 60, {block}, 0, 255)).picture.pixels;
  };
  EXPECT_EQ(placed({20, 15, 31, 35}), drawn(28, 28, {{9, 4, 20, 24}}).pixels);
  EXPECT_EQ(placed({20, 25, 40, 36}), drawn(28, 28, {{4, 9, 24, 20}}).pixels);
}

TEST(PicturePreparationTest, AThinLineIsOnePixelWide) {
  const auto pixels = prepared(drawn(400, 400, {{200, 50, 203, 350}}, 0, 255)).picture.pixels;
  EXPECT_NEAR(std::accumulate(pixels.begin(), pixels.end(), 0), 20 * 255, 2 * 255);
}

/// Its pixels are a quarter of those in which the rest is found. The part that is looked at again has a margin of 16.
TEST(PicturePreparationTest, AThinStrokeBesideTheRestOfALargePictureCountsWithinTheMargin) {
  const auto with_stroke = [](int x) {
    return prepared(drawn(4096, 400, {{2000, 160, 2020, 240}, {x, 160, x + 1, 240}}, 0, 255)).picture.pixels;
  };
  const auto alone = with_stroke(2000);
  EXPECT_NE(with_stroke(1984), alone);
  EXPECT_EQ(with_stroke(1983), alone);
}

/// Also of a set whose pictures are no squares.
TEST(PicturePreparationTest, AnImageOfTheSetStaysAsItIs) {
  const Picture image = drawn(56, 40, {{20, 10, 35, 30}});
  const PreparedPicture result = prepare_picture(
      image, 56, 40, {.share = 1, .centre_by_mass = false, .one_figure = false}, Polarity::kFromPicture);
  EXPECT_EQ(result.picture.pixels, image.pixels);
  EXPECT_EQ(result.done, image.notes);
}

TEST(PicturePreparationTest, AnImageOfTheTrainingSetIsKnownByItsInk) {
  const auto stays = [](const Box& block, int ink = 255) {
    return prepared(drawn(28, 28, {block}, ink)).done.empty();
  };
  EXPECT_TRUE(stays({4, 4, 24, 24}, 200) && !stays({4, 4, 24, 24}, 199));
  EXPECT_TRUE(stays({5, 4, 25, 24}) && !stays({6, 4, 26, 24}));
  EXPECT_TRUE(stays({4, 5, 24, 25}) && !stays({4, 6, 24, 26}));
  EXPECT_TRUE(stays({6, 6, 23, 23}) && !stays({6, 6, 21, 21}));
  EXPECT_TRUE(stays({3, 3, 25, 25}) && !stays({2, 2, 26, 26}));
}

TEST(PicturePreparationTest, InkAtTheEdgeIsDoubtfulUnlessItReachesAll) {
  for (const Box& block :
       {Box{0, 60, 30, 140}, {60, 0, 140, 30}, {170, 60, 200, 140}, {60, 170, 140, 200}, {0, 0, 200, 60}})
    EXPECT_EQ(warnings_of({block}).at(0), "it touches the edge: is it all there?") << block.left;
  const PreparedPicture cross = prepared(drawn(200, 200, {{96, 0, 104, 200}, {0, 96, 200, 104}}, 0, 255));
  EXPECT_FALSE(warns(cross, "touches the edge"));
}

TEST(PicturePreparationTest, DoubtsBeginAtTheirLimits) {
  using Words = std::vector<std::string>;
  const Box first{40, 50, 60, 150};
  EXPECT_EQ(warnings_of({first, {100, 50, 109, 96}}), Words{"two figures? only one is expected"});
  EXPECT_EQ(warnings_of({first, {100, 50, 110, 94}}), Words{}) << "less high";
  EXPECT_EQ(warnings_of({first, {100, 50, 106, 110}}), Words{}) << "less ink";
  const Box row[] = {
      {10, 80, 30, 100}, {46, 80, 66, 100}, {82, 80, 102, 100}, {118, 80, 138, 100}, {154, 80, 174, 100}};
  EXPECT_EQ(warnings_of({row[0], row[1], row[2], row[3], row[4]}), Words{"it is in 5 pieces"});
  EXPECT_EQ(warnings_of({row[0], row[1], row[2], row[3]}), Words{"two figures? only one is expected"});
  EXPECT_EQ(warnings_of({{60, 50, 66, 56}}).at(0), "it is only 6 pixels high");
  EXPECT_EQ(warnings_of({{60, 50, 67, 57}}), Words{"it is a filled shape, not strokes"});
  EXPECT_EQ(warnings_of({{20, 50, 142, 150}}), Words{"it is wider than high: more than one figure?"});
  EXPECT_EQ(warnings_of({{20, 50, 140, 150}}), Words{"it is a filled shape, not strokes"});
  EXPECT_EQ(warnings_of({{60, 50, 111, 150}}), Words{"it is a filled shape, not strokes"});
  EXPECT_EQ(warnings_of({{60, 50, 110, 150}}), Words{}) << "a stroke";
  EXPECT_EQ(warnings_of({{50, 50, 88, 150}, {112, 50, 150, 150}, {88, 149, 112, 150}}),
            Words{"it is a filled shape, not strokes"});
  EXPECT_EQ(warnings_of({{50, 50, 87, 150}, {113, 50, 150, 150}, {87, 149, 113, 150}}), Words{});
}

TEST(PicturePreparationTest, PolarityCanBeGiven) {
  EXPECT_LT(
      mean_difference(prepared(dark_digit(6), Polarity::kDarkInk).picture, prepared(dark_digit(6)).picture),
      0.01);
  EXPECT_GT(
      mean_difference(prepared(dark_digit(6), Polarity::kLightInk).picture, prepared(dark_digit(6)).picture),
      10);
}

TEST(PicturePreparationTest, ScalingAloneInvertsALightBorderAndNothingElse) {
  const PreparedPicture result = scale_picture(dark_digit(3), 28, 28, Polarity::kFromPicture);
  EXPECT_EQ(result.done, (std::vector<std::string>{"inverted", "scaled"}));
  EXPECT_EQ(result.picture.pixels.front(), 0);
  const Picture image = sheet(28, 28, 77);
  EXPECT_EQ(scale_picture(image, 28, 28, Polarity::kLightInk).picture.pixels, image.pixels);
  EXPECT_TRUE(scale_picture(image, 28, 28, Polarity::kFromPicture).done.empty());
  EXPECT_TRUE(scale_picture(sheet(28, 28, 200), 28, 28, Polarity::kLightInk).done.empty());
  EXPECT_EQ(scale_picture(image, 28, 28, Polarity::kDarkInk).done, std::vector<std::string>{"inverted"});
  for (const Picture& other : {sheet(28, 56, 0), sheet(56, 28, 0)})
    EXPECT_EQ(scale_picture(other, 28, 28, Polarity::kLightInk).done, std::vector<std::string>{"scaled"});
}

}  // namespace
}  // namespace lockstep
