// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Shares of a made-up step, and the advice that follows from them.
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/tools/step_bench.hpp"

namespace lockstep::bench {
namespace {

/// One step of 1,000 ns: 100 input, 300 + 400 layers, of which 50 sums, 100 waiting, 60 update. An all-reduce is under
/// way for 250, of which 100 are waited for.
Timeline& made_up_step(Timeline& timeline) {
  const std::uint32_t main = timeline.thread_track(), bucket = timeline.track("bucket 0");
  timeline.open();
  const auto add = [&](std::int64_t begin, std::int64_t end, Work work, std::string_view of = {}) {
    timeline.add({.begin_ns = begin, .end_ns = end, .of = of, .track = main, .work = work});
  };
  add(0, 1000, Work::kStep);
  add(0, 100, Work::kInput);
  add(100, 400, Work::kForward, "conv1");
  add(400, 800, Work::kBackward, "conv1");
  add(500, 550, Work::kSums, "conv1");
  add(800, 900, Work::kWaiting, "the gradients' all-reduce");
  add(900, 960, Work::kUpdate);
  add(2000, 3000, Work::kWaiting, "between steps");
  timeline.add({.begin_ns = 650, .end_ns = 900, .number = 0, .track = bucket, .work = Work::kAllReduce});
  timeline.close();
  return timeline;
}

TEST(StepExplanationTest, ASliceLosesWhatItContains) {
  Timeline timeline;
  const StepShares shares = shares_of(made_up_step(timeline), 1);
  EXPECT_EQ(shares.steps, 1);
  EXPECT_DOUBLE_EQ(shares.seconds, 1000e-9);
  EXPECT_DOUBLE_EQ(shares.of(Work::kForward), 300e-9);
  EXPECT_DOUBLE_EQ(shares.of(Work::kBackward), 350e-9);
  EXPECT_DOUBLE_EQ(shares.of(Work::kSums), 50e-9);
  EXPECT_DOUBLE_EQ(shares.of(Work::kWaiting), 100e-9) << "waits between steps are no part of one";
  EXPECT_NEAR(shares.rest(), 40e-9, 1e-15);
  EXPECT_DOUBLE_EQ(shares.under_way, 250e-9);
  EXPECT_DOUBLE_EQ(shares.hidden, 150e-9);
  ASSERT_EQ(shares.layers.size(), 1U);
  EXPECT_EQ(shares.layers[0].name, "conv1");
}

std::string first_advice(const StepSurroundings& around) {
  Timeline timeline;
  return advice_for(shares_of(made_up_step(timeline), 1), around).front();
}

TEST(StepExplanationTest, AdviceNamesTheLargestLossFirst) {
  test::expect_words(first_advice({.ranks = 4, .exposed = 0.3}), {"larger data.global_batch"});
  test::expect_words(first_advice({.ranks = 4, .skew = 0.3}), {"slower"});
  test::expect_words(first_advice({.ranks = 4, .oversubscribed = true, .skew = 0.3}), {"fewer ranks"});
  test::expect_words(first_advice({.threads = 4, .grains = 5}), {"divides the 5 grains"});
  test::expect_words(first_advice({.threads = 1, .grains = 4, .cores = 8}),
                     {"more ranks or parallel.threads"});
}

TEST(StepExplanationTest, OnlyOneBucketCanBeCutIntoSmallerOnes) {
  Timeline timeline;
  const StepShares shares = shares_of(made_up_step(timeline), 1);
  const auto advises_smaller = [&](std::size_t buckets) {
    return std::ranges::any_of(
        advice_for(shares, {.ranks = 4, .buckets = buckets, .exposed = 0.3}),
        [](const std::string& one) { return one.starts_with("a smaller parallel.bucket_bytes"); });
  };
  EXPECT_TRUE(advises_smaller(1));
  EXPECT_FALSE(advises_smaller(2));
}

TEST(StepExplanationTest, WhereNothingStandsOutItSaysSo) {
  StepShares shares;
  shares.seconds = 1;
  EXPECT_EQ(advice_for(shares, {.share_of_peak = 0.74}).front(),
            "nothing stands out: this step is arithmetic, at 74 % of the peak");
}

/// 650 ns of conv1 in the made-up step.
TEST(StepExplanationTest, LayersSayTheirShareOfThePeak) {
  Timeline timeline;
  const StepShares shares = shares_of(made_up_step(timeline), 1);
  const StepSurroundings around{.layer_seconds_at_peak = {{"conv1", 325e-9}, {"conv2", 1}}};
  test::expect_words(explanation_text(shares, around),
                     {"backward 0 us, at 50 %\n", "  forward         30.0 %       0.3 us\n"});
  EXPECT_NEAR(explanation_json(shares, around)["layers"][0]["peak_share"], 0.5, 1e-9);
  EXPECT_FALSE(explanation_json(shares, {})["layers"][0].contains("peak_share"));
}

TEST(StepExplanationTest, TheTextFitsATerminal) {
  Timeline timeline;
  const StepShares shares = shares_of(made_up_step(timeline), 1);
  std::istringstream text(explanation_text(
      shares, {.ranks = 4, .threads = 4, .grains = 5, .oversubscribed = true, .exposed = 0.5, .skew = 0.4}));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace lockstep::bench
