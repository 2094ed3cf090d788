// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Global batches, grains and ranks.
#include "data/sampler.hpp"

#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::sampler_test {

namespace {

using Options = DistributedSampler::Options;
using Order = std::vector<std::int32_t>;

/// Labels of five classes of 2,000 to 572 samples; a sixth to tenth have none.
const std::vector<std::int32_t> kUnevenLabels = [] {
  std::vector<std::int32_t> labels;
  for (std::int32_t i = 0; i < 6000; ++i) labels.push_back(i % 3 == 0 ? 9 : i * i % 7);
  return labels;
}();

/// Jobs with even and uneven tails, odd grains, and tails with fewer grains than ranks.
const std::vector<Options> kJobs = {
    {.samples = 60000, .global_batch = 7000, .grain = 64},
    {.samples = 1000, .global_batch = 512, .grain = 64},
    {.samples = 1001, .global_batch = 100, .grain = 7},
    {.samples = 700, .global_batch = 700, .grain = 100},
    {.samples = 449, .global_batch = 448, .grain = 64},
    {.samples = 50, .global_batch = 1000, .grain = 3},
    {.samples = 1003, .global_batch = 100, .grain = 7, .window = 90},
    {.samples = 6000, .global_batch = 700, .grain = 50, .balanced_labels = kUnevenLabels}};

Order order_of(const Options& job, std::int64_t epoch) {
  if (!job.balanced_labels.empty()) return balanced_order(job.balanced_labels, job.seed, epoch);
  return job.window > 0 ? windowed_order(job.samples, job.window, job.seed, epoch)
                        : epoch_permutation(job.samples, job.seed, epoch);
}

std::vector<DistributedSampler> all_ranks(Options options, int world_size, std::int64_t epoch) {
  std::vector<DistributedSampler> samplers;
  options.world_size = world_size;
  for (options.rank = 0; options.rank < world_size; ++options.rank) {
    samplers.emplace_back(options);
    samplers.back().set_epoch(epoch);
  }
  return samplers;
}

/// Samples of all ranks in a step, in rank order: grain after grain.
Order samples_of_step(const std::vector<DistributedSampler>& ranks, std::int64_t step, int grain_samples) {
  Order result;
  std::int64_t grains = 0;
  for (const DistributedSampler& rank : ranks)
    for (const Grain& grain : rank.local_grains(step)) {
      EXPECT_EQ(grain.first, std::ssize(result));
      EXPECT_EQ(grain.first, grains++ * grain_samples);
      const auto indices = rank.indices(step, grain);
      EXPECT_EQ(static_cast<int>(indices.size()), grain.samples);
      result.insert(result.end(), indices.begin(), indices.end());
    }
  EXPECT_EQ(grains, ranks[0].batch_grains(step));
  return result;
}

/// A window has neighbours only, whichever they are, and each sample comes once.
TEST(SamplerTest, AWindowKeepsNeighboursTogether) {
  constexpr std::int64_t kSamples = 1003, kWindow = 100;
  Order seen_first;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    const Order order = windowed_order(kSamples, kWindow, 7, epoch);
    Order sorted = order, all(static_cast<std::size_t>(kSamples));
    std::iota(all.begin(), all.end(), 0);
    std::ranges::sort(sorted);
    ASSERT_EQ(sorted, all);
    std::int64_t far = 0, in_order = 0;
    for (std::size_t i = 1; i < order.size(); ++i) {
      far += std::abs(order[i] - order[i - 1]) >= kWindow ? 1 : 0;
      in_order += order[i] == order[i - 1] + 1 ? 1 : 0;
    }
    EXPECT_LE(far, 11) << "more jumps than windows";
    EXPECT_GE(far, 5) << "windows in their order";
    EXPECT_LE(in_order, 40) << "samples in their order";
    seen_first.push_back(order.front());
  }
  std::ranges::sort(seen_first);
  EXPECT_GT(std::unique(seen_first.begin(), seen_first.end()) - seen_first.begin(), 15);
  EXPECT_EQ(windowed_order(60, 60, 7, 3), epoch_permutation(60, 7, 3));
  EXPECT_EQ(windowed_order(10, 4, 1234, 0), (Order{0, 1, 8, 9, 6, 7, 3, 2, 5, 4}));
  EXPECT_EQ(windowed_order(10, 4, 1234, 1), (Order{6, 4, 3, 5, 8, 7, 9, 2, 1, 0}));
}

