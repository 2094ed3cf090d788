// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Bucket plans: fixed sizes, and the best plan against all plans.
#include "comm/reduce/bucket_plan.hpp"

#include "comm/agreement.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/gradient_units.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {

namespace {

/// Ranges in backward order, so the first of them lies at the end of the arena.
std::vector<GradientRange> ranges_of(const std::vector<std::size_t>& sizes,
                                     const std::vector<double>& seconds = {}) {
  std::size_t end = 0;
  for (const std::size_t size : sizes) end += size;
  std::vector<GradientRange> ranges;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    end -= sizes[i];
    ranges.push_back({end, sizes[i], i < seconds.size() ? seconds[i] : 0.0});
  }
  return ranges;
}

using Sizes = std::vector<std::size_t>;
/// Offset, size, first and last range of each bucket.
using Cuts = std::vector<std::array<std::size_t, 4>>;

Cuts cuts_of(const BucketPlan& plan) {
  Cuts cuts;
  for (const Bucket& bucket : plan.buckets)
    cuts.push_back({bucket.offset, bucket.size, bucket.first_range, bucket.last_range});
  return cuts;
}

TEST(BucketPlanTest, BucketsOfASizeLeaveFromTheEndOfTheArenaWithTheirLastByte) {
  const auto cuts = [](const Sizes& sizes, std::size_t bytes_per_element, std::size_t bytes) {
    return cuts_of(plan_buckets_of_size(ranges_of(sizes), bytes_per_element, bytes));
  };
  EXPECT_EQ(cuts({1000, 10, 20}, 4, 4000), (Cuts{{30, 1000, 0, 0}, {0, 30, 1, 2}})) << "a large parameter";
  EXPECT_EQ(cuts({10, 20, 30, 40}, 4, 200), (Cuts{{40, 60, 0, 2}, {0, 40, 3, 3}})) << "small ones share one";
  EXPECT_EQ(cuts({3, 1, 5}, 4, 16), (Cuts{{5, 4, 0, 1}, {0, 5, 2, 2}})) << "not before its last byte";
  EXPECT_EQ(cuts({10, 20, 30}, 8, 1 << 20), (Cuts{{0, 60, 0, 2}})) << "a huge one holds everything";
  EXPECT_EQ(cuts({10, 20, 30}, 4, 1), (Cuts{{50, 10, 0, 0}, {30, 20, 1, 1}, {0, 30, 2, 2}}));
}

TEST(BucketPlanTest, RangesMustFollowEachOtherAndEachBucketTakesOne) {
  std::vector<GradientRange> ranges = ranges_of({10, 20});
  EXPECT_THROW(plan_buckets_auto(ranges, 8, {}, 3), InternalError);
  ++ranges[0].offset;
  EXPECT_THROW(plan_buckets_of_size(ranges, 4, 1), InternalError);
  EXPECT_THROW(plan_buckets_auto(ranges, 8, {}), InternalError);
  EXPECT_TRUE(plan_buckets_auto({}, 8, {}).buckets.empty());
  EXPECT_EQ(cuts_of(plan_buckets_auto(ranges_of({10, 20, 30}), 8, {}, 2)),
            (Cuts{{50, 10, 0, 0}, {0, 50, 1, 2}}))
      << "of equal plans the one whose last bucket is the largest";
}

TEST(BucketPlanTest, LongBackwardAfterALargeLayerHidesIt) {
  const std::vector<LatencyPoint> latency{{1000, 10e-6}, {100000, 100e-6}};
  const BucketPlan plan = plan_buckets_auto(ranges_of({10000, 100}, {1e-3, 0}), 8, latency);
  EXPECT_EQ(cuts_of(plan), (Cuts{{100, 10000, 0, 0}, {0, 100, 1, 1}}));
  EXPECT_NEAR(plan.exposed_seconds, 10e-6, 1e-9);
}

