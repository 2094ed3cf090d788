// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The reducer: the same bits for any ranks, plan, split and threads; totals and flags on every rank.
#include "comm/gradient_reducer.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "kernels/exact_sum.hpp"
#include "kernels/runtime/error.hpp"
#include "tests/comm/reducer_job.hpp"
#include "tests/comm/scalar_ops.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class ReducerRanksTest : public ::testing::TestWithParam<int> {};

TEST_P(ReducerRanksTest, SumsAreExactForAnyPlan) {
  ReducerJob job;
  for (const std::size_t buckets : {1, 2, 7, 100}) {
    job.buckets = buckets;
    EXPECT_EQ(run_on_threads(GetParam(), job), reference_step(job)) << buckets << " buckets";
  }
}

TEST_P(ReducerRanksTest, SumsAreExactForAnySplitOfTheGrains) {
  ReducerJob job;
  job.owner = [](int /*grain*/, int ranks) { return ranks - 1; };
  EXPECT_EQ(run_on_threads(GetParam(), job), reference_step(job)) << "all on the last rank";
  job.owner = [](int grain, int ranks) { return grain < 5 ? 0 : (grain * 31) % ranks; };
  EXPECT_EQ(run_on_threads(GetParam(), job), reference_step(job)) << "most on rank 0";
}

TEST_P(ReducerRanksTest, SumsAreExactWithSeveralThreadsARank) {
  ReducerJob job;
  job.grains = 24;
  job.threads = 4;
  job.steps = 5;
  for (const std::size_t buckets : {1, 3}) {
    job.buckets = buckets;
    EXPECT_EQ(run_on_threads(GetParam(), job), reference_step(job)) << buckets << " buckets";
  }
}

TEST_P(ReducerRanksTest, SumsMayComeAfterTheGradients) {
  ReducerJob job;
  job.sums_before_gradients = false;
  EXPECT_EQ(run_on_threads(GetParam(), job), reference_step(job));
}

TEST_P(ReducerRanksTest, PiecesMayBeLargerThanBuckets) {
  ReducerJob job;
  job.pieces = 1;
  job.buckets = 9;
  EXPECT_EQ(run_on_threads(GetParam(), job), reference_step(job));
}

TEST_P(ReducerRanksTest, StopRequestOfOneRankReachesAll) {
  ReducerJob job;
  job.stopping_rank = GetParam() - 1;
  for (const Determinism determinism : {Determinism::kWorld, Determinism::kOff}) {
    job.determinism = determinism;
    const StepResult result = run_on_threads(GetParam(), job);
    EXPECT_TRUE(result.stop_requested);
    EXPECT_FALSE(result.not_finite);
  }
}

TEST_P(ReducerRanksTest, NanInOneGrainReachesAll) {
  ReducerJob job;
  job.spoilt_grain = 3;
  job.spoilt_value = kNan;
  for (const Determinism determinism : {Determinism::kWorld, Determinism::kOff}) {
    job.determinism = determinism;
    EXPECT_TRUE(run_on_threads(GetParam(), job).not_finite);
  }
}

TEST_P(ReducerRanksTest, InfiniteLossReachesAll) {
  ReducerJob job;
  job.spoilt_grain = 2;
  job.spoilt_loss = std::numeric_limits<double>::infinity();
  for (const Determinism determinism : {Determinism::kWorld, Determinism::kOff}) {
    job.determinism = determinism;
    EXPECT_TRUE(run_on_threads(GetParam(), job).not_finite);
  }
}

TEST_P(ReducerRanksTest, FloatModeAgreesAndCountsExactly) {
  ReducerJob job;
  job.determinism = Determinism::kOff;
  const StepResult exact = reference_step(job);
  const StepResult result = run_on_threads(GetParam(), job);
  EXPECT_EQ(result.samples, exact.samples);
  EXPECT_EQ(result.correct, exact.correct);
  EXPECT_EQ(result.loss, exact.loss);
  EXPECT_FALSE(result.not_finite);
  for (std::size_t i = 0; i < job.parameters; ++i) {
    ASSERT_NEAR(result.gradient[i], exact.gradient[i],
                1e-6F * std::ldexp(1.0F, static_cast<int>(i % 24) - 12))
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReducerRanksTest, ::testing::Values(1, 2, 3, 5));

TEST(GradientReducerTest, MoreRanksThanGrainsTakePart) {
  ReducerJob job;
  job.grains = 2;
  EXPECT_EQ(run_on_threads(5, job), reference_step(job));
}

TEST(GradientReducerTest, LargestNumberThatCannotOverflowIsTheLimit) {
  ReducerJob job;
  job.spoilt_grain = 0;
  job.spoilt_value = std::nextafter(exact_limit(job.grains), 0.0F);
  EXPECT_FALSE(run_on_threads(2, job).not_finite);
  job.spoilt_value = exact_limit(job.grains);
  EXPECT_TRUE(run_on_threads(2, job).not_finite);
}

TEST(GradientReducerTest, FlagsDoNotOutliveTheirStep) {
  run_thread_ranks(2, [](Communicator& comm) {
    const auto ops = make_scalar_ops();
    GradientReducer reducer(comm, even_plan(1, 1), 1, Determinism::kWorld, 2);
    for (const float gradient : {kNan, 1.0F}) {
      reducer.begin_step(1, std::isnan(gradient));
      reducer.add(*ops, 0, 1, &gradient);
      reducer.add_sums({1.0, 0}, 1);
      reducer.wait();
      EXPECT_EQ(reducer.totals().not_finite, std::isnan(gradient));
      EXPECT_EQ(reducer.totals().stop_requested, std::isnan(gradient));
    }
  });
}

TEST(GradientReducerTest, WaitingForAGrainThatWasNotAddedIsABug) {
  const auto body = [](Communicator& comm) {
    GradientReducer reducer(comm, even_plan(10, 2), 10, Determinism::kWorld, 1);
    reducer.begin_step(1, false);
    reducer.wait();
  };
  EXPECT_THROW(run_thread_ranks(1, body), InternalError);
}

TEST(GradientReducerTest, OneGrainTooManyIsABug) {
  const auto body = [](Communicator& comm) {
    const float gradients[10] = {};
    const auto ops = make_scalar_ops();
    GradientReducer reducer(comm, even_plan(10, 2), 10, Determinism::kWorld, 1);
    reducer.begin_step(1, false);
    reducer.add(*ops, 0, 10, gradients);
    reducer.add(*ops, 0, 10, gradients);
  };
  EXPECT_THROW(run_thread_ranks(1, body), InternalError);
}

TEST(GradientReducerTest, PlanMustCoverTheArena) {
  const auto body = [](Communicator& comm) {
    GradientReducer reducer(comm, even_plan(10, 2), 11, Determinism::kWorld, 1);
  };
  EXPECT_THROW(run_thread_ranks(1, body), InternalError);
}

TEST(GradientReducerTest, RankThatDiesEndsTheWait) {
  const auto body = [](Communicator& comm) {
    const float gradients[10] = {};
    const auto ops = make_scalar_ops();
    if (comm.rank() == 1) return;
    GradientReducer reducer(comm, even_plan(10, 1), 10, Determinism::kWorld, 1);
    reducer.begin_step(1, false);
    reducer.add(*ops, 0, 10, gradients);
    reducer.add_sums({}, 1);
    reducer.wait();
  };
  EXPECT_THROW(run_thread_ranks(2, body, std::chrono::milliseconds(50)), PeerLostError);
}

}  // namespace
}  // namespace lockstep::testing
