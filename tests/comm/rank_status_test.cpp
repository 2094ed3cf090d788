// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Texts of a fixed size, and waits.
#include "comm/rank_status.hpp"

#include "tests/support/prelude.hpp"

namespace lockstep {

namespace {

template <std::size_t Size>
std::string as_put(const std::string& text) {
  std::array<char, Size> field{};
  field.fill('x');
  put_text(text, field);
  EXPECT_EQ(field.back(), '\0');
  return std::string(text_in(field));
}

TEST(FixedTextTest, IsWholeOrEndsWithAWordAndDots) {
  EXPECT_EQ(as_put<16>("a barrier"), "a barrier");
  EXPECT_EQ(as_put<16>("fifteen letters"), "fifteen letters");
  EXPECT_EQ(as_put<16>("fifteen letters and more"), "fifteen...");
  EXPECT_EQ(as_put<16>("sixteenletters+and+more"), "sixteenlette...");
  EXPECT_EQ(as_put<16>("abcdef ghijklmnopqrst"), "abcdef...");
  EXPECT_EQ(as_put<16>("abcde fghijklmnopqrst"), "abcde fghijk...") << "half of the room at least";
  EXPECT_EQ(as_put<16>("elfe Buchst\u00e4\u00e4ben"), "elfe Buchst...") << "no half character";
  EXPECT_EQ(as_put<16>(std::string(20, '\x80')), "...") << "nor a part of no character";
  EXPECT_EQ(as_put<16>(""), "");
}

TEST(RankActivityTest, WhatIsWaitedForIsWhole) {
  RankActivity activity;
  // The longest that there are.
  for (const std::string what : {"its group: the gradients' all-reduce through host memory",
                                 "the copy of gradients from this rank's GPU",
                                 "its group: the weights of stage 12 (layers 100-199) on rank 1023"}) {
    activity.begin_wait(what, Waiting::kForSome);
    EXPECT_EQ(activity.status().place_text(), what);
    activity.end_wait();
  }
  activity.begin_wait(std::string(96, 'x'), Waiting::kForSome);
  EXPECT_EQ(activity.status().place_text(), std::string(92, 'x') + "...");
}

TEST(RankActivityTest, WaitsForAllAreCountedWhateverTheyAreCalled) {
  RankActivity activity;
  activity.begin_wait("any words", Waiting::kForAll);
  EXPECT_EQ(activity.status().collective, 1U);
  activity.end_wait();
  activity.begin_wait("a barrier", Waiting::kForSome);
  EXPECT_EQ(activity.status().collective, 1U);
}

TEST(RankActivityTest, EachChangeIsSeenWithItsMoment) {
  RankActivity activity;
  const auto expect_since = [&](const std::function<void()>& change) {
    const std::int64_t before = clock_ns();
    change();
    EXPECT_GE(activity.status().since_ns, before);
  };
  EXPECT_EQ(activity.status().phase, Phase::kStarting);
  EXPECT_EQ(activity.status().step, 0);
  EXPECT_EQ(activity.status().bucket, -1);
  expect_since([&] { activity.bucket_leaves(3); });
  EXPECT_EQ(activity.status().bucket, 3);
  expect_since([&] { activity.begin_step(7); });
  EXPECT_EQ(activity.status().step, 7);
  EXPECT_EQ(activity.status().bucket, -1) << "that was another step's";
  EXPECT_EQ(activity.status().phase, Phase::kComputing);
  {
    const InPhase saving(activity, Phase::kSaving);
    EXPECT_EQ(activity.status().phase, Phase::kSaving);
  }
  EXPECT_EQ(activity.status().phase, Phase::kComputing);
  expect_since([&] { activity.enter(Phase::kEnding); });
  expect_since([&] { activity.begin_wait("the device", Waiting::kForSome); });
  EXPECT_EQ(activity.status().waiting, Waiting::kForSome);
  expect_since([&] { activity.end_wait(); });
  EXPECT_FALSE(activity.status().waits());
}

TEST(RankActivityTest, StepsBeforeTheFirstOneAreOfEarlierStarts) {
  RankActivity activity;
  EXPECT_EQ(activity.status().steps_before, 0);
  for (const std::int64_t step : {7, 8}) {
    activity.begin_step(step);
    EXPECT_EQ(activity.status().steps_before, 6) << step;
  }
}

TEST(RankActivityTest, WaitsAreTracedWhileTheTimelineIsOpen) {
  RankActivity activity;
  activity.trace_with(std::make_unique<Timeline>());
  const auto wait_once = [&](const char* what) {
    activity.begin_wait(what, Waiting::kForAll);
    activity.end_wait();
  };
  wait_once("too early");
  activity.timeline()->open();
  wait_once("a barrier");
  activity.end_wait();  // that has ended
  activity.timeline()->close();
  ASSERT_EQ(activity.timeline()->slices().size(), 1U);
  const TimeSlice& slice = activity.timeline()->slices().front();
  EXPECT_EQ(describe(slice), "waiting: a barrier");
  EXPECT_GT(slice.begin_ns, 0);
  EXPECT_GE(slice.end_ns, slice.begin_ns);
}

TEST(RankActivityTest, PhasesHaveNames) {
  std::string names;
  for (int phase = 0; phase < kPhases; ++phase)
    names += std::string(phase_name(static_cast<Phase>(phase))) + ", ";
  EXPECT_EQ(
      names,
      "starting, computing, reducing gradients, updating weights, evaluating, checking replicas, saving, "
      "ending, ");
}

}  // namespace

}  // namespace lockstep
