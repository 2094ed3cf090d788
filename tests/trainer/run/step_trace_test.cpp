// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The clock of all ranks, the window of steps, and the packets that Perfetto reads.
#include "trainer/run/step_trace.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "trace_schema.pb.h"
#include "trainer/config/job.hpp"

namespace lockstep {
namespace {

TEST(TimelineTest, WritesNothingDownWhileItIsClosed) {
  Timeline timeline;
  { const TimeSpan span(&timeline, Work::kStep); }
  { const TimeSpan span(nullptr, Work::kStep); }
  EXPECT_TRUE(timeline.slices().empty());
  timeline.open();
  { const TimeSpan span(&timeline, Work::kForward, "conv1"); }
  timeline.close();
  ASSERT_EQ(timeline.slices().size(), 1U);
  EXPECT_EQ(describe(timeline.slices().front()), "conv1 forward");
  timeline.open();
  EXPECT_TRUE(timeline.slices().empty());
}

TEST(TimelineTest, EachThreadHasATrack) {
  Timeline timeline;
  const std::uint32_t mine = timeline.thread_track();
  std::uint32_t other = mine;
  std::thread([&] { other = timeline.thread_track(); }).join();
  EXPECT_NE(other, mine);
  EXPECT_EQ(timeline.thread_track(), mine);
  EXPECT_EQ(timeline.tracks()[mine].name, "main thread");
  EXPECT_EQ(timeline.tracks()[other].name, "thread 1");
}

/// Clocks of ranks that started at other times are found, to a fraction of what a message takes.
TEST(StepTraceTest, FindsHowFarAClockIsAhead) {
  constexpr std::int64_t kAhead = 7'000'000'000;
  run_thread_ranks(3, [&](Communicator& comm) {
    const auto now = [&] { return clock_ns() + kAhead * comm.rank(); };
    const ClockReading reading = compare_clocks(comm, {"a", "b", "a"}, now);
    const std::int64_t expected = comm.rank() == 1 ? kAhead : 0;
    EXPECT_NEAR(static_cast<double>(reading.ahead_ns), static_cast<double>(expected), 5e6) << comm.rank();
    if (comm.rank() != 1) {
      EXPECT_EQ(reading.ahead_ns, 0) << "ranks of one machine share a clock";
    }
  });
}

/// Each look at the clock of rank 2 takes 100 ns, and that of rank 0 stands still.
TEST(StepTraceTest, AClockIsComparedInTheMiddleOfTheShortestAndFirstRoundTrip) {
  run_thread_ranks(3, [](Communicator& comm) {
    std::int64_t ticks = 0;
    const auto now = [&] { return comm.rank() == 0 ? std::int64_t{1000} : ticks += 100; };
    const ClockReading reading = compare_clocks(comm, {"a", "a", "b"}, now);
    EXPECT_EQ(reading.at_ns, comm.rank() == 0 ? 1000 : comm.rank() == 1 ? 100 : 250);
    EXPECT_EQ(reading.ahead_ns, comm.rank() == 2 ? 250 - 1000 : 0);
    EXPECT_EQ(ticks, comm.rank() == 0 ? 0 : comm.rank() == 1 ? 100 : 100 + 16 * 200) << "16 round trips";
  });
}

TEST(StepTraceTest, AClockThatDriftsIsFollowed) {
  const ClockLine line{.begin = {1000, 100}, .end = {2000, 120}};
  EXPECT_EQ(line.of_rank_0(1000), 900);
  EXPECT_EQ(line.of_rank_0(1500), 1390);
  EXPECT_EQ(line.of_rank_0(2000), 1880);
  EXPECT_EQ((ClockLine{.begin = {5, 2}, .end = {5, 2}}.of_rank_0(9)), 7);
  EXPECT_EQ((ClockLine{.begin = {0, 0}, .end = {1, 1}}.of_rank_0(5)), 0);
  EXPECT_EQ(ClockLine().of_rank_0(5), 5);
}

TEST(StepTraceTest, ASeriesLiesInTheWindowOrOutOfIt) {
  Job job;
  job.run.trace = {100, 110};
  run_thread_ranks(1, [&](Communicator& comm) {
    const StepTrace trace(job, comm);
    EXPECT_EQ(comm.activity().timeline()->tracks().at(0).name, "main thread");
    EXPECT_EQ(trace.series_from(0, 1000), 99);
    EXPECT_EQ(trace.series_from(98, 1000), 1);
    EXPECT_EQ(trace.series_from(99, 1000), 11);
    EXPECT_EQ(trace.series_from(105, 3), 3);
    EXPECT_EQ(trace.series_from(110, 1000), 1000);
  });
}

TEST(StepTraceTest, AFileThatCannotBeWrittenIsNoErrorOfTheRun) {
  run_thread_ranks(2, [&](Communicator& comm) {
    Timeline timeline;
    const WrittenTrace written = write_trace(comm, timeline, {}, "/nowhere/trace.pftrace", false);
    EXPECT_EQ(written.error.empty(), comm.rank() != 0) << written.error;
    comm.barrier();
  });
}

TEST(StepTraceTest, SlicesOfAllRanksAreInOneFileAndCounted) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path("trace.pftrace");
  run_thread_ranks(2, [&](Communicator& comm) {
    Timeline timeline(2);
    timeline.open();
    for (int i = 0; i < 5; ++i) const TimeSpan span(&timeline, Work::kInput);
    timeline.close();
    const WrittenTrace written = write_trace(comm, timeline, {}, path, false);
    EXPECT_EQ(written.slices, comm.rank() == 0 ? 4 : 0);
    EXPECT_EQ(written.lost, comm.rank() == 0 ? 6 : 0);
    EXPECT_EQ(written.error, "");
  });
  std::ifstream file(path, std::ios::binary);
  perfetto::Trace trace;
  EXPECT_TRUE(trace.ParseFromString(std::string{std::istreambuf_iterator<char>(file), {}}));
  EXPECT_EQ(trace.packet_size(), 2 * (1 + 1 + 2 * 2)) << "process, thread, begins and ends";
}

/// Closed, with slices on the track of its main thread.
struct FilledTimeline : Timeline {
  explicit FilledTimeline(const std::vector<TimeSlice>& slices) {
    thread_track();
    open();
    for (const TimeSlice& slice : slices) add(slice);
    close();
  }
};

TimeSlice slice_of(std::int64_t begin, std::int64_t end, Work work, std::string_view of = {}) {
  return {.begin_ns = begin, .end_ns = end, .of = of, .track = 0, .work = work};
}

/// Packets of rank 2, whose clock is 4 ns ahead, as Perfetto reads them: a line for each.
std::string packets_of(const Timeline& timeline) {
  perfetto::Trace trace;
  EXPECT_TRUE(trace.ParseFromString(trace_packets(timeline, 2, "node7", {.begin = {0, 4}, .end = {0, 4}})));
  std::string text;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    EXPECT_EQ(packet.trusted_packet_sequence_id(), 3U);
    const perfetto::TrackDescriptor& track = packet.track_descriptor();
    const perfetto::TrackEvent& event = packet.track_event();
    if (packet.has_track_event())
      text += fmt::format("{} on {}: {} '{}' of {}\n", packet.timestamp(), event.track_uuid(),
                          !event.has_type()                                        ? "?"
                          : event.type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN ? "begin"
                                                                                   : "end",
                          event.name(), event.categories_size());
    else if (track.has_process())
      text += fmt::format("{} is process {}, {}; flags {}\n", track.uuid(), track.process().pid(),
                          track.process().process_name(), packet.sequence_flags());
    else
      text += fmt::format("{} in {} is thread {} of {}, {}\n", track.uuid(), track.parent_uuid(),
                          track.thread().tid(), track.thread().pid(),
                          track.has_thread() ? track.thread().thread_name() : track.name());
  }
  return text;
}

