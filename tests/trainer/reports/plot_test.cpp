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
    EXPECT_EQ(in_curve_colour("B", curve++, {.colours = true}), fmt::format("\033[{}mB\033[0m", colour));
  EXPECT_EQ(in_curve_colour("B", 1, {}), "B");
}

}  // namespace
}  // namespace lockstep
