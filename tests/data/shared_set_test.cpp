// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A set that another process has loaded is the set that this one would have loaded.
#include "data/shared_set.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "data/sets/shards.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::shared_set_test {
namespace {

void expect_equal(const Dataset& half, const Dataset& expected) {
  SCOPED_TRACE(expected.name);
  EXPECT_EQ(half.name, expected.name);
  EXPECT_EQ(half.shape, expected.shape);
  EXPECT_EQ(half.classes, expected.classes);
  EXPECT_EQ(half.labels, expected.labels);
  EXPECT_EQ(half.label_sets, expected.label_sets);
  EXPECT_EQ(half.places, expected.places);
  EXPECT_EQ(half.of_rows, expected.of_rows);
  EXPECT_EQ(half.scales.scale, expected.scales.scale);
  EXPECT_EQ(half.scales.shift, expected.scales.shift);
  EXPECT_EQ(half.quick, expected.quick);
  EXPECT_EQ(half.file_fingerprint, expected.file_fingerprint);
  EXPECT_TRUE(std::ranges::equal(half.images.span(), expected.images.span()));
  EXPECT_TRUE(std::ranges::equal(half.features.span(), expected.features.span()));
}

void expect_equal(const TrainTestData& data, const TrainTestData& expected) {
  expect_equal(data.train, expected.train);
  expect_equal(data.test, expected.test);
  expect_equal(data.validation, expected.validation);
  const auto rest = [](const TrainTestData& of) {
    return std::tie(of.has_validation_half, of.class_names, of.fit, of.normalisation, of.directory,
                    of.origin);
  };
  EXPECT_EQ(rest(data), rest(expected));
  EXPECT_EQ(data.files.has_value(), expected.files.has_value());
  EXPECT_EQ(data.train_in_file(), expected.train_in_file());
  EXPECT_EQ(data.test_in_file(), expected.test_in_file());
  const SetFingerprints here = fingerprints_of(data), there = fingerprints_of(expected);
  EXPECT_EQ(here.train, there.train);
  EXPECT_EQ(here.test, there.test);
  EXPECT_EQ(here.validation, there.validation);
}

/// Moves the set that the options say, and finds it as another process would.
void expect_shared(const DatasetOptions& options) {
  SCOPED_TRACE(options.set);
  EXPECT_TRUE(loads_into_memory(options));
  TrainTestData moved = load_dataset(options);
  const auto memory = move_to_memory_file(moved);
  ASSERT_NE(memory, nullptr);
  const auto theirs = MemoryFile::open(memory->offer());
  ASSERT_NE(theirs, nullptr);
  const TrainTestData found = set_in(theirs), expected = load_dataset(options);
  expect_equal(moved, expected);
  expect_equal(found, expected);
}

using SharedSetTest = test::DirectoryTest;

TEST_F(SharedSetTest, EveryKindOfSetInMemoryIsFoundAsItIs) {
  for (const char* set : {"synthetic", "random"})
    expect_shared({.set = set, .train_samples = 50, .test_samples = 7, .validation = {.samples = 5}});
  test::write_colour_set(directory_.path(), 40, 12);
  const DatasetOptions own = {.set = "idx", .directory = path("")};
  expect_shared(own);
  DatasetOptions part = own;
  part.train_samples = 20;
  part.test_samples = 5;
  part.validation = {.share = 0.2};
  expect_shared(part);
}

TEST_F(SharedSetTest, SetsInShardsAreSharedOnlyInMemory) {
  write_in_shards(Env::posix(), {.set = "synthetic", .train_samples = 30, .test_samples = 5}, path("set"),
                  {});
  DatasetOptions options = {.set = "shards", .directory = path("set")};
  EXPECT_FALSE(loads_into_memory(options));
  TrainTestData data = load_dataset(options);
  EXPECT_EQ(move_to_memory_file(data), nullptr);
  EXPECT_TRUE(data.train.stays_on_disk());
  options.in_memory = true;
  expect_shared(options);
  ShardWriter several(Env::posix(), path("several"), {1, 1, 2}, {"a", "b", "c"}, {.has_label_sets = true});
  for (const SetHalf half : {SetHalf::kTrain, SetHalf::kTest})
    for (std::uint32_t i = 0; i < 9; ++i)
      several.add(half, test::Bytes{1, 2}, std::vector<std::uint32_t>{i % 2, 2});
  several.publish();
  options.directory = path("several");
  expect_shared(options);
}

TEST_F(SharedSetTest, APartOfASetIsNone) {
  TrainTestData data = load_dataset({.set = "synthetic", .train_samples = 30, .test_samples = 5});
  const auto memory = move_to_memory_file(data);
  ASSERT_NE(memory, nullptr);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{4}, std::size_t{100}, memory->bytes().size() - 1}) {
    const std::vector<std::span<const std::byte>> part = {memory->bytes().first(bytes)};
    EXPECT_THROW(set_in(MemoryFile::of_parts(part)), InternalError) << bytes;
  }
  const std::uint64_t size = sizeof(size);
  const std::vector<std::span<const std::byte>> size_alone = {std::as_bytes(std::span(&size, 1))};
  EXPECT_THROW(set_in(MemoryFile::of_parts(size_alone)), InternalError) << "a head of its size alone";
  std::vector<std::byte> cut(memory->bytes().begin(), memory->bytes().end());
  std::memcpy(cut.data(), &size, sizeof(size));
  const std::vector<std::span<const std::byte>> head_cut = {std::span<const std::byte>(cut)};
  EXPECT_THROW(set_in(MemoryFile::of_parts(head_cut)), InternalError) << "fields go on after the head";
}

}  // namespace
}  // namespace lockstep::shared_set_test
