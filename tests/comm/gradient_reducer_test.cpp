// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The reducer: the same bits for any ranks, plan, split and threads; totals and flags on every rank.
#include "comm/reduce/gradient_reducer.hpp"

#include "comm/reduce/kept_terms.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "kernels/numerics/sums.hpp"
#include "tests/comm/conformance.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

GradientUnits one_tensor(std::size_t size, std::int64_t grains) {
  return {std::vector<std::size_t>{size}, grains};
}

class ReducerRanksTest : public ::testing::TestWithParam<int> {};

TEST_P(ReducerRanksTest, SumsAreExactHoweverTheyAreCut) {
  const auto last_rank = [](int /*grain*/, int ranks) { return ranks - 1; };
  const auto mostly_rank_0 = [](int grain, int ranks) { return grain < 5 ? 0 : (grain * 31) % ranks; };
  for (const auto& [name, job] : std::vector<std::pair<const char*, ReducerJob>>{
           {"1 bucket", {.buckets = 1}},
           {"2 buckets", {}},
           {"7 buckets", {.buckets = 7}},
           {"100 buckets", {.buckets = 100}},
           {"pieces larger than buckets", {.buckets = 9, .pieces = 1}},
           {"fewer grains than ranks", {.grains = 2}},
           {"all grains on the last rank", {.owner = last_rank}},
           {"most grains on rank 0", {.owner = mostly_rank_0}},
           {"4 threads, 1 bucket", {.grains = 24, .buckets = 1, .threads = 4, .steps = 5}},
           {"4 threads, 3 buckets", {.grains = 24, .buckets = 3, .threads = 4, .steps = 5}},
           {"sums after gradients", {.sums_before_gradients = false}}})
    EXPECT_EQ(run_on_threads(GetParam(), job), reference_step(job)) << name;
}

TEST_P(ReducerRanksTest, StopRequestOfOneRankReachesAll) {
  ReducerJob job;
  job.stopping_rank = GetParam() - 1;
  for (const Determinism determinism : {Determinism::kWorld, Determinism::kOff}) {
    job.determinism = determinism;
    const StepResult result = run_on_threads(GetParam(), job);
    EXPECT_TRUE(result.stop_requested);
    EXPECT_EQ(result.refused, 0);
  }
}

TEST_P(ReducerRanksTest, WhatIsNotFiniteInOneGrainReachesAll) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Determinism determinism : {Determinism::kWorld, Determinism::kOff})
    for (const auto& [value, loss] : {std::pair{kNan, 0.0}, {kInfinity, 0.0}, {0.0F, double{kInfinity}}}) {
      const ReducerJob job{
          .determinism = determinism, .spoilt_grain = 3, .spoilt_value = value, .spoilt_loss = loss};
      EXPECT_EQ(run_on_threads(GetParam(), job).refused, 1) << value << ", loss " << loss;
    }
}

TEST_P(ReducerRanksTest, AllKnowWhichTensorRefusedWhat) {
  ReducerJob job;
  job.spoilt_grain = 3;
  job.spoilt_value = 1e30F;  // in the second tensor
  StepResult result = run_on_threads(GetParam(), job);
  EXPECT_EQ(result.refusals[1], (TensorRefusals{.too_large = 1, .not_finite = 0}));
  job.spoilt_value = kNan;
  result = run_on_threads(GetParam(), job);
  EXPECT_EQ(result.refusals[1], (TensorRefusals{.too_large = 0, .not_finite = 1}));
  EXPECT_EQ(result.refusals[0], TensorRefusals{});
  EXPECT_EQ(result.refusals[3], TensorRefusals{});
}

TEST(GradientReducerTest, RefusalsAreCountedForEachTensorOfAPiece) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kLarge = 1e30F;
  const float gradients[] = {kNan, kLarge, 1, -kInfinity, -kLarge, kNan};
  for (const Determinism determinism : {Determinism::kWorld, Determinism::kOff}) {
    const bool exact = determinism == Determinism::kWorld;
    run_thread_ranks(1, [&](Communicator& comm) {
      const GradientUnits units(std::vector<std::size_t>{1, 2, 3}, 1);
      GradientReducer reducer(comm, even_plan(6, 1), units, determinism);
      reducer.begin_step(1, false);
      reducer.add(0, 6, gradients);
      reducer.add_sums({1.0, 1}, 4);
      EXPECT_EQ(reducer.wait(), 0) << "for itself";
      const auto refusals = reducer.sums().refusals();
      EXPECT_EQ(std::vector(refusals.begin(), refusals.end()),
                (std::vector<TensorRefusals>{{.too_large = 0, .not_finite = 1},
                                             {.too_large = exact ? 1 : 0, .not_finite = 0},
                                             {.too_large = exact ? 1 : 0, .not_finite = 2}}));
      EXPECT_EQ(reducer.sums().totals().refused, exact ? 5 : 3);
      EXPECT_EQ(reducer.sums().totals().samples, 4);
    });
  }
}

