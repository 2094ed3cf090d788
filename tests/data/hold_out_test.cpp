// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Held-out and left-out samples: all others, and only they, are left to train on.
#include "data/sets/hold_out.hpp"

#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/normalisation.hpp"
#include "data/sampler.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/set_loading.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::hold_out_test {
namespace {

using Places = std::vector<std::int32_t>;

TEST(HoldOutTest, ANumberOrAShareIsReadAndNothingElse) {
  EXPECT_EQ(parse_hold_out("0"), HoldOut{});
  EXPECT_EQ(parse_hold_out("5000"), HoldOut{.samples = 5000});
  EXPECT_EQ(parse_hold_out("0.1"), HoldOut{.share = 0.1});
  EXPECT_EQ(parse_hold_out("files"), HoldOut{.is_files = true});
  EXPECT_EQ(to_string(HoldOut{.is_files = true}), "files");
  EXPECT_EQ(parse_hold_out("1e-3"), HoldOut{.share = 0.001});
  for (const char* text :
       {"-1", "1.0", "1.5", "0.0", "-0.1", "ten", "", "10%", "1e-50", "nan", "inf", "99999999999999999999"})
    EXPECT_EQ(parse_hold_out(text), std::nullopt) << text;
  EXPECT_EQ(parse_hold_out("1e-9"), HoldOut{.share = 1e-9});
  EXPECT_EQ(parse_hold_out("9e-10"), std::nullopt);
  for (const char* text : {"0", "5000", "0.1", "0.3333333333333333"})
    EXPECT_EQ(to_string(*parse_hold_out(text)), text);
}

TEST(HoldOutTest, AShareComesToTheNearestNumber) {
  EXPECT_EQ(HoldOut{.share = 0.1}.count_of(60000), 6000);
  EXPECT_EQ(HoldOut{.share = 0.29}.count_of(100), 29);
  EXPECT_EQ(HoldOut{.share = 0.25}.count_of(6), 2);
  EXPECT_EQ(HoldOut{}.count_of(6), 0);
  EXPECT_EQ(HoldOut{}.count_of(0), 0);
  EXPECT_EQ(HoldOut{.is_files = true}.count_of(5), 0);
}

TEST(HoldOutTest, AllOrNoneIsRefused) {
  const auto refused = [](const HoldOut& hold_out, std::initializer_list<std::string_view> parts) {
    expect_error<DatasetOptionError>([&] { hold_out.count_of(20); }, parts);
  };
  refused({.samples = 20}, {"validation: 20 leaves none of 20 training samples", "19 at most"});
  refused({.samples = 1000000000}, {"leaves none"});
  refused({.share = 0.99}, {"validation: 0.99 leaves none"});
  refused({.share = 0.01}, {"validation: 0.01 of 20 training samples is none"});
}

/// Numbers of Philox, the same on every machine.
TEST(HoldOutTest, TheSeedAloneChooses) {
  EXPECT_EQ(held_out_samples(20, 5, 1234), (Places{1, 2, 3, 4, 15}));
  EXPECT_NE(held_out_samples(20, 5, 1), held_out_samples(20, 5, 2));
  EXPECT_EQ(held_out_samples(5, 5, 7), (Places{0, 1, 2, 3, 4}));
  EXPECT_EQ(held_out_samples(5, 0, 7), Places{});
  for (const std::int64_t count : {-1, 6}) {
    EXPECT_THROW(held_out_samples(5, count, 7), InternalError);
    EXPECT_THROW(test_subset(5, count, 7), InternalError);
  }
  EXPECT_THROW(training_subset(5, 4, 7, Places{0, 1}), InternalError);
}

/// The orders of epochs 0 and 1, see PermutationTest.
TEST(SplitTest, SeedAndClassChooseTheSamplesOfAHalf) {
  const auto places_of = [](const std::vector<SetHalf>& halves, SetHalf wanted) {
    Places places;
    for (std::size_t i = 0; i < halves.size(); ++i)
      if (halves[i] == wanted) places.push_back(static_cast<std::int32_t>(i));
    return places;
  };
  const SplitChoice three{.validation = {.samples = 3}};
  for (const auto& [label, test, validation] :
       {std::tuple{0, Places{3, 8}, Places{4, 7, 9}}, {1, Places{1, 8}, Places{0, 2, 6}}}) {
    const auto halves = split_class(10, static_cast<std::size_t>(label), "a", three);
    EXPECT_EQ(places_of(halves, SetHalf::kTest), test);
    EXPECT_EQ(places_of(halves, SetHalf::kValidation), validation);
    EXPECT_EQ(places_of(halves, SetHalf::kTrain).size(), 5U);
  }
  EXPECT_NE(split_class(10, 0, "a", {.seed = 5}), split_class(10, 0, "a", {}));
  EXPECT_EQ(places_of(split_class(4, 0, "a", {.test = {.share = 0.01}}), SetHalf::kTest).size(), 1U);
  const std::vector<std::uint32_t> labels = {0, 2, 2, 0};
  EXPECT_EQ(split_classes(labels, {"a", "none", "b"}, {.test = {.samples = 1}}).size(), 4U)
      << "a class without samples";
  expect_error<DataError>([] { split_class(3, 0, "a", {.test = {.samples = 3}}); },
                          {"class 'a': 3 of its 3 samples would be for testing, and none to train on; add "
                           "some, or take fewer"});
}

TEST(PartSizesTest, AreThoseOfTheFilesLessWhatIsHeldOut) {
  const auto sizes = [](const DatasetOptions& options) {
    const PartSizes parts = part_sizes(options, {.train = 100, .test = 20, .validation = 7});
    return std::array{parts.train, parts.test, parts.validation};
  };
  using Sizes = std::array<std::int64_t, 3>;
  EXPECT_EQ(sizes({}), (Sizes{100, 20, 0}));
  EXPECT_EQ(sizes({.validation = {.is_files = true}}), (Sizes{100, 20, 7}));
  EXPECT_EQ(sizes({.train_samples = 30, .test_samples = 5, .validation = {.samples = 10}}),
            (Sizes{30, 5, 10}));
  EXPECT_EQ(sizes({.set = "random", .train_samples = 30, .validation = {.samples = 10}}),
            (Sizes{90, 20, 10}));
}

TEST(HoldOutTest, EverySampleIsEquallyLikely) {
  std::map<std::int32_t, int> times;
  for (std::uint64_t seed = 0; seed < 4000; ++seed)
    for (const std::int32_t place : held_out_samples(10, 3, seed)) ++times[place];
  for (const auto& [place, count] : times) EXPECT_NEAR(count, 1200, 150) << place;  // five deviations
  EXPECT_EQ(times.size(), 10U);
}

/// The bytes of a sample, and its label.
std::pair<std::vector<std::byte>, std::int32_t> sample_of(const Dataset& set, std::size_t i) {
  const auto all = set.samples_in_memory();
  const std::size_t size = all.size() / set.labels.size();
  const auto bytes = all.subspan(i * size, size);
  return {{bytes.begin(), bytes.end()}, set.labels[i]};
}

/// Each sample of the whole is in one of the two parts, in its order.
void expect_divided(const TrainTestData& whole, const TrainTestData& divided, std::size_t count) {
  ASSERT_EQ(divided.validation.places.size(), count);
  ASSERT_EQ(divided.validation.size(), static_cast<std::int64_t>(count));
  ASSERT_EQ(divided.train.size() + divided.validation.size(), whole.train.size());
  std::size_t kept = 0, held_out = 0;
  for (std::size_t i = 0; i < whole.train.labels.size(); ++i) {
    const auto place = static_cast<std::int32_t>(i);
    const bool out = held_out < count && divided.validation.places[held_out] == place;
    const auto here = out ? sample_of(divided.validation, held_out++) : sample_of(divided.train, kept++);
    ASSERT_TRUE(out || divided.train.place_in_file(static_cast<std::int64_t>(kept) - 1) == place) << i;
    ASSERT_EQ(here, sample_of(whole.train, i)) << i;
  }
  EXPECT_EQ(fingerprints_of(divided).train, fingerprint_of(whole.train));
  EXPECT_EQ(fingerprints_of(divided).test, fingerprint_of(whole.test));
  EXPECT_NE(divided.train.quick, whole.train.quick);
  EXPECT_FALSE(divided.files.has_value()) << "all samples are there";
}

TEST(HoldOutTest, OthersAreLeftToTrainOnAndTheFilesKeepTheirFingerprints) {
  const test::TemporaryDirectory directory;
  test::write_colour_set(directory.path(), 40, 12);
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

/// 4,096 samples of 4 GiB each.
TEST(HoldOutTest, SamplesThatAreCopiedAndDoNotFitIntoMemoryAreRefused) {
  TrainTestData data;
  data.train = {.name = "idx train", .shape = {1, 32768, 32768}, .classes = 2};
  data.train.labels.assign(4096, 0);
  expect_error<MemoryError>([&] { choose_parts(data, {.validation = {.samples = 1}}); },
                            {"not enough memory: choosing samples of idx train would take 16 TiB, and ",
                             "; use a machine with more memory"});
}

// A part of the samples of a set in files: data.train_samples, data.test_samples.

/// Numbers of Philox, the same on every machine.
TEST(SubsetTest, TheSeedAloneChooses) {
  EXPECT_EQ(training_subset(20, 5, 1234, {}), (Places{3, 7, 8, 11, 12}));
  EXPECT_EQ(test_subset(20, 5, 1234), (Places{4, 5, 9, 10, 15}));
  EXPECT_NE(training_subset(20, 5, 1, {}), training_subset(20, 5, 2, {}));
  EXPECT_NE(test_subset(20, 5, 1), test_subset(20, 5, 2));
  EXPECT_EQ(training_subset(5, 5, 7, {}), (Places{0, 1, 2, 3, 4}));
  EXPECT_EQ(test_subset(5, 0, 7), Places{});
}

TEST(SubsetTest, IsOfDifferentSamplesNoneOfThemHeldOutAndAmongThoseOfALargerCount) {
  const Places held_out = held_out_samples(60000, 5000, 3);
  const Places all = training_subset(60000, 9000, 3, held_out),
               some = training_subset(60000, 100, 3, held_out);
  EXPECT_EQ(std::set<std::int32_t>(all.begin(), all.end()).size(), 9000U);
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_TRUE(std::ranges::includes(all, some));
  EXPECT_TRUE(all.front() >= 0 && all.back() < 60000);
  Places both;
  std::ranges::set_intersection(all, held_out, std::back_inserter(both));
  EXPECT_EQ(both, Places{});
  both.clear();
  std::ranges::set_intersection(all, training_subset(60000, 9000, 3, {}), std::back_inserter(both));
  EXPECT_GT(both.size(), 8000U);  // those that are held out make way for others, no more
  EXPECT_EQ(training_subset(60000, 55000, 3, held_out).size(), 55000U);
}

/// Each sample of a part is that of its place in the whole.
void expect_part(const Dataset& whole, const Dataset& part, const Places& places) {
  EXPECT_EQ(part.places, places);
  EXPECT_EQ(part.classes, whole.classes);
  ASSERT_EQ(part.size(), std::ssize(places));
  for (std::size_t i = 0; i < places.size(); ++i)
    ASSERT_EQ(sample_of(part, i), sample_of(whole, static_cast<std::size_t>(places[i]))) << i;
}

TEST(SubsetTest, OneOfAnySetIsTrainedOnAndTheFilesKeepTheirFingerprints) {
  const test::TemporaryDirectory directory;
  test::write_colour_set(directory.path(), 40, 12);
  DatasetOptions options{.set = "idx", .root = directory.path().string()};
  const TrainTestData whole = load_dataset(options);
  options.train_samples = 15;
  options.test_samples = 4;
  for (const std::int64_t held_out : {0, 6}) {
    SCOPED_TRACE(held_out);
    options.validation = {.samples = held_out};
    const TrainTestData part = load_dataset(options);
    const Places out = held_out_samples(40, held_out, options.seed);
    expect_part(whole.train, part.train, training_subset(40, 15, options.seed, out));
    if (held_out > 0) expect_part(whole.train, part.validation, out);
    expect_part(whole.test, part.test, test_subset(12, 4, options.seed));
    EXPECT_EQ(fingerprints_of(part).train, fingerprint_of(whole.train));
    EXPECT_EQ(fingerprints_of(part).test, fingerprint_of(whole.test));
    EXPECT_NE(part.test.quick, whole.test.quick);
    EXPECT_EQ(part.train_in_file(), 40);
    EXPECT_EQ(part.test_in_file(), 12);
    EXPECT_EQ(part.normalisation, measure(part.train)) << "held-out samples have no part in it";
    EXPECT_EQ(part.train.name + ", " + part.test.name, "idx train, idx test");
  }
  for (const auto& [train, test] : {std::pair{0, 4}, {15, 0}}) {
    const TrainTestData part = load_dataset(
        {.set = "idx", .root = directory.path().string(), .train_samples = train, .test_samples = test});
    EXPECT_EQ(part.train_in_file(), 40);
    EXPECT_EQ(part.test_in_file(), 12);
    EXPECT_EQ(fingerprints_of(part).train, fingerprint_of(whole.train));
    EXPECT_EQ(fingerprints_of(part).test, fingerprint_of(whole.test));
  }
  options = {.set = "idx", .root = directory.path().string(), .train_samples = 40, .test_samples = 12};
  EXPECT_EQ(load_dataset(options).train.places, Places{});
}

TEST(SubsetTest, MoreThanThereAreIsRefusedWithTheirNumber) {
  const test::TemporaryDirectory directory;
  test::write_colour_set(directory.path(), 40, 12);
  DatasetOptions options{.set = "idx", .root = directory.path().string(), .train_samples = 41};
  const auto refused = [&](std::initializer_list<std::string_view> parts) {
    expect_error<DatasetOptionError>([&] { load_dataset(options); }, parts);
  };
  refused({"train_samples: 41 are more than there are: 40 training samples; ask for 40 at most"});
  options.train_samples = 35;
  options.validation = {.share = 0.25};
  refused({"35 are more", "30 training samples, with 10 held out by data.validation; ask for 30 at most"});
  options.train_samples = 30;
  options.test_samples = 13;
  refused(
      {"test_samples: 13 are more than there are: 12 test samples; ask for 12 at most, or leave it out for "
       "all"});
  options.test_samples = 1'000'000'000'000;
  refused({"test_samples"});
}

}  // namespace
}  // namespace lockstep::hold_out_test
