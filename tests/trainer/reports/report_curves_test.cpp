// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The curves of the page where no script runs: every place worked out by hand.
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/reports/report.hpp"

#include <limits>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Steps 5 to 20, losses 0.5 to 2.5. With the margin of 6 % the axis is from 0.38 to 2.62.
Json drawn_run(const std::string& name) {
  return {{"name", name},
          {"state", "finished"},
          {"steps", 20},
          {"start",
           {{"time", "2026-11-28T21:18:13.327Z"},
            {"host", "node1"},
            {"command", "lockstep train 'a \"b\".yaml'"}}},
          {"curves",
           {{"step", {{"step", {5, 10}}, {"loss", {2.5, nullptr}}, {"learning_rate", {0.08, 0.08}}}},
            {"epoch",
             {{"step", {10, 20}},
              {"train_loss", {2.0, 1.0}},
              {"test_loss", {1.5, 0.5}},
              {"validation_loss", {nullptr, 1.0}},
              {"test_accuracy", {0.25, 0.75}}}}}}};
}

std::string page_of(std::size_t runs, const std::string& name = "run") {
  Json report = {{"runs", Json::array()}};
  for (std::size_t i = 0; i < runs; ++i) report["runs"].push_back(drawn_run(name));
  return page_without_scripts(report);
}

std::string chart(const std::string& page, const std::string& title) {
  const std::size_t at = page.find("<h3>" + title + "</h3>");
  return at == page.npos ? "" : page.substr(at, page.find("</section>", at) - at);
}

TEST(TicksTest, AreRoundNumbersWithinTheSpan) {
  EXPECT_EQ(ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(ticks(0.38, 2.62, 5), (std::vector<double>{0.5, 1, 1.5, 2, 2.5}));
  EXPECT_EQ(ticks(0.22, 0.78, 5).size(), 5U);  // 0.3 to 0.7
  EXPECT_EQ(ticks(-7, 7, 4), (std::vector<double>{-5, 0, 5}));
  EXPECT_EQ(ticks(1, 1180, 6), (std::vector<double>{200, 400, 600, 800, 1000}));
}

TEST(TicksTest, ThereAreNoneWithoutASpanAndFewInAnyOther) {
  EXPECT_TRUE(ticks(5, 5, 5).empty());
  EXPECT_TRUE(ticks(6, 5, 5).empty());
  EXPECT_TRUE(ticks(0, std::numeric_limits<double>::infinity(), 5).empty());
  EXPECT_LE(ticks(1e17, 1e17 + 32, 5).size(), 11U);
  EXPECT_LE(ticks(-1e300, 1e300, 5).size(), 11U);
}

TEST(StaticCurvesTest, LinesAndTicksAreWhereTheirNumbersAre) {
  const std::string loss = chart(page_of(1), "Loss");
  test::expect_words(
      loss,
      {R"(<path class="curve " d="M190.7 124.0L468.0 225.8"/>)", R"(<circle cx="468.0" cy="225.8" r="2.4"/>)",
       R"(<path class="curve dashed" d="M190.7 73.1L468.0 174.9"/>)",
       R"(y="229.8" text-anchor="end">0.5</text>)", R"(y="26.2" text-anchor="end">2.5</text>)",
       R"(<text x="79.7" y="256" text-anchor="middle">6</text>)",
       R"(<text x="468.0" y="256" text-anchor="middle">20</text>)"});
  test::expect_words(chart(page_of(1), "Accuracy"), {"L468.0 22.2", ">30%</text>", ">70%</text>"});
}

TEST(StaticCurvesTest, ASeriesOfOnePointIsADot) {
  const std::string loss = chart(page_of(1), "Loss");
  test::expect_words(
      loss, {R"(<path class="curve thin" d="M52.0 22.2"/><circle cx="52.0" cy="22.2" r="2.4"/>)",
             R"(<path class="curve dotted" d="M468.0 174.9"/><circle cx="468.0" cy="174.9" r="2.4"/>)"});
}

TEST(StaticCurvesTest, ColoursTellCurvesApartAndRunsWhereThereAreSeveral) {
  const std::string one = chart(page_of(1), "Loss"), several = chart(page_of(2), "Loss");
  test::expect_words(
      one, {"--k:var(--c2)\"><path class=\"curve dotted\"", "--k:var(--c1)\"><path class=\"curve \""});
  test::expect_words(several, {"--k:var(--c0)\"><path class=\"curve dotted\"",
                               "--k:var(--c1)\"><path class=\"curve dotted\""});
  EXPECT_NE(page_of(9).find("The first 8 runs are drawn"), std::string::npos);
  EXPECT_EQ(page_of(8).find("runs are drawn"), std::string::npos);
}

TEST(StaticCurvesTest, NamesStayText) {
  test::expect_words(
      page_of(1, R"(<script>"x"&'y)"),
      {"<bdi>&lt;script&gt;&quot;x&quot;&amp;'y</bdi>", "<bdi>node1</bdi>",
       "<bdi>2026-11-28T21:18:13.327Z</bdi>", "<bdi>lockstep train 'a &quot;b&quot;.yaml'</bdi>"});
}

TEST(StaticCurvesTest, NumbersWithoutEndAndRunsWithoutCurvesAreNoError) {
  Json report = {{"runs", {drawn_run("a"), {{"name", "b"}}}}};
  report["runs"][0]["curves"]["epoch"]["test_loss"] = {-1.7e308, 1.7e308};
  const std::string page = page_without_scripts(report);
  EXPECT_EQ(chart(page, "Loss"), "");
  EXPECT_NE(chart(page, "Accuracy"), "");
}

TEST(ChartsTest, TestAndValidationHaveOtherLooks) {
  for (const Json& one : charts_json())
    for (const Json& a : one["curves"])
      for (const Json& b : one["curves"])
        EXPECT_TRUE(a == b || a["look"] != b["look"] || a["colour"] != b["colour"]) << one["title"];
  EXPECT_EQ(charts_json()[1]["curves"][2]["look"], "dotted");
  EXPECT_EQ(charts_json()[1]["curves"][3]["look"], "");
}

}  // namespace
}  // namespace lockstep