TEST(SamplerTest, BatchesAreThePiecesOfThePermutationForAnyNumberOfRanks) {
  using Split = DistributedSampler::Split;
  for (Options job : kJobs) {
    const Order order = order_of(job, 5);
    for (const Split split : {Options{}.split, Split::kChunk}) {
      job.split = split;
      for (const int world_size : {1, 2, 3, 7}) {
        const auto ranks = all_ranks(job, world_size, 5);
        auto next = order.begin();
        for (std::int64_t step = 0; step < ranks[0].steps_per_epoch(); ++step) {
          ASSERT_LE(ranks[0].batch_samples(step), order.end() - next);
          const auto end = next + ranks[0].batch_samples(step);
          EXPECT_EQ(samples_of_step(ranks, step, job.grain), Order(next, end));
          next = end;
        }
        EXPECT_EQ(next, order.end()) << job.samples << " samples, " << world_size << " ranks";
        EXPECT_TRUE(std::ranges::equal(ranks[0].order(), order));
      }
    }
  }
}

TEST(SamplerTest, AFullBatchIsSpreadEvenly) {
  for (const auto& rank : all_ranks({.samples = 60000, .global_batch = 1000, .grain = 10}, 7, 0)) {
    const std::size_t grains = rank.local_grains(0).size();
    EXPECT_TRUE(grains == 14 || grains == 15) << grains;
  }
}

TEST(SamplerTest, WithoutShufflingTheOrderIsThatOfTheFile) {
  DistributedSampler sampler({.samples = 100, .global_batch = 30, .grain = 30, .shuffle = false});
  sampler.set_epoch(4);
  const auto indices = sampler.indices(2, {5, 10});
  EXPECT_EQ(indices.front(), 65);
  EXPECT_EQ(indices.back(), 74);
}

TEST(SamplerTest, EachEpochHasItsOwnOrderAndComingBackRestoresIt) {
  DistributedSampler sampler({.samples = 1000, .global_batch = 64});
  const auto first_batch = [&](std::int64_t epoch) {
    sampler.set_epoch(epoch);
    const auto indices = sampler.indices(0, {0, 64});
    return Order(indices.begin(), indices.end());
  };
  const Order zero = first_batch(0);
  EXPECT_NE(first_batch(1), zero);
  EXPECT_EQ(first_batch(0), zero);
}

TEST(SamplerTest, ARankWithoutWorkIsAnErrorThatNamesTheLargestNumberOfRanks) {
  const Options options{.samples = 60000, .global_batch = 150, .grain = 64, .world_size = 4};
  expect_error<ConfigError>([&] { DistributedSampler{options}; },
                            {"batch of 150 samples", "grains of 64", "3 ranks at most", "4 were started",
                             "; add grain=32, or add global batch=256, or start no more than 3"});
  expect_error<ConfigError>(
      [] { DistributedSampler({.samples = 20, .global_batch = 20, .grain = 16, .world_size = 4}); },
      {"has work for 2 ranks at most, and 4 were started; add grain=5, or start no more than 2"});
  EXPECT_NO_THROW(DistributedSampler({.samples = 60000, .global_batch = 150, .grain = 64, .world_size = 3}));
}

