// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "common/error.hpp"
#include "trainer/tools/prediction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

const ReportStyle kStyle{.class_names = {"cat", "dog", "cow"}, .top = 0, .unicode = false};

Prediction cow() {
  return {.picture = "a.png", .probabilities = {0.25F, 0, 0.75F}, .done = {"inverted"}, .warnings = {}};
}

TEST(PredictionReportTest, BarsStandInLabelOrder) {
  EXPECT_EQ(bars_of(cow(), kStyle),
            "a.png: cow  (inverted)\n"
            "           cat  25.00 % ##########\n"
            "           dog   0.00 %\n"
            "           cow  75.00 % ##############################\n");
}

TEST(PredictionReportTest, TheTopClassesStandLikeliestFirst) {
  ReportStyle style = kStyle;
  style.top = 2;
  style.unicode = true;
  EXPECT_EQ(bars_of(cow(), style),
            "a.png: cow  (inverted)\n"
            "           cow  75.00 % ██████████████████████████████\n"
            "           cat  25.00 % ██████████\n");
  EXPECT_EQ(line_of(cow(), style), "a.png: cow 75.00 % cat 25.00 %\n");
}

TEST(PredictionReportTest, WarningsStandWithTheAnswer) {
  Prediction prediction = cow();
  warn_if_unsure(prediction, {}, kStyle.class_names);
  EXPECT_EQ(line_of(prediction, kStyle), "a.png: cow 75.00 %  not sure: cow or cat?\n");
  EXPECT_NE(bars_of(prediction, kStyle).find("\n  not sure: cow or cat?\n"), std::string::npos);
}

TEST(PredictionReportTest, AnAnswerThatChangesWithTheHandIsDoubtful) {
  Prediction sure{.picture = "a.png", .probabilities = {0.01F, 0.02F, 0.97F}, .done = {}, .warnings = {}};
  warn_if_unsure(sure, {{0, 0, 1}, {0, 0.1F, 0.9F}}, kStyle.class_names);
  EXPECT_TRUE(sure.warnings.empty());
  warn_if_unsure(sure, {{0, 1, 0}, {0, 0.1F, 0.9F}}, kStyle.class_names);
  EXPECT_EQ(sure.warnings, std::vector<std::string>{"cow or dog?"});
}

TEST(PredictionReportTest, JsonIsOneObjectALine) {
  EXPECT_EQ(
      json_of(cow(), kStyle),
      R"({"picture":"a.png","class":"cow","probability":0.75,"top":[{"class":"cow","probability":0.75},)"
      R"({"class":"cat","probability":0.25},{"class":"dog","probability":0.0}],"done":["inverted"],"warnings":[]})"
      "\n");
  Prediction odd = cow();
  odd.picture = "new\nline\xff";
  EXPECT_EQ(json_of(odd, kStyle).find('\n'), json_of(odd, kStyle).size() - 1);
}

TEST(PredictionReportTest, ASummaryCountsClassesAndDoubts) {
  PredictionSummary summary(3);
  summary.add(cow());
  summary.add(cow());
  Prediction cat{.picture = "b", .probabilities = {1, 0, 0}, .done = {}, .warnings = {"why"}};
  summary.add(cat);
  EXPECT_EQ(summary.to_json("set", kStyle),
            R"({"file":"set","pictures":3,"not_sure":1,"counts":{"cat":1,"dog":0,"cow":2}})"
            "\n");
  EXPECT_NE(summary.to_text("set", kStyle).find("set: 3 pictures, not sure of 1\n"), std::string::npos);
  EXPECT_NE(summary.to_text("set", kStyle).find("cow       2  66.67 %"), std::string::npos)
      << summary.to_text("set", kStyle);
}

/// Finite weights that are so large that no output is a number.
TEST(PredictorTest, OutputsThatAreNoNumbersAreAnError) {
  SavedModel model{.network = Network::parse("layers:\n  - linear: classes\n", "one.yaml", {1, 1, 2}, 2),
                   .weights = AlignedBuffer<float>(6),
                   .data = {},
                   .checkpoint = "run/checkpoints/step-00000007"};
  model.data.options.mean = {0};
  model.data.options.std = {1};
  Picture picture;
  picture.width = 2;
  picture.height = 1;
  picture.pixels = {255, 255};
  std::ranges::fill(model.weights.span(), 1.0F);
  EXPECT_EQ(Predictor(model).predict(std::array{picture}).front(), (std::vector<float>{0.5F, 0.5F}));
  std::ranges::fill(model.weights.span(), 3e38F);
  try {
    Predictor(model).predict(std::array{picture});
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("step-00000007: the network's outputs for a picture are NaN"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockstep
