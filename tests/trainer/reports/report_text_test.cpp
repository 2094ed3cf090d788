// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The document as CSV, Markdown, characters and SVG: names stay names, and curves go where their numbers are.
#include "trainer/reports/report.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json run_called(const std::string& name) {
  return {{"name", name},
          {"state", "finished"},
          {"steps", 20},
          {"accuracy", 0.75},
          {"test_loss", 0.5},
          {"best", {{"epoch", 2}, {"step", 20}, {"accuracy", 0.75}}},
          {"sha256", "00ff"},
          {"curves",
           {{"step", {{"step", {5, 10}}, {"loss", {2.5, nullptr}}}},
            {"epoch",
             {{"step", {10, 20}},
              {"epoch", {1, 2}},
              {"train_loss", {2.0, 1.0}},
              {"test_loss", {1.5, 0.5}},
              {"test_accuracy", {0.25, 0.75}}}}}},
          {"notes", Json::array({"a <b> & `c`"})}};
}

Json report_of(const std::vector<std::string>& names) {
  Json report = {{"runs", Json::array()}};
  for (const std::string& name : names) report["runs"].push_back(run_called(name));
  return report;
}

TEST(ReportTextTest, CsvHasEveryNumberAndQuotesNames) {
  EXPECT_EQ(
      report_csv(report_of({"a,\"b\""})),
      "run,event,epoch,step,loss,learning_rate,samples_per_second,gradient_norm,train_loss,train_accuracy,"
      "train_seconds,epoch_seconds,validation_loss,validation_accuracy,test_loss,test_accuracy,ema_"
      "validation_loss,ema_validation_accuracy,ema_test_loss,"
      "ema_test_accuracy,swa_validation_loss,swa_validation_accuracy,swa_test_loss,swa_test_accuracy,step_"
      "seconds_"
      "p50,"
      "step_seconds_p90,step_seconds_p99,exposed_seconds,rank_skew,slowest_rank,resident_bytes,"
      "peak_resident_bytes,device_bytes,peak_device_bytes\n"
      "\"a,\"\"b\"\"\",step,,5,2.5,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n"
      "\"a,\"\"b\"\"\",step,,10,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n"
      "\"a,\"\"b\"\"\",epoch,1,10,,,,,2.0,,,,,,1.5,0.25,,,,,,,,,,,,,,,,,,\n"
      "\"a,\"\"b\"\"\",epoch,2,20,,,,,1.0,,,,,,0.5,0.75,,,,,,,,,,,,,,,,,,\n");
}

TEST(ReportTextTest, CsvHasNoFormulas) {
  EXPECT_NE(report_csv(report_of({"=1+1"})).find("\n'=1+1,step"), std::string::npos);
}

TEST(ReportTextTest, MarkdownEscapesWhatItWouldObey) {
  const std::string text = report_markdown(report_of({"<script>|\n# x"}));
  EXPECT_NE(
      text.find("| \\<script\\>\\|\\\\x0a\\# x | finished | 75.00 % | 75.00 % (2) | 0.5 | 20 | 00ff |\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("| 2 | 20 | 1 | 0.5 | 75.00 % |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("a \\<b\\> \\& \\`c\\`"), std::string::npos) << text;
}

TEST(ReportTextTest, AveragesAreCurvesAndColumnsOfTheirOwn) {
  Json report = report_of({"a"});
  report["runs"][0]["curves"]["epoch"]["ema_test_accuracy"] = {0.5, 0.875};
  report["runs"][0]["curves"]["epoch"]["ema_test_loss"] = {1.0, 0.25};
  EXPECT_NE(
      report_markdown(report).find("| test accuracy | ema accuracy |\n|---:|---:|---:|---:|---:|---:|\n"),
      std::string::npos)
      << report_markdown(report);
  EXPECT_NE(report_markdown(report).find(" 75.00 % | 87.50 % |\n"), std::string::npos);
  EXPECT_NE(report_svg(report).find("a, ema test"), std::string::npos);
  EXPECT_NE(report_csv(report).find(",0.875,"), std::string::npos);
}

TEST(ReportTextTest, ACurveGoesFromCornerToCorner) {
  const std::string text = report_in_characters(report_of({"mnist"}), 50, false);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "mnist: finished, step 20, accuracy 75.00 %, best 75.00 %, test loss 0.5");
  const std::string accuracy = text.substr(text.find("accuracy\n"));
  EXPECT_NE(accuracy.find("\n 75.00 %                                       **\n"), std::string::npos)
      << accuracy;
  EXPECT_NE(accuracy.find("\n 25.00 % **\n"), std::string::npos) << accuracy;
  EXPECT_NE(accuracy.find("step 10 to 20\n"), std::string::npos) << accuracy;
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

TEST(ReportTextTest, BrailleIsForUnicodeAloneAndSeveralRunsHaveMarks) {
  EXPECT_NE(report_in_characters(report_of({"a"}), 80, true).find("\xe2\xa0"), std::string::npos);
  const std::string both = report_in_characters(report_of({"a", "b"}), 80, true);
  EXPECT_EQ(both.find("\xe2\xa0"), std::string::npos);
  EXPECT_EQ(both.substr(0, 6), "1  a: ");
  EXPECT_NE(both.find("22"), std::string::npos);
}

TEST(ReportTextTest, SvgIsEscapedAndHasALineForEachCurve) {
  const std::string svg = report_svg(report_of({"</text><script>"}));
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  std::size_t lines = 0;
  for (std::size_t at = svg.find("<polyline"); at != svg.npos; at = svg.find("<polyline", at + 1)) ++lines;
  EXPECT_EQ(lines, 3U + 2U);  // train and test loss, test accuracy; two in the legend
}

TEST(ReportTextTest, ARunWithoutNumbersIsNoError) {
  Json report = {{"runs", Json::array({run_called("new")})}};
  Json& run = report["runs"][0];
  run["curves"] = {{"step", {{"step", Json::array()}}}, {"epoch", {{"step", Json::array()}}}};
  run["best"] = run["accuracy"] = run["test_loss"] = nullptr;
  EXPECT_EQ(report_in_characters(report, 80, true),
            "new: finished, step 20, accuracy -, best -, test loss -\n");
  EXPECT_NE(report_svg(report).find("</svg>"), std::string::npos);
  EXPECT_NE(report_markdown(report).find("| new | finished | - | - | - | 20 |"), std::string::npos);
}

TEST(ReportPageTest, NothingInTheDocumentEndsItsElement) {
  const std::string page = report_page(report_of({"</script><!-- \xe2\x80\xa8"}));
  EXPECT_EQ(page.find("</script><!--"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script\\u003e\\u003c!-- \\u2028"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