/// Exposed seconds of the plan whose bucket ends are the set bits of `cuts`, straight from the model's words.
double exposed_of(const std::vector<GradientRange>& ranges, unsigned cuts,
                  const std::vector<LatencyPoint>& latency) {
  double backward = 0, network_free = 0;
  std::size_t elements = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    elements += ranges[i].size;
    if (i + 1 == ranges.size() || ((cuts >> i) & 1U) != 0) {
      network_free = std::max(network_free, backward) + latency_seconds(latency, elements * 8);
      elements = 0;
    }
    backward += ranges[i].backward_seconds;
  }
  return std::max(0.0, network_free - backward);
}

TEST(BucketPlanTest, PlanOfSoManyBucketsIsTheBestOfThose) {
  const auto ranges = ranges_of({500, 5000, 20, 3000}, {1e-5, 4e-5, 1e-5, 0});
  const std::vector<LatencyPoint> latency{{1000, 5e-6}, {100000, 60e-6}};
  for (std::size_t buckets = 1; buckets <= 4; ++buckets) {
    const BucketPlan plan = plan_buckets_auto(ranges, 8, latency, buckets);
    ASSERT_EQ(plan.buckets.size(), buckets);
    double best = 1;
    for (unsigned cuts = 0; cuts < 8; ++cuts) {
      if (static_cast<std::size_t>(std::popcount(cuts)) + 1 == buckets)
        best = std::min(best, exposed_of(ranges, cuts, latency));
    }
    EXPECT_NEAR(plan.exposed_seconds, best, 1e-12) << buckets;
  }
}

TEST(BucketPlanTest, AutomaticPlanIsTheBestOfAllPlans) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::size_t count = 1 + random() % 9;
    Sizes sizes;
    std::vector<double> seconds;
    for (std::size_t i = 0; i < count; ++i) {
      sizes.push_back(1 + random() % 20000);
      seconds.push_back(1e-6 * (random() % 100));
    }
    const auto ranges = ranges_of(sizes, seconds);
    const double base = 1e-6 * (1 + random() % 40);
    const std::vector<LatencyPoint> latency{
        {1024, base}, {65536, base + 1e-6 * (random() % 60)}, {262144, 2 * base + 1e-4}};

    double best = 1;
    int fewest = 0;
    for (unsigned cuts = 0; cuts < 1U << (count - 1); ++cuts) {
      const double exposed = exposed_of(ranges, cuts, latency);
      const int buckets = 1 + std::popcount(cuts);
      if (exposed < best - 1e-12 || (exposed < best + 1e-12 && buckets < fewest)) fewest = buckets;
      best = std::min(best, exposed);
    }
    const BucketPlan plan = plan_buckets_auto(ranges, 8, latency);
    unsigned cuts = 0;
    for (const Bucket& bucket : plan.buckets) cuts |= 1U << bucket.last_range;
    EXPECT_NEAR(plan.exposed_seconds, best, 1e-11) << "seed " << seed;
    EXPECT_NEAR(exposed_of(ranges, cuts, latency), best, 1e-11) << "seed " << seed;
    EXPECT_EQ(static_cast<int>(plan.buckets.size()), fewest) << "seed " << seed;
  }
}

TEST(BucketPlanTest, DescriptionNamesSizesAndForecastTheWait) {
  BucketPlan plan;
  plan.buckets = {{260, 21580, 0, 1}, {0, 260, 2, 2}};
  EXPECT_EQ(plan.describe(), "2 buckets: 21,580 + 260 parameters");
  EXPECT_EQ(plan.forecast(), "");
  plan.exposed_seconds = 11e-6;
  EXPECT_EQ(plan.forecast(), "expected wait for gradients after the backward pass: 11 us a step");
  plan.buckets = {{0, 1234567, 0, 0}};
  EXPECT_EQ(plan.describe(), "1 bucket: 1,234,567 parameters");
  EXPECT_EQ(BucketPlan().describe(), "0 buckets: 0 parameters");
}