/// The advice must hold: global_batch is not a key of such a job, and fewer ranks have fewer samples.
TEST(SamplerTest, WithABatchForEachRankTheAdviceIsAboutThatBatch) {
  const DistributedSampler::Options options{
      .samples = 60000, .global_batch = 5 * 40, .grain = 64, .world_size = 5, .per_rank_batch = 40};
  const auto message = message_of<ConfigError>([&] { DistributedSampler{options}; });
  EXPECT_TRUE(contains(message, {"; add grain=32, or add batch of each rank=64, or start no more than 2"}));
  EXPECT_EQ(message.find("global batch="), std::string::npos) << message;
  EXPECT_NO_THROW(
      DistributedSampler({.samples = 60000, .global_batch = 2 * 40, .grain = 64, .world_size = 2}));
  EXPECT_THROW(DistributedSampler({.samples = 60000, .global_batch = 3 * 40, .grain = 64, .world_size = 3}),
               ConfigError);
}

TEST(SamplerTest, ABatchLargerThanTheSetIsJudgedByTheSet) {
  expect_error<ConfigError>(
      [] { DistributedSampler({.samples = 64, .global_batch = 4096, .grain = 64, .world_size = 2}); },
      {"batch of 64 samples", "1 rank at most"});
}

TEST(SamplerTest, SizesThatAreNotPositiveAreConfigErrors) {
  const auto fails = [](const Options& options, const char* part) {
    expect_error<ConfigError>([&] { DistributedSampler{options}; }, {part});
  };
  fails({.samples = 0, .global_batch = 10}, "0 samples");
  fails({.samples = std::int64_t{1} << 31, .global_batch = 10}, "2147483648 samples");
  fails({.samples = 10, .global_batch = 0}, "a global batch of 0");
  fails({.samples = 10, .global_batch = -5}, "a global batch of -5");
  fails({.samples = 10, .global_batch = 10, .grain = 0}, "a grain of 0");
}

TEST(SamplerTest, AStepOrGrainOutsideTheEpochIsABug) {
  DistributedSampler sampler({.samples = 100, .global_batch = 64});
  EXPECT_THROW(sampler.indices(0, {0, 64}), InternalError);  // before set_epoch
  sampler.set_epoch(0);
  EXPECT_THROW(sampler.local_grains(2), InternalError);
  EXPECT_THROW(sampler.local_grains(-1), InternalError);
  EXPECT_THROW(sampler.indices(1, {0, 64}), InternalError);
  EXPECT_THROW(sampler.indices(0, {-1, 1}), InternalError);
  EXPECT_THROW(sampler.indices(0, {1, -1}), InternalError);
}

TEST(SamplerTest, OptionsThatContradictEachOtherAreABug) {
  const Order labels = {0, 1, 0};
  for (const Options& options :
       {Options{.samples = 3, .global_batch = 3, .rank = 1},
        {.samples = 3, .global_batch = 3, .rank = -1},
        {.samples = 3, .global_batch = 3, .world_size = 0},
        {.samples = 4, .global_batch = 3, .balanced_labels = labels},
        {.samples = 3, .global_batch = 3, .shuffle = false, .balanced_labels = labels},
        {.samples = 3, .global_batch = 3, .window = 1, .balanced_labels = labels},
        {.samples = 3, .global_batch = 3, .shuffle = false, .window = 1},
        {.samples = 3, .global_batch = 3, .window = -1}})
    EXPECT_THROW(DistributedSampler{options}, InternalError) << options.window << ", " << options.rank;
  EXPECT_THROW(file_order(-1), InternalError);
  EXPECT_THROW(epoch_permutation(3, 1, -1), InternalError);
  EXPECT_THROW(epoch_permutation(3, 1, std::int64_t{1} << 56), InternalError);
  EXPECT_THROW(windowed_order(3, 0, 1, 0), InternalError);
  EXPECT_THROW(balanced_order(labels, 1, -1), InternalError);
  EXPECT_THROW(balanced_order({}, 1, 0), InternalError);
  for (const std::int32_t label : {-1, 1 << 24})
    EXPECT_THROW(balanced_order(Order{label}, 1, 0), InternalError);
}

