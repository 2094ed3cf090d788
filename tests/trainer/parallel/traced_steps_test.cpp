// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Timeline of a rank's steps: slices nest, and each layer and bucket is there. The overlap is the one that
/// the reducer measures.
#include "comm/thread/thread_ranks.hpp"
#include "common/timeline.hpp"
#include "models/network.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"
#include "trainer/setup/job_setup.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/tools/step_bench.hpp"
#include "trainer/training/strategy.hpp"

namespace lockstep {
namespace {

constexpr int kSteps = 3;

Job job_of(const std::vector<std::string>& more) {
  return parse_job(
      "model: net\n"
      "data: {set: synthetic, train_samples: 512, test_samples: 64, global_batch: 128}\n"
      "parallel: {device: cpu, backend: thread, grain: 16}\n",
      "test.yaml", more);
}

/// Traced steps of a rank.
struct TracedRank {
  const Timeline& timeline;
  const JobSetup& setup;
  StepTimes before, after;  ///< those steps
};
using Check = std::function<void(const TracedRank&)>;

/// Each rank takes some steps that are not traced, then those that are, and looks at its timeline.
void with_traced_steps(int ranks, const std::vector<std::string>& more, const Check& check) {
  const Job job = job_of(more);
  const DatasetFuture data = load_in_advance(job);
  run_thread_ranks(ranks, [&](Communicator& comm) {
    comm.activity().trace_with(std::make_unique<Timeline>());
    Timeline& timeline = *comm.activity().timeline();
    timeline.thread_track();
    const StrategyEntry& entry = find_strategy(job);
    const JobSetup setup = set_up(job, comm, data, entry.setup);
    const auto strategy = entry.make(setup, comm);
    if (comm.rank() == 0) setup.network.initialise(job.train.seed, strategy->whole_state().weights, 0);
    strategy->distribute();
    strategy->run({0, 0, 0}, 1, false);
    EXPECT_TRUE(timeline.slices().empty());
    const StepTimes before = strategy->times();
    timeline.open();
    for (int step = 1; step <= kSteps; ++step) strategy->run({0, step, step}, 1, false);
    timeline.close();
    comm.barrier();
    check({timeline, setup, before, strategy->times()});
  });
}

std::vector<TimeSlice> slices_of(const Timeline& timeline, Work work) {
  std::vector<TimeSlice> slices;
  std::ranges::copy_if(timeline.slices(), std::back_inserter(slices),
                       [=](const TimeSlice& slice) { return slice.work == work; });
  return slices;
}

std::size_t count_of(const Timeline& timeline, Work work) {
  return slices_of(timeline, work).size();
}

bool lies_in(const TimeSlice& inner, const TimeSlice& outer) {
  return outer.begin_ns <= inner.begin_ns && inner.end_ns <= outer.end_ns;
}

/// Two slices of a track are one behind the other, or one lies in the other.
void expect_nested(const Timeline& timeline) {
  for (const TimeSlice& a : timeline.slices()) {
    EXPECT_LE(a.begin_ns, a.end_ns) << describe(a);
    for (const TimeSlice& b : timeline.slices()) {
      if (a.track != b.track || a.end_ns <= b.begin_ns || b.end_ns <= a.begin_ns) continue;
      ASSERT_TRUE(lies_in(a, b) || lies_in(b, a)) << describe(a) << " and " << describe(b);
    }
  }
}

void expect_steps(const Timeline& timeline) {
  const auto steps = slices_of(timeline, Work::kStep);
  ASSERT_EQ(steps.size(), std::size_t{kSteps});
  for (int i = 0; i < kSteps; ++i)
    EXPECT_EQ(describe(steps[static_cast<std::size_t>(i)]), "step " + std::to_string(i + 2));
  const auto updates = slices_of(timeline, Work::kUpdate);  // those of a device are on a track of its own
  EXPECT_EQ(std::ranges::count(updates, steps.front().track, &TimeSlice::track), kSteps);
  EXPECT_GE(count_of(timeline, Work::kAttempt), std::size_t{kSteps});
}

TEST(TracedStepsTest, EachLayerOfEachGrainIsThere) {
  with_traced_steps(2, {"parallel.threads=2"}, [](const TracedRank& rank) {
    expect_nested(rank.timeline);
    expect_steps(rank.timeline);
    const std::size_t attempts = count_of(rank.timeline, Work::kAttempt), grains = 4;
    EXPECT_EQ(count_of(rank.timeline, Work::kLoss), attempts * grains);
    // All steps but the epoch's last one read the samples of the next one ahead.
    const auto tries = slices_of(rank.timeline, Work::kAttempt),
               inputs = slices_of(rank.timeline, Work::kInput);
    const TimeSlice last = slices_of(rank.timeline, Work::kStep).back();
    const auto of_last =
        std::ranges::count_if(tries, [&](const TimeSlice& one) { return lies_in(one, last); });
    EXPECT_EQ(std::ranges::count(inputs, "next", &TimeSlice::of),
              (std::ssize(tries) - of_last) * static_cast<std::ptrdiff_t>(grains));
    for (const char* name : {"conv2", "fc1", "fc2"}) {
      for (const Work work : {Work::kForward, Work::kSums}) {
        const auto slices = slices_of(rank.timeline, work);
        const auto of_layer = std::ranges::count_if(
            slices, [&](const TimeSlice& slice) { return slice.of.substr(0, slice.of.find('+')) == name; });
        EXPECT_EQ(static_cast<std::size_t>(of_layer), attempts * grains) << name << " " << work_name(work);
      }
    }
    EXPECT_EQ(count_of(rank.timeline, Work::kAllReduce), attempts * rank.setup.plan.buckets.size());
    EXPECT_LE(std::ranges::count_if(rank.timeline.tracks(), &TimeTrack::is_thread), 2);
  });
}

TEST(TracedStepsTest, PartsOfAStepAreMeasuredWithinIt) {
  with_traced_steps(2, {}, [](const TracedRank& rank) {
    const auto seconds = [&](double StepTimes::*part) { return rank.after.*part - rank.before.*part; };
    EXPECT_GT(seconds(&StepTimes::input), 0);
    EXPECT_GT(seconds(&StepTimes::under_way), 0);
    EXPECT_GT(seconds(&StepTimes::comparing), 0);
    EXPECT_GT(seconds(&StepTimes::optimizer), 0);
    EXPECT_LE(seconds(&StepTimes::exposed) + seconds(&StepTimes::comparing) + seconds(&StepTimes::optimizer) +
                  seconds(&StepTimes::input),
              seconds(&StepTimes::total));
    ASSERT_EQ(rank.after.until_left.size(), rank.setup.plan.buckets.size());
    EXPECT_GT(rank.after.until_left.front(), rank.before.until_left.front());
  });
}

/// Largest difference of the trace from the reducer's measurement, relative to the time under way; on the worst rank.
double disagreement(const std::string& buckets) {
  std::mutex mutex;
  double worst = 0;
  with_traced_steps(4, {buckets}, [&](const TracedRank& rank) {
    expect_nested(rank.timeline);
    const bench::StepShares shares = bench::shares_of(rank.timeline, 1);
    const double under_way = (rank.after.under_way - rank.before.under_way) / kSteps,
                 exposed = (rank.after.exposed - rank.before.exposed) / kSteps;
    EXPECT_GT(under_way, 0);
    EXPECT_LE(shares.under_way, shares.seconds);
    const std::lock_guard lock(mutex);
    worst = std::max({worst, std::abs(shares.under_way / under_way - 1),
                      std::abs(shares.hidden - (under_way - exposed)) / under_way});
  });
  return worst;
}

/// Both look at a clock, one behind the other: a thread that loses its core in between makes them differ. Not each
/// time.
TEST(TracedStepsTest, OverlapIsTheOneThatTheReducerMeasures) {
  for (const char* buckets :
       {"parallel.bucket_bytes=1MiB", "parallel.bucket_bytes=8"}) {  // one; one for each layer
    double least = disagreement(buckets);
    for (int attempt = 1; attempt < 50 && least > 0.05; ++attempt)
      least = std::min(least, disagreement(buckets));
    EXPECT_LT(least, 0.05) << buckets;
  }
}

TEST(TracedStepsTest, APipelineShowsItsMicroBatches) {
  with_traced_steps(2, {"parallel.strategy=pipeline"}, [](const TracedRank& rank) {
    expect_nested(rank.timeline);
    expect_steps(rank.timeline);
    const std::size_t grains = 8;
    const auto passes = slices_of(rank.timeline, Work::kMicroBatch);
    EXPECT_EQ(passes.size(), count_of(rank.timeline, Work::kAttempt) * 2 * grains);
    EXPECT_TRUE(std::ranges::any_of(
        passes, [](const TimeSlice& pass) { return describe(pass).ends_with("forward of micro-batch 7"); }));
  });
}

/// Each rank has all layers: those of the last ones have their weights' gradients on the side stream.
TEST(TracedStepsTest, APipelineOnADeviceHasTheTracksOfItsStreams) {
  const std::vector<std::string> whole = {"model=mlp", "parallel.strategy=pipeline", "parallel.stages=1",
                                          "parallel.device=emulated", "data.global_batch=32"};
  with_traced_steps(2, whole, [](const TracedRank& rank) {
    const std::size_t attempts = count_of(rank.timeline, Work::kAttempt);
    EXPECT_EQ(count_of(rank.timeline, Work::kAllReduce), attempts) << "of one bucket";
    for (const char* name : {"device: main stream", "device: side stream"})
      EXPECT_EQ(std::ranges::count(rank.timeline.tracks(), name, &TimeTrack::name), 1) << name;
  });
}

TEST(TracedStepsTest, HogwildShowsItsSteps) {
  with_traced_steps(2, {"parallel.strategy=hogwild", "parallel.determinism=off"}, [](const TracedRank& rank) {
    expect_nested(rank.timeline);
    EXPECT_EQ(count_of(rank.timeline, Work::kStep), std::size_t{kSteps});
    EXPECT_EQ(count_of(rank.timeline, Work::kUpdate), std::size_t{kSteps});
    EXPECT_EQ(describe(slices_of(rank.timeline, Work::kStep).front()), "step 2");
    EXPECT_EQ(count_of(rank.timeline, Work::kInput), std::size_t{kSteps * 4}) << "micro-batches";
    EXPECT_GT(count_of(rank.timeline, Work::kForward), 0U);
  });
}

TEST(TracedStepsTest, ADeviceHasTracksOfItsOwn) {
  const std::vector<std::string> small = {"model=mlp", "parallel.device=emulated", "data.global_batch=32"};
  with_traced_steps(2, small, [](const TracedRank& rank) {
    expect_steps(rank.timeline);
    const std::size_t attempts = count_of(rank.timeline, Work::kAttempt);
    EXPECT_GE(count_of(rank.timeline, Work::kAllReduce), attempts);
    ASSERT_NE(rank.setup.device.gpu, nullptr);
    const auto& tracks = rank.timeline.tracks();
    for (const char* name : {"device: main stream", "device: side stream"})
      EXPECT_EQ(std::ranges::count(tracks, name, &TimeTrack::name), 1) << name;
    EXPECT_EQ(count_of(rank.timeline, Work::kInput), attempts);
    EXPECT_EQ(count_of(rank.timeline, Work::kUpdate), std::size_t{2 * kSteps}) << "of host and device";
    for (const Work work : {Work::kForward, Work::kBackward}) {
      EXPECT_GT(count_of(rank.timeline, work), 0U);
      EXPECT_EQ(count_of(rank.timeline, work) % attempts, 0U);
    }
    const auto sums = slices_of(rank.timeline, Work::kAllReduce);
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(sums, "bucket 0", &TimeSlice::of)), attempts);
  });
}

}  // namespace
}  // namespace lockstep
