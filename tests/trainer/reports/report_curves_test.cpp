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

/// A chart of a run whose events have these numbers.
std::string chart_of(const std::string& title, const std::string& events, const std::string& column,
                     const std::vector<double>& steps, const std::vector<double>& values) {
  const Json run = {{"name", "a"}, {"curves", {{events, {{"step", steps}, {column, values}}}}}};
  return chart(page_without_scripts({{"runs", Json::array({run})}}), title);
}
std::string loss_chart(const std::vector<double>& steps, const std::vector<double>& losses) {
  return chart_of("Loss", "step", "loss", steps, losses);
}

TEST(TicksTest, AreRoundNumbersWithinTheSpan) {
  EXPECT_EQ(ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(ticks(0.38, 2.62, 5), (std::vector<double>{0.5, 1, 1.5, 2, 2.5}));
  EXPECT_EQ(ticks(0.22, 0.78, 5).size(), 5U);  // 0.3 to 0.7
  EXPECT_EQ(ticks(-7, 7, 4), (std::vector<double>{-5, 0, 5}));
  EXPECT_EQ(ticks(0, 40, 5), (std::vector<double>{0, 10, 20, 30, 40}));
  EXPECT_EQ(ticks(1, 1180, 6), (std::vector<double>{200, 400, 600, 800, 1000}));
}

TEST(TicksTest, ThereAreNoneWithoutASpanAndFewInAnyOther) {
  EXPECT_TRUE(ticks(5, 5, 5).empty());
  EXPECT_TRUE(ticks(6, 5, 5).empty());
  EXPECT_TRUE(ticks(0, std::numeric_limits<double>::infinity(), 5).empty());
  EXPECT_LE(ticks(1e17, 1e17 + 32, 5).size(), 11U);
  EXPECT_LE(ticks(-1e300, 1e300, 5).size(), 11U);
}

/// A series of one point is a dot.
TEST(StaticCurvesTest, LinesAndTicksAreWhereTheirNumbersAre) {
  test::expect_words(
      chart(page_of(1), "Loss"),
      {R"(<path class="curve " d="M190.7 124.0L468.0 225.8"/>)", R"(<circle cx="468.0" cy="225.8" r="2.4"/>)",
       R"(<path class="curve dashed" d="M190.7 73.1L468.0 174.9"/>)",
       R"(<path class="curve thin" d="M52.0 22.2"/><circle cx="52.0" cy="22.2" r="2.4"/>)",
       R"(<path class="curve dotted" d="M468.0 174.9"/><circle cx="468.0" cy="174.9" r="2.4"/>)",
       R"(y="229.8" text-anchor="end">0.5</text>)", R"(y="26.2" text-anchor="end">2.5</text>)",
       R"(<text x="79.7" y="256" text-anchor="middle">6</text>)",
       R"(<text x="468.0" y="256" text-anchor="middle">20</text>)"});
  test::expect_words(chart(page_of(1), "Accuracy"), {"L468.0 22.2", ">30%</text>", ">70%</text>"});
}

/// One step has one more on either side, one loss half of itself. Shares end at 100 % unless they are above it.
TEST(StaticCurvesTest, AxesSuitASingleNumberAndShares) {
  const std::string one = loss_chart({5}, {2.5});
  test::expect_words(one, {"M260.0 124.0\"", R"(y="219.2" text-anchor="end">1.5<)",
                           R"(<text x="52.0" y="256" text-anchor="middle">4<)"});
  EXPECT_EQ(test::count_of("text-anchor=\"middle\"", one), 3) << "whole steps";
  test::expect_words(loss_chart({5}, {0}), {"M260.0 238.0\"", R"(y="14.0" text-anchor="end">1<)"});
  test::expect_words(chart_of("Accuracy", "epoch", "test_accuracy", {5, 6}, {0.5, 1}), {"L468.0 10.0\""});
  test::expect_words(
      chart_of("Rank skew: the slowest above the mean", "epoch", "rank_skew", {5, 6}, {1.2, 1.5}),
      {"L468.0 22.2\""});
  EXPECT_EQ(test::count_of("<span>", chart(page_of(1), "Learning rate")), 0) << "one curve has no name";
}

/// With a margin of 6 % of the span.
TEST(StaticCurvesTest, AnAxisGoesBelowZeroOnlyWhereANumberDoes) {
  test::expect_words(loss_chart({0, 8}, {0.1, 2.1}), {"M52.0 227.7L468.0 22.3\""});
  test::expect_words(loss_chart({0, 8}, {-1, 1}), {"M52.0 225.8L468.0 22.2\""});
  test::expect_words(loss_chart({0, 8}, {-2000, 1000}), {">-2,000<", ">-500<", ">1,000<"});
}

TEST(StaticCurvesTest, AxesHaveAboutFiveNumbersUpAndSixAcross) {
  const auto counts = [](const std::vector<double>& steps, const std::vector<double>& losses) {
    const std::string drawn = loss_chart(steps, losses);
    return std::pair(test::count_of("class=\"rule\"", drawn),
                     test::count_of("text-anchor=\"middle\"", drawn));
  };
  EXPECT_EQ(counts({0, 8}, {2, 7.2}), std::pair(6, 9));
  EXPECT_EQ(counts({0, 9}, {2, 8.5}), std::pair(4, 5));
  test::expect_words(loss_chart({500000, 1500000}, {1, 2}), {">800,000<", ">1e+06<", ">1.2e+06<"});
}

TEST(StaticCurvesTest, APageSaysWhatItIsOfAndWhatItsLinesAre) {
  const std::string swatch = R"html(<span class="swatch" style="background:var(--c0)"></span>)html";
  const auto head = [](const std::string& before) {
    return R"(<h1>Lockstep report</h1>
<div class="card"><dl><dt>run</dt><dd>)" +
           before +
           R"(<bdi>run</bdi></dd><dt>state</dt><dd><bdi>finished</bdi></dd><dt>steps</dt><dd><bdi>20</bdi></dd>)"
           R"(<dt>start</dt><dd><bdi>2026-11-28T21:18:13.327Z</bdi></dd><dt>host</dt><dd><bdi>node1</bdi></dd>)"
           R"(<dt>command</dt><dd><bdi>lockstep train 'a &quot;b&quot;.yaml'</bdi></dd></dl></div>)"
           "\n";
  };
  const std::string one = page_of(1), two = page_of(2);
  EXPECT_TRUE(one.starts_with(head("") + "<h2>Curves over steps</h2>\n<div class=\"grid\">\n<section "))
      << one;
  EXPECT_TRUE(
      one.ends_with("</div>\n<p class=\"soft\">JavaScript is off: zoom, classes, mistakes and the network "
                    "need it.</p>"));
  EXPECT_TRUE(two.starts_with(head(swatch))) << two;
  EXPECT_EQ(test::count_of("class=\"swatch\"", page_of(9)), 8);
  const auto accuracy = [](const std::string& colour) {
    return R"(<h3>Accuracy</h3><div class="legend"><span><i class="" style="--k:)" + colour +
           R"("></i>test</span></div></header><svg class="plot" viewBox="0 0 480 264" role="img" )"
           R"(aria-label="Accuracy"><path class="rule" d="M52 )";
  };
  EXPECT_TRUE(chart(one, "Accuracy").starts_with(accuracy("var(--c1)"))) << chart(one, "Accuracy");
  EXPECT_TRUE(chart(two, "Accuracy").starts_with(accuracy("var(--soft)"))) << chart(two, "Accuracy");
  test::expect_words(chart(one, "Loss"),
                     {R"(<path class="rule" d="M52 225.8H468"/><text x="44" y="229.8" text-anchor="end">)",
                      R"(<path class="axis" d="M52 238H468"/>)"});
}

