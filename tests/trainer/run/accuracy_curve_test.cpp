// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The curve of test accuracy: its rows at any width, its picture, and what of the metrics it is made of.
#include "trainer/run/accuracy_curve.hpp"

#include "common/text/text_layout.hpp"
#include "tests/common/files/memory_env.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>

namespace lockstep {
namespace {

TEST(AccuracyCurveTest, ARowFitsAnyUsualWidthAndTheMarkStandsWhereTheAccuracyIs) {
  for (const int columns : {40, 80, 200}) {
    const int width = std::min(columns, 72);
    for (const double accuracy : {0.0, 0.1, 0.5, 0.97125, 1.0}) {
      const std::string row = curve_row({7, accuracy}, columns, false);
      EXPECT_LE(display_width(row), width) << row;
      EXPECT_EQ(display_width(curve_row({7, accuracy}, columns, true)), display_width(row));
      const std::size_t begin = row.find('|') + 1, end = row.rfind('|');
      const double place = static_cast<double>(row.find('*') - begin) / static_cast<double>(end - begin - 1);
      EXPECT_NEAR(place, accuracy, 0.5 / static_cast<double>(end - begin - 1) + 1e-9) << row;
    }
    EXPECT_EQ(curve_scale(columns).find('0'), curve_row({7, 0.5}, columns, false).find('|'));
  }
}

TEST(AccuracyCurveTest, ThePictureHasEveryPointAndEscapesItsTitle) {
  const std::string svg = curve_svg({{1, 0.8}, {2, 0.85}, {3, 0.9}}, 10, "a<b & \n c");
  EXPECT_NE(svg.find("a&lt;b &amp;   c"), std::string::npos) << svg;
  for (const char* point : {"epoch 1: 0.8000", "epoch 2: 0.8500", "epoch 3: 0.9000"})
    EXPECT_NE(svg.find(point), std::string::npos) << svg;
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(AccuracyCurveTest, OnePointOrAllAtTheTopOrBottomStayInTheFrame) {
  for (const double accuracy : {0.0, 1.0}) {
    for (const std::int64_t epochs : {1, 3}) {
      const std::string svg = curve_svg({{1, accuracy}}, epochs, "t");
      const std::size_t at = svg.find("cy=\"") + 4;
      const double y = std::stod(svg.substr(at));
      EXPECT_GE(y, 39.9) << svg;
      EXPECT_LE(y, 350.1) << svg;
    }
  }
}

TEST(AccuracyCurveTest, PointsAreTheEpochsOfTheMetricsAndNothingElse) {
  MemoryEnv env;
  const std::string metrics =
      "{\"event\":\"start\"}\n{\"event\":\"epoch\",\"epoch\":1,\"test_accuracy\":0.5}\nnonsense \"epoch\"\n"
      "{\"event\":\"step\",\"epoch\":2}\n{\"event\":\"epoch\",\"epoch\":2,\"test_accuracy\":0.75}\n"
      "{\"event\":\"epoch\",\"epoch\":3";
  write_synced(env, "metrics.jsonl", std::as_bytes(std::span(metrics)));
  EXPECT_EQ(curve_points(env, "metrics.jsonl"), (std::vector<CurvePoint>{{1, 0.5}, {2, 0.75}}));
  EXPECT_TRUE(curve_points(env, "none.jsonl").empty());
}

}  // namespace
}  // namespace lockstep
