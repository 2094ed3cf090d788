// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which samples are held out, and that all others, and only they, are left to train on.
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "tests/data/idx_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace lockstep::hold_out_test {
namespace {

using test::expect_error;
using test::idx_file;

using Places = std::vector<std::int32_t>;

TEST(HoldOutTest, ANumberOrAShareIsReadAndNothingElse) {
  EXPECT_EQ(parse_hold_out("0"), HoldOut{});
  EXPECT_EQ(parse_hold_out("5000"), HoldOut{.samples = 5000});
  EXPECT_EQ(parse_hold_out("0.1"), HoldOut{.share = 0.1});
  EXPECT_EQ(parse_hold_out("1e-3"), HoldOut{.share = 0.001});
  for (const char* text :
       {"-1", "1.0", "1.5", "0.0", "-0.1", "ten", "", "10%", "1e-50", "nan", "inf", "99999999999999999999"})
    EXPECT_EQ(parse_hold_out(text), std::nullopt) << text;
  for (const char* text : {"0", "5000", "0.1", "0.3333333333333333"})
    EXPECT_EQ(to_string(*parse_hold_out(text)), text);
}

TEST(HoldOutTest, AShareComesToTheNearestNumber) {
  EXPECT_EQ(HoldOut{.share = 0.1}.count_of(60000), 6000);
  EXPECT_EQ(HoldOut{.share = 0.29}.count_of(100), 29);
  EXPECT_EQ(HoldOut{.share = 0.25}.count_of(6), 2);
  EXPECT_EQ(HoldOut{}.count_of(6), 0);
}

TEST(HoldOutTest, AllOrNoneIsRefused) {
  const auto refused = [](const HoldOut& hold_out, std::initializer_list<const char*> parts) {
    expect_error<DatasetOptionError>([&] { hold_out.count_of(20); }, parts);
  };
  refused({.samples = 20}, {"validation: 20 leaves none of 20 training samples", "19 at most"});
  refused({.samples = 1000000000}, {"leaves none"});
  refused({.share = 0.99}, {"validation: 0.99 leaves none"});
  refused({.share = 0.01}, {"validation: 0.01 of 20 training samples is none"});
}

/// The same on every machine: these are numbers of Philox.
TEST(HoldOutTest, TheSeedAloneChooses) {
  EXPECT_EQ(held_out_samples(20, 5, 1234), (Places{1, 2, 3, 4, 15}));
  EXPECT_NE(held_out_samples(20, 5, 1), held_out_samples(20, 5, 2));
  EXPECT_EQ(held_out_samples(5, 5, 7), (Places{0, 1, 2, 3, 4}));
  EXPECT_EQ(held_out_samples(5, 0, 7), Places{});
}

TEST(HoldOutTest, AreDifferentSamplesAndAmongThoseOfALargerCount) {
  const Places all = held_out_samples(60000, 5000, 3), some = held_out_samples(60000, 700, 3);
  EXPECT_EQ(std::set<std::int32_t>(all.begin(), all.end()).size(), 5000U);
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_TRUE(std::ranges::includes(all, some));
  EXPECT_GE(all.front(), 0);
  EXPECT_LT(all.back(), 60000);
}

TEST(HoldOutTest, APlaceInTheFileIsThatOfTheWholeHalf) {
  TrainTestData data;
  data.held_out = {0, 1, 4, 9};
  const auto places = [&](const Dataset& part, std::int64_t count) {
    Places found;
    for (std::int64_t i = 0; i < count; ++i)
      found.push_back(static_cast<std::int32_t>(place_in_file(data, part, i)));
    return found;
  };
  EXPECT_EQ(places(data.train, 7), (Places{2, 3, 5, 6, 7, 8, 10}));
  EXPECT_EQ(places(data.validation, 4), data.held_out);
  EXPECT_EQ(places(data.test, 3), (Places{0, 1, 2}));
}

TEST(HoldOutTest, EverySampleIsEquallyLikely) {
  std::map<std::int32_t, int> times;
  for (std::uint64_t seed = 0; seed < 4000; ++seed)
    for (const std::int32_t place : held_out_samples(10, 3, seed)) ++times[place];
  for (const auto& [place, count] : times) EXPECT_NEAR(count, 1200, 150) << place;  // five deviations
  EXPECT_EQ(times.size(), 10U);
}

/// The numbers of a sample, and its label.
std::vector<float> sample_of(const Dataset& set, std::size_t i) {
  const auto size = static_cast<std::size_t>(set.shape.features());
  std::vector<float> numbers = {static_cast<float>(set.labels[i])};
  if (set.images.size() > 0) {
    const auto image = set.images.span().subspan(i * size, size);
    numbers.insert(numbers.end(), image.begin(), image.end());
  } else {
    const auto features = set.features.span().subspan(i * size, size);
    numbers.insert(numbers.end(), features.begin(), features.end());
  }
  return numbers;
}

/// Each sample of the whole is in one of the two parts, in its order.
void expect_divided(const TrainTestData& whole, const TrainTestData& divided, std::size_t count) {
  ASSERT_EQ(divided.held_out.size(), count);
  ASSERT_EQ(divided.validation.size(), static_cast<std::int64_t>(count));
  ASSERT_EQ(divided.train.size() + divided.validation.size(), whole.train.size());
  std::size_t kept = 0, held_out = 0;
  for (std::size_t i = 0; i < whole.train.labels.size(); ++i) {
    const bool out = held_out < count && divided.held_out[held_out] == static_cast<std::int32_t>(i);
    const auto here = out ? sample_of(divided.validation, held_out++) : sample_of(divided.train, kept++);
    ASSERT_EQ(here, sample_of(whole.train, i)) << i;
  }
  EXPECT_EQ(fingerprints_of(divided).train, fingerprint_of(whole.train));
  EXPECT_EQ(fingerprints_of(divided).test, fingerprint_of(whole.test));
  EXPECT_NE(divided.train.quick, whole.train.quick);
}

TEST(HoldOutTest, OthersAreLeftToTrainOnAndTheFilesKeepTheirFingerprints) {
  const test::TemporaryDirectory directory;
  test::write_file(directory.path() / "train-images-idx4-ubyte", idx_file({40, 2, 3, 3}, 7));
  test::write_file(directory.path() / "train-labels-idx1-ubyte", idx_file({40}, 1, 3));
  test::write_file(directory.path() / "t10k-images-idx4-ubyte", idx_file({2, 2, 3, 3}, 7));
  test::write_file(directory.path() / "t10k-labels-idx1-ubyte", idx_file({2}, 1, 3));
  const std::vector<DatasetOptions> sets = {{.set = "synthetic", .train_samples = 50, .test_samples = 3},
                                            {.set = "random", .train_samples = 50, .test_samples = 3},
                                            {.set = "idx", .root = directory.path().string()}};
  for (const DatasetOptions& options : sets) {
    SCOPED_TRACE(options.set);
    DatasetOptions with = options;
    with.validation = {.share = 0.2};
    const TrainTestData whole = load_dataset(options), divided = load_dataset(with);
    expect_divided(whole, divided, options.set == "idx" ? 8 : 10);
    EXPECT_EQ(divided.validation.name, options.set + " validation");
    EXPECT_EQ(whole.validation.size(), 0);
  }
}

/// Otherwise held-out samples would have a part in what is trained.
TEST(HoldOutTest, StatisticsAreMeasuredWithoutThem) {
  const test::TemporaryDirectory directory;
  test::write_image_set(directory.path());
  DatasetOptions options{.set = "idx", .root = directory.path().string(), .validation = {.samples = 6}};
  const TrainTestData data = load_dataset(options);
  EXPECT_EQ(data.normalisation, measure(data.train.images.span(), 12, 1));
  options.validation = {};
  EXPECT_NE(data.normalisation, load_dataset(options).normalisation);
}

/// Any strategy takes its samples by a sampler over `train`, which has the indices 0 .. 54,999: those of the others.
TEST(HoldOutTest, FiveThousandOfMnistAreNeverInABatch) {
  const auto root = std::getenv("LOCKSTEP_DATA");
  if (root == nullptr) GTEST_SKIP() << "LOCKSTEP_DATA names no directory with MNIST";
  const DatasetOptions options{.set = "mnist", .root = root, .validation = {.samples = 5000}};
  const TrainTestData data = load_dataset(options), whole = load_dataset({.set = "mnist", .root = root});
  expect_divided(whole, data, 5000);
  std::set<std::int32_t> trained;
  for (int rank = 0; rank < 7; ++rank) {
    DistributedSampler sampler(
        {.samples = data.train.size(), .global_batch = 512, .seed = 1234, .rank = rank, .world_size = 7});
    sampler.set_epoch(0);
    for (std::int64_t step = 0; step < sampler.steps_per_epoch(); ++step)
      for (const Grain& grain : sampler.local_grains(step))
        for (const std::int32_t index : sampler.indices(step, grain))
          EXPECT_TRUE(trained.insert(index).second);
  }
  EXPECT_EQ(trained.size(), 55000U);
  EXPECT_EQ(*trained.rbegin(), 54999);
}

}  // namespace
}  // namespace lockstep::hold_out_test