TEST(LatencyTest, CurveIsLinearBetweenItsPointsAndBeyondThem) {
  const std::vector<LatencyPoint> points{{1000, 1e-6}, {2000, 3e-6}, {4000, 4e-6}};
  EXPECT_DOUBLE_EQ(latency_seconds(points, 10), 1e-6);
  EXPECT_DOUBLE_EQ(latency_seconds(points, 1500), 2e-6);
  EXPECT_DOUBLE_EQ(latency_seconds(points, 3000), 3.5e-6);
  EXPECT_DOUBLE_EQ(latency_seconds(points, 6000), 5e-6);
  EXPECT_EQ(latency_seconds({}, 6000), 0);
  EXPECT_EQ(latency_seconds(std::span(points).first(1), 6000), 1e-6);
  EXPECT_EQ(latency_seconds(std::vector<LatencyPoint>{{1000, 3e-6}, {2000, 1e-6}}, 6000), 0)
      << "not negative";
}

TEST(LatencyTest, SizesGrowFourfoldUpToTheLargest) {
  EXPECT_EQ(latency_sizes(5000), (Sizes{1024, 4096, 5000}));
  EXPECT_EQ(latency_sizes(4096), (Sizes{1024, 4096}));
  EXPECT_EQ(latency_sizes(1024), Sizes{1024});
  EXPECT_EQ(latency_sizes(5), Sizes{1024});
}

/// A round is a broadcast and a sum of each size; two broadcasts more end them.
TEST(LatencyTest, IsMeasuredInThreeToTwentyRounds) {
  run_thread_ranks(2, [](Communicator& comm) {
    const auto waits = [&](std::chrono::duration<double> budget) {
      const std::uint64_t before = comm.activity().status().collective;
      const auto points = measure_latency(comm, 5000, budget);
      const std::uint64_t waited = comm.activity().status().collective - before;
      const auto all = gather(comm, std::span<const LatencyPoint>(points));
      Sizes bytes;
      for (std::size_t i = 0; i < points.size(); ++i) {
        bytes.push_back(points[i].bytes);
        EXPECT_GT(points[i].seconds, 0);
        EXPECT_LT(points[i].seconds, 100);
        EXPECT_EQ(points[i].seconds, all[0][i].seconds) << "rank 0's";
      }
      EXPECT_EQ(bytes, latency_sizes(5000));
      return waited;
    };
    EXPECT_EQ(waits(std::chrono::seconds(0)), 3U * 4 + 2);
    EXPECT_EQ(waits(std::chrono::hours(1)), 20U * 4 + 2);
  });
  EXPECT_TRUE(measure_latency(*make_lone_rank(), 5000).empty());
}

// Units follow gradients of any size, settle, and are asked at the same steps before and after a resume.

GradientUnits one_tensor(std::int64_t grains = 2) {
  return {Sizes{5}, grains};
}

/// Raises and refines as a step does whose largest term is `term` in each of two grains.
/// @returns how often the step had to be repeated
int settle(GradientUnits& units, float term, std::int64_t step = 0) {
  int repeats = 0;
  bool raised = false;
  for (;; ++repeats) {
    EXPECT_LT(repeats, 30) << term;
    if (repeats >= 30) return repeats;
    if (!(std::abs(term) < units.format(0).limit)) {
      units.raise(std::vector<TensorRefusals>{{.too_large = 1}}, step);
      raised = true;
      continue;
    }
    const double sum = std::nearbyint(2 * double{term} * units.format(0).scale);
    if (raised || !units.refine(std::vector<double>{std::abs(sum)}, step)) return repeats;
  }
}

