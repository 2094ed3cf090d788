// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Watchers, averages and proofs beside the steps of a strategy on CPUs.
#include "tests/support/forwarding_communicator.hpp"
#include "tests/trainer/training/data_parallel_fixture.hpp"
#include "trainer/training/data_parallel.hpp"
#include "trainer/verify/rank_checks.hpp"

namespace lockstep {

namespace {

using namespace data_parallel_test;

/// Notes what a watcher of the rank is told before each update.
class PhasesSeen final : public StepObserver {
 public:
  explicit PhasesSeen(const RankActivity& activity) : activity_(activity) {}
  void before_update(ReducedStep& /*step*/) override {
    ++updates;
    EXPECT_EQ(activity_.status().phase, Phase::kReducing);
    EXPECT_EQ(activity_.status().step, 7 + updates);
  }
  int updates = 0;

 private:
  const RankActivity& activity_;
};

TEST(DataParallelTest, WatchersHearOfStepsAndTheirPhases) {
  run_thread_ranks(1, [](Communicator& comm) {
    const JobSetup setup = setup_of(make_job(), kOneLayer, kOneBucket);
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    const auto seen = std::make_shared<PhasesSeen>(comm.activity());
    strategy->observe(seen);
    strategy->run({.epoch = 0, .step_in_epoch = 0, .global_step = 7}, 2, false);
    EXPECT_EQ(seen->updates, 2);
    EXPECT_EQ(comm.activity().status().phase, Phase::kUpdating);
  });
}

TEST(DataParallelTest, AnAverageThatIsNotEvaluatedToTheEndHasNoNumbers) {
  run_thread_ranks(1, [](Communicator& comm) {
    Job job = make_job();
    job.train.ema = 0.5;
    const JobSetup setup = setup_of(job, kOneLayer, kOneBucket);
    const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
    strategy->run({}, 2, false);
    const auto weights = strategy->whole_state().weights;
    const std::vector<float> before(weights.begin(), weights.end());
    Evaluations found;
    EXPECT_TRUE(evaluate_averages(*strategy, 2, EvaluatedPart::kTest, never_leave, found));
    EXPECT_FALSE(evaluate_averages(
        *strategy, 2, EvaluatedPart::kTest, [] { return true; }, found));
    EXPECT_EQ(found.averages.size(), 1U);
    EXPECT_TRUE(std::ranges::equal(weights, before));
  });
}

/// A proof may have more ranks than the run had. The third one then has no share to compute.
TEST(DataParallelTest, SharesAreWeighedByAnyNumberOfRanks) {
  const auto sum_of = [](int ranks) {
    std::optional<std::uint64_t> sum;
    run_thread_ranks(ranks, [&](Communicator& comm) {
      Job job = make_job();
      job.data.global_batch = 4;
      job.parallel.replay_every_steps = 0;
      const JobSetup setup = setup_of(job, kOneLayer, kOneBucket);
      const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
      const std::vector<std::vector<Grain>> shares = {{{0, 1}, {1, 1}}, {{2, 1}, {3, 1}}};
      const auto weighing = std::make_shared<ShareWeighing>(shares, 2, comm);
      strategy->observe(weighing);
      strategy->run({}, 1, false);
      if (comm.rank() == 0) sum = weighing->sum();
    });
    return sum;
  };
  EXPECT_NE(sum_of(1).value_or(0), 0U);
  EXPECT_EQ(sum_of(3), sum_of(1));
}

/// Counts the groups of one in which a rank replays shares: each waits as long as this group does.
class GroupsOfOne final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  std::chrono::duration<double> timeout() const override {
    ++made;
    return comm_.timeout();
  }

  mutable int made = 0;
};

/// Without replays it is made once a proof wants a share.
TEST(DataParallelTest, MemoryForReplaysIsThereFromTheStartWhereAJobHasReplays) {
  for (const int ranks : {1, 2})
    run_thread_ranks(ranks, [](Communicator& all) {
      for (const std::int64_t replay : {0, 3}) {
        Job job = make_job();
        job.data.global_batch = 4;
        job.parallel.replay_every_steps = replay;
        const JobSetup setup = setup_of(job, kOneLayer, kOneBucket);
        GroupsOfOne comm(all);
        const std::unique_ptr<ParallelStrategy> strategy = make_data_parallel(setup, comm);
        EXPECT_EQ(comm.made, all.size() == 2 && replay == 3 ? 1 : 0) << replay;
      }
    });
}

TEST(StepObserverTest, LooksAtNoStepUnlessItSaysSo) {
  EXPECT_FALSE(StepObserver().looks_at(7));
}

}  // namespace

}  // namespace lockstep
