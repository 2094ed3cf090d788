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
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A rank's reducer of a few tensors, with a grain of each rank in a step.
struct SmallReducer {
  /// @param grains  of a global batch; 0: as many as ranks
  SmallReducer(Communicator& comm, const std::vector<std::size_t>& sizes, std::size_t buckets,
               Determinism determinism = Determinism::kWorld, std::int64_t grains = 0)
      : units(sizes, grains > 0 ? grains : comm.size()),
        reducer(comm, even_plan(units.parameters(), buckets), units, determinism) {}

  GradientReducer::Sums step(const std::vector<float>& gradients, bool notes_terms = false,
                             bool stop_requested = false) {
    reducer.begin_step(1, stop_requested, notes_terms);
    reducer.add(0, gradients.size(), gradients.data());
    reducer.add_sums({1.0, 1}, 1);
    waited = reducer.wait();
    return reducer.sums();
  }
  std::vector<float> mean(const GradientReducer::SeeSums& see = {}) {
    std::vector<float> gradient(units.parameters());
    reducer.sums().mean(gradient.data(), see);
    return gradient;
  }

  GradientUnits units;
  GradientReducer reducer;
  double waited = 0;
};

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
  for (const Determinism determinism : {Determinism::kWorld, Determinism::kOff}) {
    const bool exact = determinism == Determinism::kWorld;
    run_thread_ranks(1, [&](Communicator& comm) {
      SmallReducer small(comm, {1, 2, 3}, 1, determinism);
      const auto sums = small.step({kNan, kLarge, 1, -kInfinity, -kLarge, kNan});
      EXPECT_EQ(small.waited, 0) << "for itself";
      const auto refusals = sums.refusals();
      EXPECT_EQ(std::vector(refusals.begin(), refusals.end()),
                (std::vector<TensorRefusals>{{.too_large = 0, .not_finite = 1},
                                             {.too_large = exact ? 1 : 0, .not_finite = 0},
                                             {.too_large = exact ? 1 : 0, .not_finite = 2}}));
      EXPECT_EQ(sums.totals().refused, exact ? 5 : 3);
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
    SmallReducer small(comm, {1}, 1);
    for (const bool spoilt : {true, false}) {
      const auto sums = small.step({spoilt ? kNan : 1.0F}, false, spoilt);
      EXPECT_EQ(sums.totals().refused, spoilt ? 2 : 0);
      EXPECT_EQ(sums.refusals()[0].not_finite, spoilt ? 2 : 0);
      EXPECT_EQ(sums.totals().stop_requested, spoilt);
    }
  });
}

/// Refusals of a term that one rank has alone: all ranks know for which units it is too large.
TEST(GradientReducerTest, RefusalsOfOtherUnitsAreForeseenByAllRanks) {
  run_thread_ranks(3, [](Communicator& comm) {
    SmallReducer small(comm, {2}, 2);
    const auto sums = small.step({0.25F, comm.rank() == 1 ? -exact_limit(3, -57) : 0.5F}, true);
    EXPECT_EQ(sums.foreseen_refusals()[0].too_large, 0);
    small.units.restore(std::vector<std::int16_t>{-57}, 0);
    EXPECT_GT(1.0F, small.units.format(0).limit / 2);
    EXPECT_EQ(sums.foreseen_refusals()[0].too_large, 1);
  });
}

/// Two grains a rank of tensors of 3 and 9 elements, of which the first one's terms are remembered.
struct StepOfTwoTensors : SmallReducer {
  explicit StepOfTwoTensors(Communicator& comm)
      : SmallReducer(comm, {3, 9}, 5, Determinism::kWorld, std::int64_t{1} << 18), rank(comm.rank()) {}

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

  int rank;
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
    SmallReducer small(comm, {3, 9}, 5);
    std::vector<float> gradients(12, 0.125F);
    gradients[1] = -0.25F;
    gradients[11] = 0.5F;
    auto sums = small.step(gradients);
    EXPECT_EQ(sums.largest(), (std::vector<double>{0x1p38, 0x1p39}));
    const Seen pieces = {{1, 9, 3}, {1, 7, 2}, {1, 4, 3}, {0, 2, 1}, {1, 3, 1}, {0, 0, 2}};
    Seen shown, seen;
    sums.show([&](std::size_t tensor, std::size_t first, std::span<std::int64_t> some) {
      shown.push_back({tensor, first, some.size()});
    });
    EXPECT_EQ(shown, pieces);
    const auto mean = small.mean([&](std::size_t tensor, std::size_t first, std::span<std::int64_t> some) {
      seen.push_back({tensor, first, some.size()});
      if (tensor == 0) std::ranges::fill(some, std::int64_t{1} << 41);
    });
    EXPECT_EQ(seen, pieces);
    std::fill_n(gradients.begin(), 3, 2.0F);
    EXPECT_EQ(mean, gradients);
  });
}

TEST(GradientReducerTest, FloatSumsAreNotShown) {
  run_thread_ranks(1, [](Communicator& comm) {
    SmallReducer small(comm, {2}, 1, Determinism::kOff);
    EXPECT_THROW(small.mean(), InternalError) << "before any step";
    auto sums = small.step({1, 2});
    const auto see = [](std::size_t, std::size_t, std::span<std::int64_t>) {};
    EXPECT_THROW(small.mean(see), InternalError);
    EXPECT_THROW(sums.show(see), InternalError);
    EXPECT_THROW(sums.largest(), InternalError);
    EXPECT_THROW(sums.make_again(), InternalError);
    EXPECT_THROW(sums.foreseen_refusals(), InternalError);
  });
}

