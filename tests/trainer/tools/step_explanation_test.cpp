// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Shares of a made-up step, and the advice that follows from them.
#include "common/text_layout.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/tools/step_bench.hpp"

namespace lockstep::bench {
namespace {

/// One step of 1,000 ns: 100 input, 300 + 400 layers, of which 50 sums, 100 waiting, 60 update. An all-reduce is under
/// way for 250, of which 100 are waited for.
/// @param unit  nanoseconds in place of each
Timeline& made_up_step(Timeline& timeline, std::int64_t unit = 1) {
  const std::uint32_t bucket = timeline.track("bucket 0"), main = timeline.thread_track();
  timeline.open();
  const auto add = [&](std::int64_t begin, std::int64_t end, Work work, std::string_view of = {}) {
    timeline.add({.begin_ns = begin * unit, .end_ns = end * unit, .of = of, .track = main, .work = work});
  };
  add(0, 1000, Work::kStep);
  add(0, 100, Work::kInput);
  add(100, 400, Work::kForward, "conv1");
  add(400, 800, Work::kBackward, "conv1");
  add(500, 550, Work::kSums, "conv1");
  add(800, 900, Work::kWaiting, "the gradients' all-reduce");
  add(900, 960, Work::kUpdate);
  add(2000, 3000, Work::kWaiting, "between steps");
  timeline.add(
      {.begin_ns = 650 * unit, .end_ns = 900 * unit, .number = 0, .track = bucket, .work = Work::kAllReduce});
  timeline.close();
  return timeline;
}

/// Two steps of 1,000 ns on two threads. A gap lies between them, and one all-reduce ends within another.
TEST(StepExplanationTest, SharesAreMeansOverStepsAndThreads) {
  Timeline timeline;
  const std::uint32_t main = timeline.thread_track(), bucket = timeline.track("bucket 0"),
                      other = timeline.track("bucket 1");
  timeline.open();
  const auto add = [&](std::uint32_t track, std::int64_t begin, std::int64_t end, Work work,
                       std::string_view of = {}) {
    timeline.add({.begin_ns = begin, .end_ns = end, .of = of, .track = track, .work = work});
  };
  add(main, 0, 1000, Work::kStep);
  add(main, 0, 200, Work::kForward, "a");
  add(main, 200, 800, Work::kBackward, "b+c");
  add(main, 350, 500, Work::kWaiting);
  add(main, 1000, 1100, Work::kInput);
  add(main, 2000, 3000, Work::kStep);
  add(main, 2000, 2100, Work::kForward, "a");
  add(main, 2100, 2200, Work::kBackward, "a");
  add(main, 2550, 2700, Work::kWaiting);
  add(other, 200, 300, Work::kAllReduce);
  add(bucket, 100, 400, Work::kAllReduce);
  add(bucket, 2500, 2600, Work::kAllReduce);
  timeline.close();
  const StepShares shares = shares_of(timeline, 2);
  EXPECT_EQ(shares.steps, 2);
  EXPECT_DOUBLE_EQ(shares.seconds, 1000e-9);
  EXPECT_DOUBLE_EQ(shares.of(Work::kForward), 75e-9);
  EXPECT_DOUBLE_EQ(shares.of(Work::kBackward), 137.5e-9);
  EXPECT_DOUBLE_EQ(shares.of(Work::kWaiting), 75e-9);
  EXPECT_EQ(shares.of(Work::kInput), 0) << "it begins when the step has ended";
  EXPECT_DOUBLE_EQ(shares.under_way, 200e-9);
  EXPECT_DOUBLE_EQ(shares.hidden, 150e-9);
  ASSERT_EQ(shares.layers.size(), 2U);
  EXPECT_EQ(shares.layers[0].name, "b+c");
  EXPECT_DOUBLE_EQ(shares.layers[0].backward, 112.5e-9);
  EXPECT_DOUBLE_EQ(shares.layers[1].forward, 75e-9);
  EXPECT_DOUBLE_EQ(shares.layers[1].backward, 25e-9);
  const StepSurroundings around{.layer_seconds_at_peak = {{"b", 11.25e-9}, {"c", 45e-9}}};
  EXPECT_NEAR(explanation_json(shares, around)["layers"][0]["peak_share"], 0.5, 1e-9);
  const StepShares none = shares_of(Timeline(), 1);
  EXPECT_EQ(std::tuple(none.steps, none.seconds, none.under_way, none.hidden), std::tuple(0, 0.0, 0.0, 0.0));
}

/// A slice loses what it contains, and waits between steps are no part of one.
TEST(StepExplanationTest, TextAndJsonHaveEveryShare) {
  Timeline timeline;
  const StepShares shares = shares_of(made_up_step(timeline, 1000), 1);
  const StepSurroundings around{.ranks = 2,
                                .exposed = 0.13,
                                .skew = 0.07,
                                .share_of_peak = 0.5,
                                .layer_seconds_at_peak = {{"conv1", 325e-6}}};
  const std::string text = explanation_text(shares, around);
  const std::string head =
      "Where a step of rank 0 goes (mean of 1 step, 1000 us each):\n"
      "  forward         30.0 %     300.0 us\n"
      "  backward        35.0 %     350.0 us\n"
      "  gradient sums    5.0 %      50.0 us\n"
      "  input           10.0 %     100.0 us\n"
      "  update           6.0 %      60.0 us\n"
      "  waiting         10.0 %     100.0 us\n"
      "  the rest         4.0 %      40.0 us\n"
      "Of the waiting 13.0 % of a step is communication, 7.0 % is for slower ranks.\n"
      "All-reduces are under way for 250 us, 150 us of it (60 %) hidden.\n"
      "Arithmetic runs at 50 % of the peak of a core.\n"
      "The slowest layers, and their shares of the peak:\n"
      "  conv1                     65.0 %  forward 300 us, backward 350 us, at 50 %\n"
      "What would help most:\n";
  const std::vector<std::string> advice = {
      "a larger data.global_batch (or fewer ranks): the all-reduce costs the same, and there is more "
      "backward to "
      "hide it under (13 %)",
      "input is gathered on the threads that compute: more parallel.threads share it (10 %)",
      "ranks of equal speed: this one waits for slower ones; lockstep doctor and the slowest_rank of each "
      "epoch "
      "in metrics.jsonl names them (7 %)"};
  EXPECT_EQ(advice_for(shares, around), advice);
  EXPECT_EQ(text, fold_lines(fmt::format("{}  - {}\n", head, fmt::join(advice, "\n  - ")), 80));
  const auto json = explanation_json(shares, around);
  EXPECT_EQ(json["steps"], 1);
  EXPECT_EQ(json["seconds"], shares.seconds);
  EXPECT_EQ(json["work_seconds"]["gradient sums"], shares.of(Work::kSums));
  EXPECT_EQ(json["work_seconds"]["the rest"], shares.rest());
  EXPECT_EQ(json["all_reduce_seconds"], shares.under_way);
  EXPECT_EQ(json["hidden_seconds"], shares.hidden);
  EXPECT_EQ(json["exposed_share"], 0.13);
  EXPECT_EQ(json["skew_share"], 0.07);
  EXPECT_EQ(json["peak_share"], 0.5);
  EXPECT_EQ(json["layers"][0]["forward"], shares.layers[0].forward);
  EXPECT_EQ(json["layers"][0]["backward"], shares.layers[0].backward);
  EXPECT_NEAR(json["layers"][0]["peak_share"], 0.5, 1e-9);
  EXPECT_FALSE(explanation_json(shares, {})["layers"][0].contains("peak_share"));
  EXPECT_EQ(json["advice"], advice);
  EXPECT_EQ(explanation_text(shares, {}).find("the waiting"), std::string::npos) << "one rank waits for none";
}

TEST(StepExplanationTest, FiveLayersAreShownAndNoTimeIsNegative) {
  StepShares shares;
  shares.seconds = 1;
  shares.own[static_cast<std::size_t>(Work::kForward)] = 2;
  EXPECT_EQ(shares.rest(), 0);
  for (int i = 0; i < 6; ++i) shares.layers.push_back({"layer" + std::to_string(i), 1, 1});
  const std::string longest = "layer" + std::string(26, 'a') + "z";
  shares.layers.front().name = longest;
  shares.layers.back() = {"layer5", 0, 0};
  const StepSurroundings around{.ranks = 2, .layer_seconds_at_peak = {{"layer5", 1}}};
  const std::string text = explanation_text(shares, around);
  test::expect_words(text, {"\n  " + clip_middle(longest, 24) + " ", "\n  layer4 ",
                            " under way for 0 us, 0 us of it (0 %) "});
  EXPECT_EQ(text.find("layer5"), std::string::npos);
  EXPECT_FALSE(explanation_json(shares, around)["layers"][5].contains("peak_share")) << "it took no time";
}

std::string first_advice(const StepSurroundings& around) {
  Timeline timeline;
  return advice_for(shares_of(made_up_step(timeline), 1), around).front();
}

TEST(StepExplanationTest, AdviceNamesTheLargestLossFirst) {
  test::expect_words(first_advice({.ranks = 4, .exposed = 0.3}), {"larger data.global_batch"});
  test::expect_words(first_advice({.ranks = 4, .skew = 0.3}), {"slower"});
  test::expect_words(first_advice({.ranks = 4, .oversubscribed = true, .skew = 0.3}), {"fewer ranks"});
  EXPECT_EQ(first_advice({.threads = 4, .grains = 5}),
            "a parallel.threads that divides the 5 grains of a step (or a smaller parallel.grain, a larger "
            "batch): 3 of 8 thread turns have none (38 %)");
  EXPECT_EQ(
      first_advice({.threads = 1, .grains = 4, .cores = 8}),
      "more ranks or parallel.threads: 1 of 8 cores in use, and a step has 4 grains on this rank (88 %)");
  test::expect_words(first_advice({.ranks = 16, .local_ranks = 2, .grains = 4, .cores = 8}),
                     {"more ranks or parallel.threads: 2 of 8 cores in use"});
  for (const StepSurroundings& used :
       {StepSurroundings{.threads = 1, .cores = 8}, {.threads = 8, .grains = 8, .cores = 8}})
    test::expect_words(first_advice(used), {"input is gathered"});
}

TEST(StepExplanationTest, LossesOfATwentiethAreWorthSaying) {
  const auto advice = [](const StepSurroundings& around) { return advice_for({}, around); };
  test::expect_words(advice({.ranks = 2, .buckets = 2, .exposed = 0.04, .skew = 0.05}).front(),
                     {"ranks of equal speed", "(5 %)"});
  EXPECT_EQ(advice({.ranks = 2, .buckets = 2, .exposed = 0.04, .skew = 0.05}).size(), 1U);
  EXPECT_EQ(advice({.ranks = 2, .skew = 0.049, .share_of_peak = 0.74}).front(),
            "nothing stands out: this step is arithmetic, at 74 % of the peak");
  EXPECT_EQ(
      advice({.ranks = 2, .oversubscribed = true}),
      std::vector<std::string>{"fewer ranks on this host: there are more than cores, and those that share "
                               "one wait for each other (5 %)"});
}

TEST(StepExplanationTest, OnlyOneBucketCanBeCutIntoSmallerOnes) {
  Timeline timeline;
  const StepShares shares = shares_of(made_up_step(timeline), 1);
  const auto advises_smaller = [&](std::size_t buckets) {
    return std::ranges::any_of(
        advice_for(shares, {.ranks = 4, .buckets = buckets, .exposed = 0.3}), [](const std::string& one) {
          return one.starts_with("a smaller parallel.bucket_bytes") && one.ends_with(" (15 %)");
        });
  };
  EXPECT_TRUE(advises_smaller(1));
  EXPECT_FALSE(advises_smaller(2));
}

}  // namespace
}  // namespace lockstep::bench
