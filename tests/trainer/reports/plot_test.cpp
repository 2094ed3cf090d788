// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pictures of curves, character by character.
#include "trainer/reports/plot.hpp"

#include "common/text_layout.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

TEST(PlotTest, AsciiHasAMarkInEveryColumnOfACurve) {
  EXPECT_EQ(plot({{'A', {{1, 0}, {2, 5}, {3, 10}}}}, {.columns = 24, .rows = 3}),
            "10 +               AAAAA\n"
            " 5 +      AAAAAAAAA\n"
            " 0 +AAAAAA\n"
            "   +--------------------\n"
            "    1         2        3\n");
}

TEST(PlotTest, BrailleHasEightDotsInACharacter) {
  EXPECT_EQ(plot({{'A', {{1, 0}, {2, 10}}}}, {.columns = 24, .rows = 2, .unicode = true}),
            "10 ┤          ⣀⣀⣀⠤⠤⠔⠒⠒⠊A\n"
            " 0 ┤⣀⡠⠤⠤⠔⠒⠒⠉⠉⠉\n"
            "   └────────────────────\n"
            "    1                  2\n");
}

TEST(PlotTest, LinesFitWhateverTheNumbers) {
  const double most = std::numeric_limits<double>::max(), none = std::nan("");
  for (const auto& points :
       std::vector<std::vector<std::pair<double, double>>>{{{1, 1}},
                                                           {{-most, -most}, {most, most}},
                                                           {{1, 1e-300}, {1e300, -1e300}},
                                                           {{1, none}, {2, 0.5}, {3, none}},
                                                           {{0, 0}, {0, 0}}}) {
    for (const bool unicode : {false, true}) {
      std::istringstream lines(
          plot({{'A', points}, {'B', {}}}, {.columns = 30, .rows = 5, .unicode = unicode}));
      int count = 0;
      for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(display_width(line), 30) << line;
      EXPECT_EQ(count, 7);
    }
  }
}

TEST(PlotTest, RatiosAreEquallyFarApartOnALogarithmicScale) {
  EXPECT_EQ(plot({{'A', {{1, 0.01}, {2, 1}, {3, 100}, {4, 0}}}}, {.columns = 27, .rows = 3, .log_y = true}),
            " 100 +                AAAAA\n"
            "   1 +      AAAAAAAAAA\n"
            "0.01 +AAAAAA\n"
            "     +---------------------\n"
            "      1         2         3\n");
}

TEST(PlotTest, OnePointIsInTheMiddle) {
  EXPECT_EQ(plot({{'A', {{1, 7}}}}, {.columns = 24, .rows = 3}),
            "7 +\n"
            "7 +          A\n"
            "7 +\n"
            "  +---------------------\n"
            "             1\n");
}

/// Two neighbouring dots have none between them.
TEST(PlotTest, APointWithoutANumberLeavesAGap) {
  const std::vector<std::pair<double, double>> points = {{0, 0}, {2, 0},  {3, 1}, {6, 1}, {7, std::nan("")},
                                                         {9, 1}, {10, 0}, {20, 0}};
  EXPECT_EQ(plot({{'A', points}}, {.columns = 24, .rows = 2}),
            "1 +   AAAA  A\n"
            "0 +AAA       AAAAAAAAAAA\n"
            "  +---------------------\n"
            "   0        10        20\n");
}

TEST(PlotTest, TheEndOfACurveIsOverALaterCurveAndHasItsColour) {
  std::string row;
  for (int column = 0; column < 21; ++column) row += column == 10 ? "\033[34mA\033[0m" : "\033[31mB\033[0m";
  EXPECT_EQ(
      plot({{'A', {{0, 0}, {10, 0}}}, {'B', {{0, 0}, {20, 0}}}}, {.columns = 24, .rows = 2, .colours = true}),
      "0 +" + std::string(21, ' ') + "\n0 +" + row +
          "\n  +---------------------\n   0        10        20\n");
}

/// 21 columns: the middle number needs 13 beside the others, and the last one needs one.
TEST(PlotTest, NumbersBelowTheFieldKeepApart) {
  const auto below = [](double low, double high) {
    const std::string text = plot({{'A', {{low, 0}, {high, 0}}}}, {.columns = 24, .rows = 2});
    return text.substr(text.rfind('\n', text.size() - 2) + 1);
  };
  EXPECT_EQ(below(0, 1234567), "   0    617284   1234567\n");
  EXPECT_EQ(below(0, 12345678), "   0            12345678\n");
  EXPECT_EQ(below(0.123456789, 12345.678), "   0.123456789 12345.678\n");
  EXPECT_EQ(below(0.123456789, 123456.789), "   0.123456789\n");
}

TEST(PlotTest, NothingIsDrawnOfNothing) {
  EXPECT_EQ(plot({}, {}), "");
  EXPECT_EQ(plot({{'A', {{1, std::nan("")}}}}, {}), "");
}

TEST(PlotTest, TheSmallestIsNotTooSmall) {
  const std::vector<PlotCurve> curves = {{'A', {{1, 0}, {2, 10}}}};
  EXPECT_EQ(plot(curves, {.columns = 10, .rows = 1}), plot(curves, {.columns = 24, .rows = 2}));
}

TEST(PlotTest, ColoursSurroundTheMark) {
  for (std::size_t curve = 0; const int colour : {34, 31, 32, 35, 36, 33, 34})
    EXPECT_EQ(in_curve_colour("B", curve++, {.columns = 24, .colours = true}),
              fmt::format("\033[{}mB\033[0m", colour));
  EXPECT_EQ(in_curve_colour("B", 1, {}), "B");
}

}  // namespace
}  // namespace lockstep