/// The mean gradient scaled by a power of two is the same digits, if the units are scaled as well.
TEST_P(ReducerRanksTest, GradientsOfAnySizeHaveTheSameDigits) {
  ReducerJob job;
  const StepResult plain = run_on_threads(GetParam(), job);
  for (const int shift : {-90, -40, 60, 100}) {
    job.gradient_exponent = shift;
    job.exponents.assign(kTensors, static_cast<std::int16_t>(kExactExponent + shift));
    StepResult scaled = run_on_threads(GetParam(), job);
    for (float& value : scaled.gradient) value = std::ldexp(value, -shift);
    EXPECT_EQ(scaled, plain) << "2^" << shift;
  }
}

/// Up to the largest a grain can have. 64 samples of the largest float, and more grains than one counter
/// takes.
TEST_P(ReducerRanksTest, HugeLossesAddUpInBothModes) {
  ReducerJob job;
  for (const double loss : {1e3, 3e9, 1e20, 3e38, 64 * 3.4e38}) {
    job.spoilt_grain = 2;
    job.spoilt_loss = loss;
    for (const Determinism determinism : {Determinism::kWorld, Determinism::kOff}) {
      job.determinism = determinism;
      const StepResult result = run_on_threads(GetParam(), job);
      EXPECT_EQ(result.refused, 0) << loss;
      EXPECT_NEAR(result.loss / reference_loss(job), 1, 1e-12) << loss;
    }
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
  EXPECT_EQ(result.refused, 0);
  for (std::size_t i = 0; i < job.parameters; ++i) {
    ASSERT_NEAR(result.gradient[i], exact.gradient[i],
                1e-6F * std::ldexp(1.0F, static_cast<int>(i % 24) - 12))
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReducerRanksTest, ::testing::Values(1, 2, 3, 5));

TEST(GradientReducerTest, LargestNumberThatCannotOverflowIsTheLimit) {
  ReducerJob job;
  job.spoilt_grain = 0;
  job.spoilt_value = std::nextafter(exact_limit(job.grains), 0.0F);
  EXPECT_EQ(run_on_threads(2, job).refused, 0);
  job.spoilt_value = exact_limit(job.grains);
  EXPECT_EQ(run_on_threads(2, job).refused, 1);
}

TEST(GradientReducerTest, FlagsDoNotOutliveTheirStep) {
  run_thread_ranks(2, [](Communicator& comm) {
    const GradientUnits units = one_tensor(1, 2);
    GradientReducer reducer(comm, even_plan(1, 1), units, Determinism::kWorld);
    for (const float gradient : {kNan, 1.0F}) {
      reducer.begin_step(1, std::isnan(gradient));
      reducer.add(0, 1, &gradient);
      reducer.add_sums({1.0, 0}, 1);
      reducer.wait();
      EXPECT_EQ(reducer.sums().totals().refused, std::isnan(gradient) ? 2 : 0);
      EXPECT_EQ(reducer.sums().refusals()[0].not_finite, std::isnan(gradient) ? 2 : 0);
      EXPECT_EQ(reducer.sums().totals().stop_requested, std::isnan(gradient));
    }
  });
}

/// Refusals of a term that one rank has alone: all ranks know for which units it is too large.
TEST(GradientReducerTest, RefusalsOfOtherUnitsAreForeseenByAllRanks) {
  run_thread_ranks(3, [](Communicator& comm) {
    GradientUnits units = one_tensor(2, 3);
    GradientReducer reducer(comm, even_plan(2, 2), units, Determinism::kWorld);
    const float large = comm.rank() == 1 ? -100.0F : 0.5F, gradients[] = {0.25F, large};
    reducer.begin_step(1, false, true);
    reducer.add(0, 2, gradients);
    reducer.add_sums({1.0, 0}, 1);
    reducer.wait();
    EXPECT_EQ(reducer.sums().foreseen_refusals()[0].too_large, 0);
    units.restore(std::vector<std::int16_t>{-57}, 0);
    EXPECT_GT(1.0F, units.format(0).limit / 2);
    EXPECT_EQ(reducer.sums().foreseen_refusals()[0].too_large, 1);
  });
}

/// Two grains a rank of tensors of 3 and 9 elements, of which the first one's terms are remembered.
struct StepOfTwoTensors {
  GradientUnits units{std::vector<std::size_t>{3, 9}, std::int64_t{1} << 18};
  GradientReducer reducer;
  int rank;

  explicit StepOfTwoTensors(Communicator& comm)
      : reducer(comm, even_plan(12, 5), units, Determinism::kWorld), rank(comm.rank()) {}

  void compute(bool notes_terms) {
    reducer.begin_step(2, false, notes_terms);
    for (int grain = 0; grain < 2; ++grain) {
      std::vector<float> terms(12);
      for (std::size_t i = 0; i < terms.size(); ++i)
        terms[i] = std::ldexp(1.0F + 0.1F * static_cast<float>(i * 7 % 5), -30 - rank - grain);
      reducer.add(0, terms.size(), terms.data());
      reducer.add_sums({1.0, 0}, 1);
    }
    reducer.wait();
  }

  std::vector<float> mean() {
    std::vector<float> gradient(12);
    reducer.sums().mean(gradient.data());
    return gradient;
  }
};

TEST_P(ReducerRanksTest, SumsOfSmallTensorsAreMadeAgainInOtherUnits) {
  run_thread_ranks(GetParam(), [](Communicator& comm) {
    StepOfTwoTensors again(comm), anew(comm);
    again.compute(true);
    const std::vector<float> coarse = again.mean();
    for (StepOfTwoTensors* step : {&again, &anew})
      step->units.restore(std::vector<std::int16_t>{-60, -40}, 0);
    EXPECT_TRUE(again.reducer.sums().make_again());
    anew.compute(false);
    EXPECT_EQ(again.mean(), anew.mean());
    EXPECT_NE(again.mean(), coarse);
    EXPECT_EQ(again.reducer.sums().own_fingerprints(), anew.reducer.sums().own_fingerprints());
    const auto left = again.reducer.sums().fingerprint_that_left();
    EXPECT_EQ(left.has_value(), comm.size() > 1);
    if (left) {
      EXPECT_EQ(*left, whole(again.reducer.sums().own_fingerprints()));
    }
    EXPECT_TRUE(again.reducer.sums().make_again()) << "nothing has changed";
    EXPECT_EQ(again.mean(), anew.mean());
    again.units.restore(std::vector<std::int16_t>{-60, -60}, 0);
    EXPECT_FALSE(again.reducer.sums().make_again()) << "the second tensor is not remembered";
  });
}

using Seen = std::vector<std::array<std::size_t, 3>>;  ///< tensor, first, how many

TEST(GradientReducerTest, AllSumsAreShownOnceAndMayBeChangedBeforeTheyAreDivided) {
  run_thread_ranks(1, [](Communicator& comm) {
    const GradientUnits units(std::vector<std::size_t>{3, 9}, 1);
    GradientReducer reducer(comm, even_plan(12, 5), units, Determinism::kWorld);
    std::vector<float> gradients(12, 0.125F), mean(12);
    gradients[1] = -0.25F;
    gradients[11] = 0.5F;
    reducer.begin_step(1, false);
    reducer.add(0, 12, gradients.data());
    reducer.add_sums({1.0, 1}, 2);
    reducer.wait();
    EXPECT_EQ(reducer.sums().largest(), (std::vector<double>{0x1p38, 0x1p39}));
    const Seen pieces = {{1, 9, 3}, {1, 7, 2}, {1, 4, 3}, {0, 2, 1}, {1, 3, 1}, {0, 0, 2}};
    Seen shown, seen;
    reducer.sums().show([&](std::size_t tensor, std::size_t first, std::span<std::int64_t> sums) {
      shown.push_back({tensor, first, sums.size()});
    });
    EXPECT_EQ(shown, pieces);
    reducer.sums().mean(mean.data(),
                        [&](std::size_t tensor, std::size_t first, std::span<std::int64_t> sums) {
                          seen.push_back({tensor, first, sums.size()});
                          if (tensor == 0) std::ranges::fill(sums, std::int64_t{1} << 41);
                        });
    EXPECT_EQ(seen, pieces);
    std::vector<float> expected(12, 0.0625F);
    std::fill_n(expected.begin(), 3, 1.0F);
    expected[11] = 0.25F;
    EXPECT_EQ(mean, expected);
  });
}

TEST(GradientReducerTest, FloatSumsAreNotShown) {
  run_thread_ranks(1, [](Communicator& comm) {
    const GradientUnits units = one_tensor(2, 1);
    GradientReducer reducer(comm, even_plan(2, 1), units, Determinism::kOff);
    float gradients[] = {1, 2};
    EXPECT_THROW(reducer.sums().mean(gradients), InternalError) << "before any step";
    reducer.begin_step(1, false);
    reducer.add(0, 2, gradients);
    reducer.add_sums({1.0, 1}, 1);
    reducer.wait();
    const auto see = [](std::size_t, std::size_t, std::span<std::int64_t>) {};
    EXPECT_THROW(reducer.sums().mean(gradients, see), InternalError);
    EXPECT_THROW(reducer.sums().show(see), InternalError);
    EXPECT_THROW(reducer.sums().largest(), InternalError);
    EXPECT_THROW(reducer.sums().make_again(), InternalError);
    EXPECT_THROW(reducer.sums().foreseen_refusals(), InternalError);
  });
}

/// Rank 1 has no grain, and lets its buckets leave where those of rank 0 do.
TEST(GradientReducerTest, ARankThatPassesOverAddsNothingAndTimesAreKept) {
  run_thread_ranks(2, [](Communicator& comm) {
    const auto begun = Clock::now();
    const GradientUnits units = one_tensor(4, 1);
    GradientReducer reducer(comm, even_plan(4, 2), units, Determinism::kWorld);
    const float gradients[] = {1, 2, 3, 4};
    reducer.begin_step(1, false);
    for (const std::size_t first : {std::size_t{2}, std::size_t{0}})
      comm.rank() == 0 ? reducer.add(first, 2, gradients + first) : reducer.pass_over(first, 2);
    reducer.add_sums({}, comm.rank() == 0 ? 1 : 0);
    EXPECT_GT(reducer.wait(), 0);
    std::vector<float> mean(4);
    reducer.sums().mean(mean.data());
    EXPECT_EQ(mean, std::vector<float>(gradients, gradients + 4));
    const ReducerTimes& times = reducer.times();
    ASSERT_EQ(times.until_left.size(), 2U);
    EXPECT_GT(times.until_left[0], 0);
    EXPECT_GE(times.until_left[1], times.until_left[0]);
    EXPECT_GT(times.under_way, 0);
    EXPECT_GT(times.comparing, 0);
    EXPECT_LE(times.until_left[1] + times.comparing, seconds_since(begun));
    EXPECT_LE(times.under_way + times.comparing, seconds_since(begun));
  });
}

TEST(GradientReducerTest, SumsOfARefusedStepAreNotMadeAgain) {
  run_thread_ranks(1, [](Communicator& comm) {
    const GradientUnits units = one_tensor(2, 1);
    GradientReducer reducer(comm, even_plan(2, 1), units, Determinism::kWorld);
    const float gradients[] = {1, kNan};
    reducer.begin_step(1, false, true);
    reducer.add(0, 2, gradients);
    reducer.add_sums({1.0, 1}, 1);
    reducer.wait();
    EXPECT_FALSE(reducer.sums().make_again());
  });
}

TEST(KeptTermsTest, TheSmallestTensorsAreKeptAsFarAsThereIsRoom) {
  const auto kept = [](const std::vector<std::size_t>& sizes) {
    const GradientUnits units(sizes, std::int64_t{1} << 18);  // room for four terms of each grain
    const KeptTerms terms(units);
    std::string all;
    for (std::size_t i = 0; i < sizes.size(); ++i) all += terms.keeps(i) ? '+' : '-';
    return all;
  };
  EXPECT_EQ(kept({4, 5}), "+-");
  EXPECT_EQ(kept({3, 1, 5}), "++-");
  EXPECT_EQ(kept({4, 1, 5}), "-+-");
  EXPECT_EQ(kept({2, 2, 1}), "+-+");
}

TEST(KeptTermsTest, APieceIsNotedInEachTensorThatItTouches) {
  const GradientUnits units(std::vector<std::size_t>{2, 2}, 1);
  KeptTerms terms(units);
  terms.begin_step(true);
  EXPECT_TRUE(terms.notes());
  const float piece[] = {-3, 2}, more[] = {1};
  terms.note(1, piece);
  terms.note(3, more);
  EXPECT_EQ(terms.largest(0), 3);
  EXPECT_EQ(terms.largest(1), 2);
  ASSERT_EQ(terms.pieces(0).size(), 1U);
  EXPECT_EQ(terms.pieces(0)[0].first, 1U);
  EXPECT_EQ(terms.pieces(0)[0].terms, std::vector<float>{-3});
  ASSERT_EQ(terms.pieces(1).size(), 2U);
  EXPECT_EQ(terms.pieces(1)[0].first, 2U);
  EXPECT_EQ(terms.pieces(1)[0].terms, std::vector<float>{2});
  EXPECT_EQ(terms.pieces(1)[1].first, 3U);
  terms.begin_step(false);
  EXPECT_FALSE(terms.notes());
  EXPECT_EQ(terms.largest(0), 0);
  EXPECT_TRUE(terms.pieces(1).empty());
}

/// One rank's reducer of ten parameters, of which a step has one grain.
void expect_bug(std::size_t planned, const std::function<void(GradientReducer&)>& use) {
  const auto body = [&](Communicator& comm) {
    const GradientUnits units = one_tensor(10, 1);
    GradientReducer reducer(comm, even_plan(planned, 2), units, Determinism::kWorld);
    reducer.begin_step(1, false);
    use(reducer);
  };
  EXPECT_THROW(run_thread_ranks(1, body), InternalError);
}

TEST(GradientReducerTest, AGrainThatIsMissingOrOneTooManyIsABug) {
  const float gradients[10] = {};
  expect_bug(10, [](GradientReducer& reducer) { reducer.wait(); });
  expect_bug(10, [&](GradientReducer& reducer) {
    reducer.add(0, 10, gradients);
    reducer.add(0, 10, gradients);
  });
  expect_bug(10, [&](GradientReducer& reducer) { reducer.add(5, 6, gradients); });
}

TEST(GradientReducerTest, AStepBeginsWhenTheOneBeforeHasEnded) {
  expect_bug(10, [](GradientReducer& reducer) { reducer.begin_step(1, false); });
  run_thread_ranks(1, [](Communicator& comm) {
    const GradientUnits units = one_tensor(10, 1);
    GradientReducer reducer(comm, even_plan(10, 2), units, Determinism::kWorld);
    EXPECT_THROW(reducer.begin_step(-1, false), InternalError);
    EXPECT_THROW(reducer.wait(), InternalError);
  });
}

TEST(GradientReducerTest, PlanMustCoverTheArena) {
  expect_bug(9, [](GradientReducer&) {});
  run_thread_ranks(1, [](Communicator& comm) {
    const GradientUnits units = one_tensor(10, 1);
    for (const BucketPlan& plan :
         std::vector<BucketPlan>{{}, {.buckets = {{5, 5, 0, 0}}}, {.buckets = {{4, 5, 0, 0}}}})
      EXPECT_THROW(GradientReducer(comm, plan, units, Determinism::kWorld), InternalError);
  });
}

TEST(GradientReducerTest, ABucketLeavesBeforeTheLastGradientIsThere) {
  run_thread_ranks(1, [](Communicator& comm) {
    const float gradients[10] = {};
    const GradientUnits units = one_tensor(10, 1);
    const BucketPlan plan = even_plan(10, 2);
    GradientReducer reducer(comm, plan, units, Determinism::kWorld);
    reducer.begin_step(1, false);
    reducer.add(plan.buckets[0].offset, plan.buckets[0].size, gradients);
    EXPECT_EQ(comm.activity().status().bucket, 0);
    reducer.add(plan.buckets[1].offset, plan.buckets[1].size, gradients);
    reducer.add_sums({}, 1);
    EXPECT_EQ(comm.activity().status().bucket, 1);
    reducer.wait();
  });
}

TEST(GradientReducerTest, RankThatDiesEndsTheWait) {
  const auto body = [](Communicator& comm) {
    const float gradients[10] = {};
    if (comm.rank() == 1) return;
    const GradientUnits units = one_tensor(10, 1);
    GradientReducer reducer(comm, even_plan(10, 1), units, Determinism::kWorld);
    reducer.begin_step(1, false);
    reducer.add(0, 10, gradients);
    reducer.add_sums({}, 1);
    reducer.wait();
  };
  EXPECT_THROW(run_thread_ranks(2, body, std::chrono::milliseconds(50)), PeerLostError);
}

}  // namespace
}  // namespace lockstep::testing