TEST(SamplerTest, TheMostGrainsOfARankAreThoseOfItsLargestStep) {
  for (Options job : kJobs)
    for (job.rank = 0, job.world_size = 3; job.rank < 3; ++job.rank) {
      const DistributedSampler sampler(job);
      std::size_t most = 0;
      for (std::int64_t step = 0; step < sampler.steps_per_epoch(); ++step)
        most = std::max(most, sampler.local_grains(step).size());
      EXPECT_EQ(sampler.most_local_grains(), static_cast<int>(most));
      EXPECT_EQ(sampler.place(sampler.steps_per_epoch() - 1, {2, 1}),
                (sampler.steps_per_epoch() - 1) * job.global_batch + 2);
    }
}

/// torch.arange(samples).chunk(ranks), in samples a rank.
std::vector<std::int64_t> chunks(std::int64_t samples, int ranks, int grain = 1) {
  std::vector<std::int64_t> sizes;
  Options options{.samples = samples, .global_batch = samples, .grain = grain};
  options.split = DistributedSampler::Split::kChunk;
  for (const auto& rank : all_ranks(options, ranks, 0)) {
    std::int64_t size = 0;
    for (const Grain& grain_of_rank : rank.local_grains(0)) size += grain_of_rank.samples;
    sizes.push_back(size);
  }
  return sizes;
}

TEST(SamplerTest, ChunksAreThoseOfTorch) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(chunks(30, 2), (Sizes{15, 15}));
  EXPECT_EQ(chunks(30, 8), (Sizes{4, 4, 4, 4, 4, 4, 4, 2}));
  EXPECT_EQ(chunks(10, 3), (Sizes{4, 4, 2}));
  EXPECT_EQ(chunks(10, 8), (Sizes{2, 2, 2, 2, 2, 0, 0, 0}));
  EXPECT_EQ(chunks(70, 3, 16), (Sizes{32, 32, 6}));
}

// The order of an epoch.

/// FNV-1a over the little-endian bytes.
std::uint64_t hash(const Order& order) {
  std::uint64_t value = 0xCBF29CE484222325U;
  for (const std::int32_t entry : order)
    for (int shift = 0; shift < 32; shift += 8)
      value = (value ^ (static_cast<std::uint32_t>(entry) >> shift & 0xFFU)) * 0x100000001B3U;
  return value;
}

// The numbers are from an independent implementation (Python integers) of what the header says. They may
// never change: every published weights hash depends on them.
TEST(PermutationTest, TheOrderIsPinned) {
  EXPECT_EQ(epoch_permutation(0, 1234, 0), Order{});
  EXPECT_EQ(epoch_permutation(1, 1234, 0), Order{0});
  EXPECT_EQ(epoch_permutation(10, 1234, 0), (Order{3, 8, 7, 9, 4, 5, 2, 6, 0, 1}));
  EXPECT_EQ(epoch_permutation(10, 1234, 1), (Order{8, 1, 0, 2, 6, 5, 3, 9, 4, 7}));
  EXPECT_EQ(hash(epoch_permutation(60000, 1234, 0)), 0x476EDB6CD1455FA1U);
  EXPECT_EQ(hash(epoch_permutation(60000, 1234, 1)), 0xD0B537C490FAE4E5U);
}

// Draws again the two words of this epoch that would make small numbers likelier, 3140 and
// 36953.
TEST(PermutationTest, WordsThatWouldMakeSmallNumbersLikelierAreDrawnAgain) {
  EXPECT_EQ(hash(epoch_permutation(60000, 1234, 14)), 0xBA30BF70C928AF05U);
}

TEST(PermutationTest, AllBitsOfSeedAndEpochCount) {
  EXPECT_EQ(hash(epoch_permutation(60000, 0xFEDCBA9876543210U, (std::int64_t{5} << 24) + 7)),
            0x12EFBC82BF5BAE8DU);
  EXPECT_NE(epoch_permutation(100, 1, 7), epoch_permutation(100, 1, (1 << 24) + 7));
  EXPECT_NE(epoch_permutation(100, 1, 7), epoch_permutation(100, (std::uint64_t{1} << 32) + 1, 7));
}