/// Dots up to 60 points; from 240 points on every other one, and the last.
TEST(StaticCurvesTest, LongCurvesHaveFewerPoints) {
  const auto loss_of = [](int points) {
    std::vector<double> numbers(static_cast<std::size_t>(points));
    std::iota(numbers.begin(), numbers.end(), 1);
    return loss_chart(numbers, numbers);
  };
  EXPECT_EQ(test::count_of("<circle", loss_of(60)), 60);
  EXPECT_EQ(test::count_of("<circle", loss_of(61)), 0);
  const auto lines_of = [&](int points) {
    const std::string loss = loss_of(points), curve = loss.substr(loss.find("class=\"curve thin\""));
    return test::count_of("L", curve);
  };
  EXPECT_EQ(lines_of(239), 238);
  EXPECT_EQ(lines_of(240), 120);
  EXPECT_EQ(lines_of(241), 120);
  EXPECT_EQ(test::count_of(">1,000</text>", loss_of(1200)), 2) << "below, and beside";
}

TEST(StaticCurvesTest, ColoursTellCurvesApartAndRunsWhereThereAreSeveral) {
  test::expect_words(chart(page_of(1), "Loss"), {"--k:var(--c2)\"><path class=\"curve dotted\"",
                                                 "--k:var(--c1)\"><path class=\"curve \""});
  test::expect_words(chart(page_of(2), "Loss"), {"--k:var(--c0)\"><path class=\"curve dotted\"",
                                                 "--k:var(--c1)\"><path class=\"curve dotted\""});
  EXPECT_NE(page_of(9).find("The first 8 runs are drawn"), std::string::npos);
  EXPECT_EQ(page_of(8).find("runs are drawn"), std::string::npos);
}

