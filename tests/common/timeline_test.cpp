// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Slices of time in words, and the tracks that they lie on.
#include "common/timeline.hpp"

#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

TEST(TimelineTest, SlicesAreToldInWords) {
  std::string names;
  for (int work = 0; work < kWorks; ++work) names += std::string(work_name(static_cast<Work>(work))) + ", ";
  EXPECT_EQ(names,
            "step, attempt, input, forward, loss, backward, sums, all-reduce, waiting, deciding, update, "
            "micro-batch, "
            "evaluation, checkpoint, ");
  EXPECT_EQ(describe({.number = 3, .work = Work::kAllReduce}), "all-reduce of bucket 3");
  EXPECT_EQ(describe({.of = "ring", .work = Work::kAllReduce}), "ring all-reduce");
  EXPECT_EQ(describe({.of = "a barrier", .work = Work::kWaiting}), "waiting: a barrier");
  EXPECT_EQ(describe({.of = "forward", .number = 2, .work = Work::kMicroBatch}), "forward of micro-batch 2");
  EXPECT_EQ(describe({.number = 100, .work = Work::kStep}), "step 100");
  EXPECT_EQ(describe({.of = "conv1", .work = Work::kForward}), "conv1 forward");
  EXPECT_EQ(describe({.work = Work::kEvaluation}), "evaluation");
}

TEST(TimelineTest, ThreadsAreNumberedAmongThreadsAndTextsAreKept) {
  Timeline timeline;
  EXPECT_EQ(timeline.track("bucket 0"), 0U);
  EXPECT_EQ(timeline.thread_track(), 1U);
  std::thread([&] { EXPECT_EQ(timeline.thread_track(), 2U); }).join();
  EXPECT_EQ(timeline.track("bucket 1"), 3U);
  EXPECT_EQ(timeline.track("bucket 0"), 0U);
  std::string names;
  for (const TimeTrack& track : timeline.tracks()) names += track.name + (track.is_thread() ? "+ " : " ");
  EXPECT_EQ(names, "bucket 0 main thread+ thread 1+ bucket 1 ");
  const std::string text = "a barrier";
  const std::string_view kept = timeline.keep(text);
  EXPECT_NE(kept.data(), text.data());
  EXPECT_EQ(kept, text);
  EXPECT_EQ(timeline.keep(text).data(), kept.data());
}

TEST(TimelineTest, ASpanIsASliceOfItsThread) {
  Timeline timeline;
  timeline.track("bucket 0");
  timeline.open();
  const std::int64_t before = clock_ns();
  { const TimeSpan span(&timeline, Work::kAttempt, "", 2); }
  ASSERT_EQ(timeline.slices().size(), 1U);
  const TimeSlice& slice = timeline.slices().front();
  EXPECT_EQ(describe(slice), "attempt 2");
  EXPECT_EQ(slice.track, 1U);
  EXPECT_GE(slice.begin_ns, before);
  EXPECT_GE(slice.nanoseconds(), 0);
  EXPECT_LE(slice.end_ns, clock_ns());
  timeline.close();
  timeline.add(slice);
  EXPECT_EQ(timeline.slices().size(), 1U) << "it is closed";
}

}  // namespace
}  // namespace lockstep