TEST(PermutationTest, AllOrdersOfFourAreEquallyLikely) {
  constexpr int kEpochs = 24000, kExpected = 1000;
  std::map<Order, int> seen;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++seen[epoch_permutation(4, 99, epoch)];
  ASSERT_EQ(seen.size(), 24U);
  double chi_square = 0;
  for (const auto& [order, count] : seen)
    chi_square += (count - kExpected) * (count - kExpected) / double{kExpected};
  EXPECT_LT(chi_square, 49.7);  // 23 degrees of freedom: 0.1 % of fair shuffles are above
}

// An order that has each class equally often.

// As with TheOrderIsPinned.
TEST(BalancedOrderTest, IsPinned) {
  const std::vector<std::int32_t> labels = {0, 0, 0, 0, 0, 0, 0, 2, 2, 5};
  EXPECT_EQ(balanced_order(labels, 1234, 0), (Order{1, 9, 8, 5, 8, 9, 9, 0, 4, 7}));
  EXPECT_EQ(balanced_order(labels, 1234, 1), (Order{3, 9, 7, 6, 8, 2, 7, 8, 9, 9}));
  EXPECT_EQ(balanced_order(labels, 1234, 2), (Order{9, 4, 6, 7, 9, 8, 9, 9, 0, 7}));
  EXPECT_EQ(hash(balanced_order(kUnevenLabels, 1234, 0)), 0xED6B47A66FECE513U);
  EXPECT_EQ(hash(balanced_order(kUnevenLabels, 1234, 5)), 0x7D36ADDCA2056F70U);
  EXPECT_EQ(hash(balanced_order(labels, 0xFEDCBA9876543210U, (std::int64_t{5} << 24) + 7)),
            0xE7014E74652BBB4BU);
}

/// The largest difference between two of these numbers.
int spread_of(const std::vector<int>& counts) {
  const auto [least, most] = std::ranges::minmax(counts);
  return most - least;
}

std::vector<int> numbers_of(const std::map<std::int32_t, int>& counts) {
  std::vector<int> numbers;
  for (const auto& [label, count] : counts) numbers.push_back(count);
  return numbers;
}

/// In one epoch, and in all of them together.
TEST(BalancedOrderTest, ClassesAndTheSamplesOfAClassDifferByOneDrawAtMost) {
  std::vector<std::int32_t> labels = kUnevenLabels;
  labels.resize(5998);  // no multiple of the classes
  std::vector<int> of_sample_ever(labels.size());
  std::map<std::int32_t, int> of_class_ever;
  for (int epoch = 0; epoch < 9; ++epoch) {
    std::vector<int> of_sample(labels.size());
    std::map<std::int32_t, int> of_class;
    for (const std::int32_t sample : balanced_order(labels, 7, epoch)) {
      const auto i = static_cast<std::size_t>(sample);
      ++of_sample[i], ++of_sample_ever[i], ++of_class[labels[i]], ++of_class_ever[labels[i]];
    }
    ASSERT_EQ(of_class.size(), 5U);
    EXPECT_EQ(spread_of(numbers_of(of_class)), 1);
    EXPECT_LE(spread_of(numbers_of(of_class_ever)), 1);
    for (const auto& [label, count] : of_class) {
      std::vector<int> now, ever;
      for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] == label) now.push_back(of_sample[i]), ever.push_back(of_sample_ever[i]);
      EXPECT_LE(spread_of(now), 2) << label;  // at the end of one round, and at the beginning of the next
      EXPECT_LE(spread_of(ever), 1) << label;
    }
  }
}

TEST(BalancedOrderTest, MoreClassesThanSamplesOfAnEpochAndOneClassAloneAreFine) {
  const std::vector<std::int32_t> each_its_own = {4, 1, 3, 0}, one = {6, 6, 6};
  for (int epoch = 0; epoch < 3; ++epoch) {
    Order order = balanced_order(each_its_own, 1, epoch);
    std::ranges::sort(order);
    EXPECT_EQ(order, (Order{0, 1, 2, 3}));
    order = balanced_order(one, 1, epoch);
    std::ranges::sort(order);
    EXPECT_EQ(order, (Order{0, 1, 2}));
  }
}

}  // namespace

}  // namespace lockstep::sampler_test