TEST(StepTraceTest, PacketsBeginAndEndInOrderAndNothingBeforeTheClockOfRank0) {
  const std::string tracks =
      "3145728 is process 3, rank 2 (node7); flags 1\n3145729 in 3145728 is thread 30000 of 3, main thread\n";
  EXPECT_EQ(packets_of(FilledTimeline({slice_of(20, 30, Work::kForward, "fc1"),
                                       slice_of(30, 45, Work::kBackward, "fc1"),  // cut where the step ends
                                       slice_of(10, 40, Work::kStep)})),
            tracks +
                "6 on 3145729: begin 'step' of 1\n16 on 3145729: begin 'fc1 forward' of 1\n26 on 3145729: "
                "end '' of 0\n"
                "26 on 3145729: begin 'fc1 backward' of 1\n36 on 3145729: end '' of 0\n36 on 3145729: end '' "
                "of 0\n");
  EXPECT_EQ(packets_of(FilledTimeline({slice_of(1, 6, Work::kStep)})),
            tracks + "0 on 3145729: begin 'step' of 1\n2 on 3145729: end '' of 0\n");
  FilledTimeline with_buckets(std::vector<TimeSlice>{});
  with_buckets.track("bucket 0");
  EXPECT_EQ(packets_of(with_buckets), tracks + "3145730 in 3145728 is thread 0 of 0, bucket 0\n");
}