TEST(GradientUnitsTest, TensorsAreFoundByElement) {
  const GradientUnits units(Sizes{3, 1, 10}, 2);
  EXPECT_EQ(units.tensors(), 3U);
  EXPECT_EQ(units.parameters(), 14U);
  const std::size_t expected[] = {0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
  for (std::size_t i = 0; i < 14; ++i) EXPECT_EQ(units.tensor_at(i), expected[i]) << i;
  EXPECT_EQ(units.begin(2), 4U);
  EXPECT_EQ(units.end(2), 14U);
  EXPECT_EQ(units.begin(0), 0U);
  EXPECT_THROW(static_cast<void>(units.tensor_at(14)), InternalError);
  EXPECT_THROW(GradientUnits(Sizes{}, 2), InternalError);
}

TEST(GradientUnitsTest, ListsOfAnotherLengthAreABug) {
  GradientUnits units(Sizes{3, 1}, 2);
  EXPECT_THROW(units.restore(std::vector<std::int16_t>(1), 0), InternalError);
  EXPECT_THROW(units.raise(std::vector<TensorRefusals>(3), 0), InternalError);
  EXPECT_THROW(units.refine(std::vector<double>(1), 0), InternalError);
}

TEST(GradientUnitsTest, SumsOfFewerBitsThanAFloatAreRefined) {
  GradientUnits units = one_tensor();
  EXPECT_FALSE(units.refine(std::vector<double>{0x1p24}, 7));
  EXPECT_EQ(units.changed_at(), 0);
  EXPECT_TRUE(units.refine(std::vector<double>{0x1p24 - 1}, 8));
  EXPECT_EQ(units.exponents()[0], -57) << "2^23 becomes 2^40";
  units = one_tensor();
  EXPECT_TRUE(units.refine(std::vector<double>{0}, 9));
  EXPECT_EQ(units.exponents()[0], -104);
  EXPECT_EQ(units.changed_at(), 9);
  units = one_tensor(1 << 24);  // the limit has 34 bits, 6 of which are room to grow
  EXPECT_FALSE(units.refine(std::vector<double>{0x1p12}, 7));
  EXPECT_TRUE(units.refine(std::vector<double>{0x1p8}, 8));
  EXPECT_EQ(units.exponents()[0], -60) << "2^8 becomes 2^28";
  EXPECT_EQ(largest_magnitude(std::vector<std::int64_t>{0, 0}), 0);
  EXPECT_EQ(largest_magnitude(std::vector<std::int64_t>{-5, 3}), 5);
  EXPECT_EQ(largest_magnitude(std::vector<std::int64_t>{-5, 7, 6}), 7);
}

TEST(GradientUnitsTest, GradientsOfUsualSizeChangeNothing) {
  for (const float term : {1e-4F, 1.0F, 1000.0F, 1e5F}) {
    GradientUnits units = one_tensor();
    EXPECT_EQ(settle(units, term), 0) << term;
    EXPECT_EQ(units.exponents()[0], kExactExponent);
    EXPECT_EQ(units.changed_at(), 0);
  }
}

TEST(GradientUnitsTest, EverySizeSettlesWithABitOfEveryDigit) {
  for (const std::int64_t grains : {1, 2, 64, 60000, 1 << 24}) {
    for (int bit = -149; bit < 128; ++bit) {
      GradientUnits units = one_tensor(grains);
      const float term = std::ldexp(1.0F, bit);
      EXPECT_LE(settle(units, term), 10) << "2^" << bit << ", " << grains << " grains";
      const ExactFormat format = units.format(0);
      EXPECT_LT(term, format.limit) << "2^" << bit << ", " << grains << " grains";
      const int bits = std::min(22, std::ilogb(double{format.limit} * format.scale) - 24);
      const bool all_digits =
          units.exponents()[0] == kLeastExactExponent || double{term} * format.scale >= std::ldexp(1.0, bits);
      EXPECT_TRUE(all_digits) << "2^" << bit << ", " << grains << " grains";
    }
  }
}

TEST(GradientUnitsTest, GradientsThatAreZeroEndAtTheFinestUnit) {
  GradientUnits units = one_tensor();
  EXPECT_EQ(settle(units, 0), 2);
  EXPECT_EQ(units.exponents()[0], kLeastExactExponent);
  EXPECT_EQ(settle(units, 0), 0) << "and stay";
  EXPECT_LE(settle(units, 1.0F), 10) << "and come back";
}

TEST(GradientUnitsTest, OnlyTensorsThatNeedItChange) {
  GradientUnits units(Sizes{5, 5, 5}, 2);
  const auto exponents = [&] { return std::vector(units.exponents().begin(), units.exponents().end()); };
  units.raise(std::vector<TensorRefusals>{{}, {.too_large = 7}, {}}, 3);
  EXPECT_EQ(exponents(), (std::vector<std::int16_t>{-40, -24, -40}));
  EXPECT_TRUE(units.refine(std::vector<double>{0x1p30, 0x1p30, 0x1p10}, 4));
  EXPECT_EQ(exponents(), (std::vector<std::int16_t>{-40, -24, -70}));
  EXPECT_EQ(units.changed_at(), 4);
}

TEST(GradientUnitsTest, LargestUnitTakesEveryFloat) {
  GradientUnits units = one_tensor(1000);
  for (int i = 0; i < 20; ++i) units.raise(std::vector<TensorRefusals>{{.too_large = 1}}, 0);
  EXPECT_EQ(units.format(0).limit, std::numeric_limits<float>::infinity());
  EXPECT_LT(double{std::numeric_limits<float>::max()} * units.format(0).scale * 1000 * kPartialSums, 0x1p62);
}

TEST(GradientUnitsTest, IsAskedSoonAfterAChangeAndSeldomLater) {
  GradientUnits units = one_tensor();
  const auto asked = [&](std::int64_t from) {
    std::set<std::int64_t> steps;
    for (std::int64_t step = from; step < from + 3000; ++step)
      if (units.is_refined_at(step)) steps.insert(step - from);
    return steps;
  };
  EXPECT_EQ(asked(0), (std::set<std::int64_t>{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}));
  units.raise(std::vector<TensorRefusals>{{.too_large = 1}}, 5120);
  EXPECT_EQ(asked(5120), (std::set<std::int64_t>{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}));
  GradientUnits resumed = one_tensor();
  resumed.restore(units.exponents(), units.changed_at());
  for (std::int64_t step = 5120; step < 9000; ++step)
    ASSERT_EQ(resumed.is_refined_at(step), units.is_refined_at(step)) << step;
}

// The trailing elements survive fp32 sums over any number of ranks.

TEST(StepCountersTest, FloatElementsCarryLargeAndNegativeNumbers) {
  const StepCounters counters{{INT64_MAX, INT64_MIN, -1, 0, 123456789012345}};
  std::vector<float> elements(kCounterFloats);
  encode(counters, elements);
  EXPECT_EQ(decode(std::span<const float>(elements)).values, counters.values);
}

TEST(StepCountersTest, FloatSumsOverTheMostRanksAreExact) {
  const StepCounters one{{999, -(std::int64_t{1} << 48) - 4095, 4095, 1, 16777215}};
  std::vector<float> elements(kCounterFloats), sums(kCounterFloats);
  encode(one, elements);
  for (std::size_t rank = 0; rank < kMostRanksInFp32; ++rank) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += elements[i];
  }
  const StepCounters all = decode(std::span<const float>(sums));
  for (std::size_t i = 0; i < one.values.size(); ++i) {
    EXPECT_EQ(all.values[i], one.values[i] * static_cast<std::int64_t>(kMostRanksInFp32));
  }
}

TEST(StepCountersTest, LossThatIsNotFiniteIsRefusedAndNotAdded) {
  StepCounters expected;
  expected.values[kSamples] = 7;
  expected.values[kCorrect] = 3;
  expected.values[kRefused] = 2;
  expected.values[kLoss] = std::int64_t{5} << 31;
  EXPECT_EQ(loss_counters({2.5, 3, 2}, 7, 10).values, expected.values);
  expected.values[kRefused] = 3;
  expected.values[kLoss] = 0;
  EXPECT_EQ(loss_counters({std::numeric_limits<double>::infinity(), 3, 2}, 7, 10).values, expected.values);
}

TEST(StepCountersTest, LossIsScaledBack) {
  StepCounters counters;
  counters.values[kLoss] = std::int64_t{5} << 31;
  EXPECT_EQ(counters.totals().loss(), 2.5);
  counters.values[kLoss + 3] = 1;
  EXPECT_EQ(counters.totals().loss(), 0x1p64);  // and 2.5, which is beyond double
}

}  // namespace

}  // namespace lockstep
