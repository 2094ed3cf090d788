// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets in shards: what was written is read, and nothing is there before all of it is.
#include "data/sets/shards.hpp"

#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/memory_file.hpp"
#include "data/augmentation.hpp"
#include "data/batch_loader.hpp"
#include "data/dataset.hpp"
#include "data/sample_store.hpp"
#include "data/sampler.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/hold_out.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/set_loading.hpp"
#include "kernels/numerics/augment.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/data/own_disk.hpp"
#include "tests/data/shards_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace lockstep::shards_test {
namespace {

namespace fs = std::filesystem;
using test::Bytes;

TEST_F(ShardsTest, WhatWasWrittenIsRead) {
  const TrainTestData data = load();
  ASSERT_EQ(data.train.size(), kTrain);
  ASSERT_EQ(data.test.size(), kTest);
  EXPECT_EQ(data.train.shape, kShape);
  EXPECT_EQ(data.class_names, class_names());
  EXPECT_TRUE(fs::exists(file("train-00005.shard")));
  for (std::int32_t i = 0; i < kTrain + kTest; ++i) {
    const Dataset& half = i < kTrain ? data.train : data.test;
    const std::int32_t index = i < kTrain ? i : i - static_cast<std::int32_t>(kTrain);
    EXPECT_EQ(test::image_of(half, index), image_of(i)) << i;
    EXPECT_EQ(half.labels[static_cast<std::size_t>(index)], label_of(i));
  }
  for (const std::int32_t sample : {-1, 100}) EXPECT_THROW(test::image_of(data.train, sample), InternalError);
  Bytes room(104);
  EXPECT_THROW(data.train.store->read(std::vector<std::int64_t>{1}, room), InternalError);
}

TEST_F(ShardsTest, IndexSaysWhatItHoldsAndWhatItsFingerprintIs) {
  const SetOutline outline = outline_of(options());
  EXPECT_EQ(outline.shape, kShape);
  EXPECT_EQ(outline.classes, kClasses);
  EXPECT_EQ(outline.train_samples, kTrain);
  EXPECT_EQ(outline.test_samples, kTest);
  EXPECT_EQ(outline.validation_samples, 0);
  EXPECT_TRUE(outline.on_disk && !outline.is_fp32);
  const std::string index = test::text_in(file("shards.index"));
  EXPECT_TRUE(index.starts_with("{\"lockstep_shards\":1,\"channels\":3,"))
      << "the oldest version that knows it";
  const ShardHalf train = parse_shard_index(index, "index").train;
  const std::string text = "100 images of 3x5x7, blocks of 512: " + hex(train.blocks);
  const Fingerprint fingerprint = fingerprints_of(load()).train;
  EXPECT_EQ(fingerprint.samples, hex(sha256(std::as_bytes(std::span(text)))));
  EXPECT_EQ(fingerprint.labels, hex(train.labels));
  Dataset other = load().train;
  const std::string quick = quick_fingerprint_of(other).samples;
  other.places = {3};
  EXPECT_NE(quick_fingerprint_of(other).samples, quick) << "of the same files";
}

TEST(ShardNamesTest, FilesOfASetAreKnownByTheirNames) {
  for (const char* name : {"shards.index", "train-labels.u32", "test-blocks.sha256", "validation-names.jsonl",
                           "train-00012.shard"})
    EXPECT_TRUE(is_name_in_shards(name)) << name;
  for (const char* name : {"train", "train-0001.shard", "train-000001.shard", "train-0000a.shard",
                           "train000012.shard", "other-00001.shard", "train-00001.shards", "labels.u32"})
    EXPECT_FALSE(is_name_in_shards(name)) << name;
}

TEST_F(ShardsTest, SamplesThatDoNotFitAreABug) {
  ShardWriter writer(Env::posix(), directory() + "2", kShape, {"a", "b"}, {.sizes = kSizes});
  const std::vector<std::uint32_t> both = {0, 1}, twice = {1, 1};
  EXPECT_THROW(writer.add(SetHalf::kTrain, Bytes(104), 0), InternalError);
  EXPECT_THROW(writer.add(SetHalf::kTrain, image_of(0), 2), InternalError);
  for (const auto& labels : {both, twice})
    EXPECT_THROW(writer.add(SetHalf::kTrain, image_of(0), labels), InternalError);
  writer.add(SetHalf::kTrain, image_of(0), 0, "a.png");
  EXPECT_THROW(writer.add(SetHalf::kTrain, image_of(0), 0), InternalError) << "all have names, or none";
}

/// A batch of both, augmented and mixed.
void expect_equal_batches(const Dataset& on_disk, const Dataset& in_memory) {
  ASSERT_EQ(on_disk.size(), in_memory.size());
  EXPECT_NE(on_disk.store, nullptr);
  EXPECT_EQ(in_memory.store, nullptr);
  const std::vector<Augmentation> list = {{AugmentKind::kFlip, {{{0.5, 0.5}}}},
                                          {AugmentKind::kMixup, {{{1, 1}, {1, 1}}}}};
  const auto order = epoch_permutation(on_disk.size(), 1, 0);
  const auto mixes = SampleMixer(list, kShape, 1).draw(0, order, 0, on_disk.size());
  const int columns = static_cast<int>(on_disk.size() + 15) / 16 * 16;
  std::vector<std::vector<float>> batches;
  for (const Dataset* set : {&on_disk, &in_memory}) {
    const AugmentPlan plan = *make_augment_plan(list, *set, 1);
    std::vector<std::int32_t> labels(order.size());
    auto& x = batches.emplace_back(static_cast<std::size_t>(kShape.features() * columns));
    BatchLoader(*set).prefetch(order);
    BatchLoader(*set, &plan).load(order, columns, x.data(), labels.data(), 3, mixes);
  }
  EXPECT_EQ(batches[0], batches[1]);
}

TEST_F(ShardsTest, FromDiskComesWhatComesFromMemory) {
  for (const HoldOut& held_out : {HoldOut{}, HoldOut{.samples = 20}, HoldOut{.samples = 70}})
    for (const std::int64_t train_samples : {0, 25}) {
      DatasetOptions wanted = options();
      wanted.validation = held_out;
      wanted.train_samples = train_samples;
      wanted.test_samples = train_samples;
      const TrainTestData on_disk = load_dataset(wanted);
      wanted.in_memory = true;
      const TrainTestData in_memory = load_dataset(wanted);
      EXPECT_EQ(on_disk.normalisation, in_memory.normalisation);
      EXPECT_EQ(fingerprints_of(on_disk).train, fingerprints_of(in_memory).train);
      EXPECT_EQ(on_disk.train.quick, in_memory.train.quick);
      expect_equal_batches(on_disk.train, in_memory.train);
      expect_equal_batches(on_disk.test, in_memory.test);
      if (held_out.is_given()) expect_equal_batches(on_disk.validation, in_memory.validation);
    }
}

TEST_F(ShardedLabelsTest, EachSampleHasItsOwn) {
  const TrainTestData data = load();
  for (std::int64_t i = 0; i < 60; ++i) {
    const Dataset& half = i % 3 == 0 ? data.test : i % 3 == 1 ? data.train : data.validation;
    ASSERT_TRUE(half.has_label_sets());
    EXPECT_EQ(labels_in(half.label_set_of(i / 3)), labels_of(i)) << i;
  }
  DatasetOptions some = options();
  const TrainTestData whole = load_dataset(some);
  some.train_samples = some.test_samples = 5;
  some.validation = {.samples = 7};
  const TrainTestData part = load_dataset(some);
  for (const Dataset* half : {&part.train, &part.test, &part.validation})
    EXPECT_EQ(half->label_sets, whole.train.label_sets);
  for (std::int64_t i = 0; i < part.validation.size(); ++i)
    EXPECT_EQ(labels_in(part.validation.label_set_of(i)),
              labels_in(whole.train.label_set_of(part.validation.place_in_file(i))));
  write_in_shards(Env::posix(), options(), directory() + "2", {.sizes = kSizes});
  const TrainTestData again =
      load_dataset({.set = "shards", .root = directory() + "2", .validation = {.is_files = true}});
  EXPECT_EQ(fingerprints_of(again).train, fingerprints_of(data).train);
  EXPECT_EQ(fingerprints_of(again).validation, fingerprints_of(data).validation);
}

TEST_F(ShardsTest, ProcessesOfAHostCompareABlockOnceBetweenThem) {
  const Dataset one = load().train, other = load().train, stranger = load().train;
  const auto checks = one.store->make_shared_checks();
  ASSERT_NE(checks, nullptr);
  one.store->share_checks(checks);
  other.store->share_checks(MemoryFile::open(checks->offer()));
  EXPECT_EQ(one.store->make_shared_checks(), nullptr) << "once is enough";
  stranger.store->share_checks(MemoryFile::of_zeros(1));  // memory of another set
  EXPECT_NE(stranger.store->make_shared_checks(), nullptr) << "it took none of that";
  EXPECT_NO_THROW(test::image_of(one, 0));
  flip(shard_file("train", 0), 0);
  flip(shard_file("train", 2), 2 * kSizes.block_bytes);
  EXPECT_NO_THROW(test::image_of(other, 0));
  expect_error<DataError>([&] { test::image_of(stranger, 0); }, {"sample 0 was wanted"});
  expect_error<DataError>([&] { test::image_of(other, 50); }, {"sample 50 was wanted"});
}

TEST_F(ShardsTest, BlocksAreComparedAheadOfTheSamplesThatAreAskedFor) {
  const Dataset train = load().train;
  const auto checks = train.store->make_shared_checks();
  ASSERT_NE(checks, nullptr);
  train.store->share_checks(checks);
  const auto is_compared = [&](std::size_t block) {
    return std::atomic_ref(checks->bytes()[block]).load() != std::byte{0};
  };
  const std::size_t block = 50 * 105 / kSizes.block_bytes;
  train.store->prefetch({50});
  const Clock::time_point end = Clock::now() + std::chrono::seconds(20);
  while (!is_compared(block) && Clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(is_compared(block));
  EXPECT_FALSE(is_compared(0)) << "nobody asked for a sample in it";
}

/// The disk fails: each read of a sample is tried for half a second.
TEST_F(ShardsTest, WhatIsReadAheadIsNotWaitedForAtTheEnd) {
  Dataset train = load().train;
  const int unreadable = ::open(file("train-00000.shard").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(unreadable, 0);
  for (int fd = 0; fd < 1024; ++fd) {
    std::error_code closed;
    const fs::path name = fs::read_symlink("/proc/self/fd/" + std::to_string(fd), closed).filename();
    if (name.native().starts_with("train-0")) {
      EXPECT_EQ(::dup2(unreadable, fd), fd);
    }
  }
  ::close(unreadable);
  std::vector<std::int64_t> all(kTrain);
  std::iota(all.begin(), all.end(), 0);
  train.store->prefetch(all);
  expect_error<IoError>([&] { test::image_of(train, 0); }, {"train-00000.shard: offset 0: reading failed"});
  const Clock::time_point start = Clock::now();
  train.store.reset();
  EXPECT_LT(seconds_since(start), 20) << "a hundred samples take 52 s";
}

TEST_F(ShardsTest, NothingIsThereBeforeAllIs) {
  const SetFingerprints before = fingerprints_of(load());
  expect_error<UsageError>(
      [&] {
        ShardWriter(Env::posix(), directory(), kShape, {"one", "two"}, {});
      },
      {"is there already", "--force"});
  {
    ShardWriter writer(Env::posix(), directory(), kShape, {"one", "two"}, {.replace = true, .sizes = kSizes});
    for (std::int64_t i = 0; i < kTrain; ++i) writer.add(SetHalf::kTrain, image_of(i + 1), 0);
    EXPECT_EQ(fingerprints_of(load()).train, before.train);
    expect_error<DataError>([&] { writer.publish(); }, {"no samples to test with"});
  }
  EXPECT_EQ(fingerprints_of(load()).train, before.train);
  for (const auto& entry : fs::directory_iterator(directory()))
    EXPECT_FALSE(entry.path().string().ends_with(".partial")) << entry.path();
  {
    ShardWriter writer(Env::posix(), directory(), {1, 2, 2}, {"one", "two"}, {.replace = true});
    writer.add(SetHalf::kTrain, Bytes(4), 0);
    writer.add(SetHalf::kTest, Bytes(4), 0);
    writer.publish();
  }
  EXPECT_EQ(load().train.size(), 1);
  EXPECT_FALSE(fs::exists(file("train-00005.shard"))) << "a file of the set that was replaced";
}

TEST_F(ShardsTest, FilesThatAppearedMeanwhileStay) {
  const std::string to = directory() + "2";
  ShardWriter writer(Env::posix(), to, kShape, {"one", "two"}, {.sizes = kSizes});
  for (const SetHalf half : {SetHalf::kTrain, SetHalf::kTest}) writer.add(half, image_of(1), 0);
  test::write_file(to + "/classes.txt", {1});
  expect_error<UsageError>([&] { writer.publish(); },
                           {"classes.txt: is there already; --force replaces the set"});
  EXPECT_FALSE(fs::exists(to + "/shards.index"));
}

/// Names may be on the disk in any order, but none before the bytes that it stands for.
TEST(ShardsOnADiskTest, FilesOutlastAPowerLossOnceTheyHaveTheirNames) {
  test::OwnDisk env;
  {
    ShardWriter writer(env, "sets/new", {1, 32, 32}, {"one", "two"}, {.sizes = kSizes});
    for (std::uint8_t i = 1; i <= 10; ++i)
      writer.add(i <= 5 ? SetHalf::kTrain : SetHalf::kTest, Bytes(1024, i), i % 2, "p/" + std::to_string(i));
    writer.publish();
  }
  const MemoryDisk& whole = env.disk();
  const auto contents = [](const MemoryDisk& disk, const std::string& name) {
    const int node = disk.find("sets/new/" + name);
    return node < 0 ? std::nullopt : std::optional(disk.nodes[static_cast<std::size_t>(node)].data);
  };
  std::size_t found = 0;
  for (std::size_t ops = 0; ops <= env.trace().size(); ++ops) {
    if (ops < env.trace().size() && (ops == 0 || env.trace()[ops - 1].kind != DiskOp::Kind::kRename))
      continue;
    for (std::uint32_t variant = 0; variant < 20; ++variant) {
      const MemoryDisk left =
          after_power_loss({}, std::span(env.trace()).first(ops), PowerLoss::variant(variant));
      for (const std::string& name : env.list("sets/new")) {
        const auto data = contents(left, name);
        ASSERT_TRUE(data || ops < env.trace().size()) << name << " is gone, " << variant;
        if (!data) continue;
        ++found;
        ASSERT_EQ(*data, *contents(whole, name)) << name << " after " << ops << " operations, " << variant;
      }
    }
  }
  EXPECT_EQ(env.list("sets/new").size(),
            13U);  // three shards, labels, blocks and names of each half, and the index
  EXPECT_GT(found, 13U * 20);
}

TEST_F(ShardsTest, ThreadsReadOneSet) {
  const Dataset train = load().train;
  const auto read_all = [&](unsigned seed) {
    for (const std::int32_t i : epoch_permutation(kTrain, seed, 0)) {
      train.store->prefetch({(i + 1) % kTrain});
      EXPECT_EQ(test::image_of(train, i), image_of(i));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back(read_all, t);
  for (std::thread& thread : threads) thread.join();
}

/// Its labels, classes and normalisation, too; and a half of one sample.
TEST_F(ShardsTest, AnySetOfImagesIsWrittenInShards) {
  const std::string from = path("idx"), to = path("shards");
  test::write_image_set(from, 20, 1);
  EXPECT_FALSE(find_whole_set(directory_.path().string()).has_value());
  const auto found = find_whole_set(from);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->set, "idx");
  EXPECT_EQ(find_whole_set("synthetic")->set, "synthetic");
  const ShardIndex index = write_in_shards(Env::posix(), *found, to, {});
  EXPECT_EQ(index.train.samples, 20);
  EXPECT_EQ(index.test.samples, 1);
  const TrainTestData before = load_dataset(*found);
  const TrainTestData now = load_dataset({.set = "shards", .root = to, .in_memory = true});
  for (const auto part : {&TrainTestData::train, &TrainTestData::test}) {
    EXPECT_TRUE(std::ranges::equal((before.*part).images.span(), (now.*part).images.span()));
    EXPECT_EQ((before.*part).labels, (now.*part).labels);
  }
  EXPECT_EQ(before.class_names, now.class_names);
  EXPECT_EQ(before.normalisation, now.normalisation);
  EXPECT_EQ(find_whole_set(to)->set, "shards");
  write_in_shards(Env::posix(), options(), to + "3", {});
  const auto names = [&](const std::string& half) { return fs::path(to + "3") / (half + "-names.jsonl"); };
  EXPECT_EQ(fs::file_size(names("train")), fs::file_size(file("train-names.jsonl")));
  EXPECT_FALSE(fs::exists(names("test")));
  expect_error<UsageError>([&] { write_in_shards(Env::posix(), {.set = "random"}, to + "2", {}); },
                           {"has features"});
}

}  // namespace
}  // namespace lockstep::shards_test