/// Rank 1 has no grain, and lets its buckets leave where those of rank 0 do.
TEST(GradientReducerTest, ARankThatPassesOverAddsNothingAndTimesAreKept) {
  run_thread_ranks(2, [](Communicator& comm) {
    const auto begun = Clock::now();
    SmallReducer small(comm, {4}, 2);
    GradientReducer& reducer = small.reducer;
    const std::vector<float> gradients{1, 2, 3, 4};
    reducer.begin_step(1, false);
    for (const std::size_t first : {std::size_t{2}, std::size_t{0}})
      comm.rank() == 0 ? reducer.add(first, 2, &gradients[first]) : reducer.pass_over(first, 2);
    reducer.add_sums({}, comm.rank() == 0 ? 1 : 0);
    comm.barrier();
    reducer.poll();
    EXPECT_GT(reducer.times().under_way, 0) << "seen before it is waited for";
    EXPECT_GT(reducer.wait(), 0);
    EXPECT_EQ(small.mean(), gradients);
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
    EXPECT_FALSE(SmallReducer(comm, {2}, 1).step({1, kNan}, true).make_again());
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
  EXPECT_FALSE(terms.notes());
  terms.begin_step(true);
  EXPECT_TRUE(terms.notes());
  const float piece[] = {-3, 0.5F}, more[] = {0.25F};
  terms.note(1, piece);
  terms.note(3, more);
  EXPECT_EQ(terms.largest(0), 3);
  EXPECT_EQ(terms.largest(1), 0.5F);
  ASSERT_EQ(terms.pieces(0).size(), 1U);
  EXPECT_EQ(terms.pieces(0)[0].first, 1U);
  EXPECT_EQ(terms.pieces(0)[0].terms, std::vector<float>{-3});
  ASSERT_EQ(terms.pieces(1).size(), 2U);
  EXPECT_EQ(terms.pieces(1)[0].first, 2U);
  EXPECT_EQ(terms.pieces(1)[0].terms, std::vector<float>{0.5F});
  EXPECT_EQ(terms.pieces(1)[1].first, 3U);
  terms.begin_step(false);
  EXPECT_FALSE(terms.notes());
  EXPECT_EQ(terms.largest(0), 0);
  EXPECT_TRUE(terms.pieces(1).empty());
}

/// One rank's reducer of ten parameters, of which a step has one grain.
void expect_bug(std::size_t planned, const std::function<void(GradientReducer&)>& use) {
  const auto body = [&](Communicator& comm) {
    const GradientUnits units(std::vector<std::size_t>{10}, 1);
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
    SmallReducer small(comm, {10}, 2);
    EXPECT_THROW(small.reducer.begin_step(-1, false), InternalError);
    EXPECT_THROW(small.reducer.wait(), InternalError);
  });
}

TEST(GradientReducerTest, PlanMustCoverTheArena) {
  expect_bug(9, [](GradientReducer&) {});
  run_thread_ranks(1, [](Communicator& comm) {
    const GradientUnits units(std::vector<std::size_t>{10}, 1);
    for (const BucketPlan& plan :
         std::vector<BucketPlan>{{}, {.buckets = {{5, 5, 0, 0}}}, {.buckets = {{4, 5, 0, 0}}}})
      EXPECT_THROW(GradientReducer(comm, plan, units, Determinism::kWorld), InternalError);
  });
}

/// Says that there are as many ranks.
class ManyRanks final : public test::ForwardingCommunicator {
 public:
  ManyRanks(Communicator& comm, int ranks) : ForwardingCommunicator(comm), ranks_(ranks) {}
  int size() const override { return ranks_; }

 private:
  int ranks_;
};

TEST(GradientReducerTest, FloatSumsAreOfFourThousandRanksAtMost) {
  run_thread_ranks(1, [](Communicator& comm) {
    ManyRanks most(comm, 4096), more(comm, 4097);
    EXPECT_NO_THROW(SmallReducer(most, {1}, 1, Determinism::kOff));
    EXPECT_THROW(SmallReducer(more, {1}, 1, Determinism::kOff), InternalError);
    EXPECT_NO_THROW(SmallReducer(more, {1}, 1)) << "exact sums";
  });
}

TEST(GradientReducerTest, ABucketLeavesBeforeTheLastGradientIsThere) {
  run_thread_ranks(1, [](Communicator& comm) {
    const float gradients[10] = {};
    SmallReducer small(comm, {10}, 2);
    small.reducer.begin_step(1, false);
    small.reducer.add(5, 5, gradients);
    EXPECT_EQ(comm.activity().status().bucket, 0);
    small.reducer.add(0, 5, gradients);
    small.reducer.add_sums({}, 1);
    EXPECT_EQ(comm.activity().status().bucket, 1);
    small.reducer.wait();
  });
}

TEST(GradientReducerTest, RankThatDiesEndsTheWait) {
  const auto body = [](Communicator& comm) {
    if (comm.rank() == 0) SmallReducer(comm, {10}, 1).step(std::vector<float>(10));
  };
  EXPECT_THROW(run_thread_ranks(2, body, std::chrono::milliseconds(50)), PeerLostError);
}

}  // namespace
}  // namespace lockstep::testing