TEST(StaticCurvesTest, ANinthRunIsNotDrawnAndStretchesNoAxis) {
  Json report = {{"runs", Json::array()}};
  for (int run = 0; run < 9; ++run) report["runs"].push_back(drawn_run("run"));
  report["runs"][8]["curves"]["epoch"]["step"] = {10, 40};
  const std::string drawn = chart(page_without_scripts(report), "Accuracy");
  EXPECT_EQ(test::count_of("<path class=\"curve \"", drawn), 8) << drawn;
  EXPECT_EQ(test::count_of("L468.0 22.2\"", drawn), 8) << drawn;
}

TEST(StaticCurvesTest, StepsAreToldToTheLastOne) {
  const Json run = {{"name", "a"}, {"steps", 1234567}, {"accuracy", 0.875}, {"test_loss", 0.0123456789}};
  test::expect_words(
      page_without_scripts({{"runs", Json::array({run})}}),
      {"<dt>steps</dt><dd><bdi>1,234,567</bdi></dd>", "<dt>test accuracy</dt><dd><bdi>0.875</bdi></dd>",
       "<dt>test loss</dt><dd><bdi>0.0123457</bdi></dd>"});
}

TEST(StaticCurvesTest, NamesStayText) {
  test::expect_words(page_of(1, R"(<script>"x"&'y)"), {"<bdi>&lt;script&gt;&quot;x&quot;&amp;'y</bdi>"});
}

TEST(StaticCurvesTest, NumbersWithoutEndAndRunsWithoutCurvesAreNoError) {
  Json report = {{"runs", {drawn_run("a"), {{"name", "b"}}}}};
  report["runs"][0]["curves"]["epoch"]["test_loss"] = {-1.7e308, 1.7e308};
  const std::string page = page_without_scripts(report);
  EXPECT_EQ(chart(page, "Loss"), "");
  EXPECT_NE(chart(page, "Accuracy"), "");
}

/// Title, unit and scale; then name, look, colour, events and column of each curve.
TEST(ChartsTest, EachCurveHasItsColumnAndItsLook) {
  std::string text;
  for (const Json& one : charts_json()) {
    text += fmt::format("{} [{}] {}\n", one["title"].get<std::string>(), one["unit"].get<std::string>(),
                        one["scale"].get<double>());
    for (const Json& curve : one["curves"])
      text += fmt::format("  {}|{}|{}|{}|{}\n", curve["name"].get<std::string>(),
                          curve["look"].get<std::string>(), curve["colour"].get<int>(),
                          curve["events"].get<std::string>(), curve["column"].get<std::string>());
  }
  const auto measured = [](const std::string& of, const std::string& of_step) {
    return "  train, a step|thin|0|step|" + of_step + "\n  train|dashed|0|epoch|train_" + of +
           "\n  validation|dotted|2|epoch|validation_" + of + "\n  test||1|epoch|test_" + of +
           "\n  ema, validation|dotted|3|epoch|ema_validation_" + of + "\n  ema, test||3|epoch|ema_test_" +
           of + "\n  swa, validation|dotted|4|epoch|swa_validation_" + of +
           "\n  swa, test||4|epoch|swa_test_" + of + "\n";
  };
  EXPECT_EQ(text, "Loss [] 1\n" + measured("loss", "loss") + "Accuracy [%] 1\n" +
                      measured("accuracy", "train_accuracy") + R"(Learning rate [] 1
  ||0|step|learning_rate
Gradient norm [] 1
  ||0|step|gradient_norm
Samples a second [] 1
  ||0|step|samples_per_second
Step time, ms [] 1000
  median||0|epoch|step_seconds_p50
  90 %|dashed|2|epoch|step_seconds_p90
  99 %|dotted|1|epoch|step_seconds_p99
Memory, MiB [] 9.5367431640625e-07
  resident||0|epoch|resident_bytes
  peak|dashed|0|epoch|peak_resident_bytes
  device||1|epoch|device_bytes
  device, peak|dashed|1|epoch|peak_device_bytes
Exposed communication, seconds an epoch [] 1
  ||0|epoch|exposed_seconds
Rounded to zero, of nonzero int16 gradients [%] 1
  ||0|epoch|rounded_to_zero
Rank skew: the slowest above the mean [%] 1
  ||0|epoch|rank_skew
)");
}

}  // namespace
}  // namespace lockstep