/// Packets are made 4,096 at a time.
TEST(StepTraceTest, ALongTraceHasEachSliceOnce) {
  std::vector<TimeSlice> slices;
  for (std::int64_t i = 0; i < 5000; ++i) slices.push_back(slice_of(10 * i, 10 * i + 5, Work::kStep));
  const std::string text = packets_of(FilledTimeline(slices));
  EXPECT_EQ(std::ranges::count(text, '\n'), 2 + 2 * 5000);
  EXPECT_TRUE(text.ends_with("\n49986 on 3145729: begin 'step' of 1\n49991 on 3145729: end '' of 0\n"));
}

TEST(StepTraceTest, TheLongerOfTwoSlicesThatBeginTogetherIsTheOuterOne) {
  const FilledTimeline timeline(
      {slice_of(10, 20, Work::kStep), slice_of(10, 40, Work::kStep), slice_of(10, 30, Work::kStep)});
  std::vector<std::int64_t> ends;
  for (const TimeSlice& slice : slices_of(timeline, 0)) ends.push_back(slice.end_ns);
  EXPECT_EQ(ends, (std::vector<std::int64_t>{40, 30, 20}));
  EXPECT_TRUE(slices_of(timeline, 1).empty());
}

TEST(StepTraceTest, AWindowIsWrittenWhenItHasPassedOrTheRunEnds) {
  const testing::TemporaryDirectory directory;
  Job job;
  job.run.trace = {2, 3};
  const auto told_at = [&](std::int64_t first, std::int64_t last, bool to_the_end) {
    std::string told;
    run_thread_ranks(1, [&](Communicator& comm) {
      StepTrace trace(job, comm);
      for (std::int64_t step = first; step <= last; ++step) told += trace.before_step(step, directory.path());
      if (to_the_end) told += trace.end(last, directory.path());
    });
    return told.substr(0, told.find(" ("));
  };
  const std::string in_file = " of 1 rank in " + directory.path("trace.pftrace");
  EXPECT_EQ(told_at(1, 3, false), "");
  EXPECT_EQ(told_at(1, 4, false), "trace: steps 2..3" + in_file);
  EXPECT_EQ(told_at(3, 4, false), "trace: steps 3..3" + in_file);
  EXPECT_EQ(told_at(1, 2, true), "trace: steps 2..2" + in_file);
  EXPECT_EQ(told_at(1, 4, true), "trace: steps 2..3" + in_file) << "once";
  EXPECT_EQ(told_at(4, 9, true), "trace: none, since this start took no step of 2..3");
  run_thread_ranks(1, [&](Communicator& comm) {
    StepTrace trace(job, comm);
    trace.before_step(2, directory.path());
    EXPECT_TRUE(trace.end(1, directory.path()).starts_with("trace: steps 2..2 of")) << "it was not taken";
  });
  job.run.trace = {};
  EXPECT_EQ(told_at(1, 4, true), "");
  job.run.trace = {5, 7};
  EXPECT_NO_THROW(require_traced_steps(job, 5));
  EXPECT_EQ(message_of<ConfigError>([&] { require_traced_steps(job, 4); }),
            "run.trace: 5..7: the run has 4 steps; name some of them");
}

}  // namespace
}  // namespace lockstep
