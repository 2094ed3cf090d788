// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The document as characters and as a page: names stay names, and curves go where their numbers are.
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/reports/report.hpp"

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

TEST(ReportTextTest, AveragesAreCurvesOfTheirOwn) {
  Json report = report_of({"a"});
  report["runs"][0]["curves"]["epoch"]["ema_test_accuracy"] = {0.5, 0.875};
  EXPECT_NE(report_in_characters(report, 50, false).find(" 87.5 +"), std::string::npos);
}

/// Training is dotted; the test set is drawn over it.
TEST(ReportTextTest, ChartsAreDrawnToTheLastCharacter) {
  const Json report = report_of({"mnist"});
  EXPECT_EQ(report_in_characters(report, 50, false),
            R"(mnist: finished, step 20, accuracy 75.00 %, best
  75.00 %, test loss 0.5

loss, by step:
    2 +...
      |   ......
      |         ......
      |               ......
      |***                  ......
1.318 +   ******                  ......
      |         ******                  ......
      |               ******                  ....
      |                     ******
      |                           ******
      |                                 ******
  0.5 +                                       ****
      +-------------------------------------------
       10                  15                   20

accuracy, %, by step:
   75 +                                         **
      |                                     ****
      |                                 ****
      |                             ****
      |                         ****
52.27 +                      ***
      |                  ****
      |              ****
      |          ****
      |      ****
      |  ****
   25 +**
      +-------------------------------------------
       10                  15                   20
)");
  const std::string widest = report_in_characters(report, 100, false);
  EXPECT_EQ(report_in_characters(report, 200, false), widest) << "however wide the terminal is";
  EXPECT_NE(report_in_characters(report, 99, false), widest);
}

TEST(ReportTextTest, ALineIsAsWideAsTheTerminalWhateverTheName) {
  std::istringstream lines(report_in_characters(report_of({std::string(60, 'n'), "a\nb"}), 79, false));
  std::string all;
  for (std::string line; std::getline(lines, line) && !line.empty(); all += line + "\n")
    EXPECT_LE(line.size(), 79U);
  test::expect_words(all, {"1  nnn", "\n2  a\\x0ab: finished, step 20, accuracy 75.00 %"});
}

TEST(ReportTextTest, BrailleIsForUnicodeAloneAndSeveralRunsHaveMarks) {
  EXPECT_NE(report_in_characters(report_of({"a"}), 80, true).find("\xe2\xa0"), std::string::npos);
  const std::string both = report_in_characters(report_of({"a", "b"}), 80, true);
  EXPECT_EQ(both.find("\xe2\xa0"), std::string::npos);
  EXPECT_EQ(both.substr(0, 6), "1  a: ");
  EXPECT_NE(both.find("22"), std::string::npos);
}

TEST(ReportTextTest, MarksBeginAgainAfterThirtyFiveRuns) {
  const std::string text = report_in_characters(report_of(std::vector<std::string>(36, "r")), 80, false);
  test::expect_words(text, {"\n9  r: ", "\na  r: ", "\nz  r: finished"});
  EXPECT_EQ(test::count_of("1  r: ", text), 2);
}

TEST(ReportTextTest, ABestOfHeldOutSamplesIsCalledSo) {
  Json report = report_of({"a"});
  report["runs"][0]["best"]["accuracy"] = 0.5;
  report["runs"][0]["best"]["of"] = "validation";
  EXPECT_TRUE(
      report_in_characters(report, 80, false)
          .starts_with("a: finished, step 20, accuracy 75.00 %, best validation 50.00 %, test loss 0.5\n"));
  report["runs"][0]["best"]["of"] = "test";
  EXPECT_TRUE(report_in_characters(report, 80, false)
                  .starts_with("a: finished, step 20, accuracy 75.00 %, best 50.00 %, test loss 0.5\n"));
}

TEST(ReportTextTest, ARunWithinItsFirstEpochHasTheLossOfItsSteps) {
  Json report = report_of({"new"});
  report["runs"][0]["curves"] = {{"step", {{"step", {5, 10}}, {"loss", {2.5, 1.5}}}},
                                 {"epoch", {{"step", Json::array()}}}};
  const std::string text = report_in_characters(report, 41, false);
  EXPECT_EQ(text.substr(text.find("\n\n") + 1), R"(
loss, by step:
  2.5 +..
      |  ...
      |     ...
      |        ...
      |           ...
2.045 +              ...
      |                 ...
      |                    ...
      |                       ...
      |                          ...
      |                             ...
  1.5 +                                ..
      +----------------------------------
       5                   8           10
)");
}

TEST(ReportTextTest, ARunWithoutNumbersIsNoError) {
  Json report = {{"runs", Json::array({run_called("new")})}};
  Json& run = report["runs"][0];
  run["curves"] = {{"step", {{"step", Json::array()}}}, {"epoch", {{"step", Json::array()}}}};
  run["best"] = run["accuracy"] = run["test_loss"] = nullptr;
  EXPECT_EQ(report_in_characters(report, 80, true),
            "new: finished, step 20, accuracy -, best -, test loss -\n");
}

/// JSON.parse() makes 9007199254740992 of the number that follows it.
TEST(ReportPageTest, ASeedBeyondAScriptsNumbersKeepsItsDigits) {
  Json report = report_of({"a"});
  report["runs"][0]["start"] = Json::parse(
      R"({"seed": 9007199254740993, "seeds": [18446744073709551615], "world": 9007199254740992})");
  test::expect_words(
      report_page(report),
      {R"("start":{"seed":"9007199254740993","seeds":["18446744073709551615"],"world":9007199254740992})"});
}

TEST(ReportPageTest, NothingInTheDocumentEndsItsElement) {
  const std::string page = report_page(report_of({"</script><!-- \xe2\x80\xa8"}));
  EXPECT_EQ(page.find("</script><!--"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script\\u003e\\u003c!-- \\u2028"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
