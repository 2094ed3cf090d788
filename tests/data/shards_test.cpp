// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets in shards: what was written is read, from disk as from memory, and nothing else passes for it.
#include "data/sets/shards.hpp"

#include "common/digest.hpp"
#include "common/env.hpp"
#include "common/error.hpp"
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
#include "tests/common/memory_env.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

#include <sys/stat.h>

namespace lockstep::shards_test {
namespace {

namespace fs = std::filesystem;
using test::Bytes;

constexpr ImageShape kShape{3, 5, 7};  // 105 bytes: samples lie across blocks and files
constexpr ShardSizes kSizes{.block_bytes = 512, .shard_bytes = 2048};
constexpr std::int64_t kTrain = 100, kTest = 30, kClasses = 1000;

Bytes image_of(std::int64_t sample) {
  std::mt19937 generator(static_cast<unsigned>(sample));
  Bytes image(static_cast<std::size_t>(kShape.features()));
  for (std::uint8_t& byte : image) byte = static_cast<std::uint8_t>(generator());
  return image;
}

std::int32_t label_of(std::int64_t sample) {
  return static_cast<std::int32_t>(sample * 7919 % kClasses);
}

std::vector<std::string> class_names() {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < kClasses; ++i) names.push_back("class " + std::to_string(i));
  return names;
}

class ShardsTest : public test::DirectoryTest {
 protected:
  ShardsTest() {
    ShardWriter writer(Env::posix(), directory(), kShape, class_names(), {.sizes = kSizes});
    for (std::int64_t i = 0; i < kTrain; ++i)
      writer.add(SetHalf::kTrain, image_of(i), static_cast<std::uint32_t>(label_of(i)),
                 "p/" + std::to_string(i) + ".png");
    for (std::int64_t i = 0; i < kTest; ++i)
      writer.add(SetHalf::kTest, image_of(kTrain + i), static_cast<std::uint32_t>(label_of(kTrain + i)));
    writer.publish();
  }
  std::string directory() const { return path("set").string(); }
  fs::path file(const std::string& name) const { return fs::path(directory()) / name; }
  DatasetOptions options() const { return {.set = "shards", .root = directory()}; }
  TrainTestData load() const { return load_dataset(options()); }
  Bytes bytes(const std::string& name) const { return test::bytes_of(test::text_in(file(name))); }
  void flip(const std::string& name, std::size_t offset) {
    Bytes all = bytes(name);
    all.at(offset) ^= 1;
    test::write_file(file(name), all);
  }
};

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
}

TEST(ShardNamesTest, FilesOfASetAreKnownByTheirNames) {
  for (const char* name : {"shards.index", "train-labels.u32", "test-blocks.sha256", "validation-names.jsonl",
                           "train-00012.shard"})
    EXPECT_TRUE(is_name_in_shards(name)) << name;
  for (const char* name : {"train", "train-0001.shard", "train-000001.shard", "train-0000a.shard",
                           "train000012.shard", "other-00001.shard", "train-00001.shards", "labels.u32"})
    EXPECT_FALSE(is_name_in_shards(name)) << name;
}

TEST(PixelSumsTest, AreThoseOfSomePixelsOrNot) {
  const auto are = [](std::uint64_t values, std::uint64_t squares) {
    return are_possible({.values = {1, values}, .squares = {1, squares}}, 2);
  };
  EXPECT_TRUE(are(510, 130'050) && are(10, 2550) && are(10, 50));
  EXPECT_FALSE(are(511, 130'305));  // brighter than white
  EXPECT_FALSE(are(10, 2551));      // squares above 255 times the values
  EXPECT_FALSE(are(10, 49));        // a variance below 0
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

/// Some with many labels, some with none.
std::vector<std::uint32_t> labels_of(std::int64_t sample) {
  std::vector<std::uint32_t> labels;
  for (std::uint32_t label = static_cast<std::uint32_t>(sample) % 5; label < 5 * (sample % 4); label += 3)
    labels.push_back(label);
  return labels;
}

class ShardedLabelsTest : public ShardsTest {
 protected:
  ShardedLabelsTest() {
    ShardWriter writer(Env::posix(), directory(), kShape, class_names(),
                       {.replace = true, .sizes = kSizes, .has_label_sets = true});
    for (std::int64_t i = 0; i < 60; ++i)
      writer.add(i % 3 == 0   ? SetHalf::kTest
                 : i % 3 == 1 ? SetHalf::kTrain
                              : SetHalf::kValidation,
                 image_of(i), labels_of(i));
    writer.publish();
  }
  TrainTestData load() const {
    DatasetOptions wanted = options();
    wanted.validation = {.is_files = true};
    return load_dataset(wanted);
  }
};

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

/// The index says what it is told, whatever the file holds.
TEST_F(ShardedLabelsTest, LyingFilesAreRefused) {
  const Bytes kept = bytes("train-labels.u32");
  const std::string index = test::text_in(file("shards.index"));
  const auto fails = [&](std::size_t at, std::uint8_t value, const char* part) {
    Bytes labels = kept;
    labels.at(at) = value;
    test::write_file(file("train-labels.u32"), labels);
    ShardIndex lying = parse_shard_index(index, "index");
    lying.train.labels = sha256(std::as_bytes(std::span(labels)));
    write_text("set/shards.index", to_text(lying));
    expect_error<DataError>([&] { load(); }, {"train-labels.u32: ", part});
  };
  fails(0, 200, "the labels of sample 0 are not 200 different ones");  // 2 labels: 1 and 4
  fails(0, 0, "holds labels of more samples");                         // labels become counts
  fails(4, 4, "the labels of sample 0 are not 2 different ones");      // one label twice
  fails(9, 200, "in 0..999, ascending");                               // above all classes
  ShardIndex wide = parse_shard_index(index, "index");
  wide.classes = 65'537;
  expect_error<DataError>([&] { parse_shard_index(to_text(wide), "wide"); },
                          {"wide: classes is not a whole number in 1..65536"});
  expect_error<DataError>([&] { parse_shard_index("{}\n", "index"); }, {"index: "});
}

/// Whichever bit it is: a sample of its block cannot be read, and the message says why; others can.
TEST_F(ShardsTest, AFlippedBitIsNamed) {
  std::mt19937 generator(1);
  for (int round = 0; round < test::effort(1000, 200); ++round) {
    const std::size_t at = generator() % static_cast<std::size_t>(kTrain * kShape.features());
    const std::string name = shard_file("train", at / kSizes.shard_bytes);
    flip(name, at % kSizes.shard_bytes);
    const auto sample = static_cast<std::int32_t>(at / static_cast<std::size_t>(kShape.features()));
    const std::string text = "sample " + std::to_string(sample) + " was wanted";
    const std::string block = "block " + std::to_string(at / kSizes.block_bytes) + " of";
    const Dataset train = load().train;
    if (round % 10 == 0) train.store->prefetch({sample});
    expect_error<DataError>([&] { test::image_of(train, sample); }, {name, block, text});
    EXPECT_NO_THROW(test::image_of(train, (sample + 50) % 100));
    flip(name, at % kSizes.shard_bytes);
  }
  EXPECT_NO_THROW(load());
  flip("train-00001.shard", 600);
  expect_error<DataError>(
      [&] { test::image_of(load().train, 25); },
      {"train-00001.shard: bytes 512 to 1023 (block 5 of the half) are not those that the set was made with: "
       "their "
       "SHA-256 differs. They hold samples 24 to 29, and sample 25 was wanted; copy the set again"});
}

TEST_F(ShardsTest, ProcessesOfAHostCompareABlockOnceBetweenThem) {
  const Dataset one = load().train, other = load().train, stranger = load().train;
  const auto checks = one.store->make_shared_checks();
  ASSERT_NE(checks, nullptr);
  one.store->share_checks(checks);
  other.store->share_checks(MemoryFile::open(checks->offer()));
  EXPECT_EQ(one.store->make_shared_checks(), nullptr) << "once is enough";
  stranger.store->share_checks(MemoryFile::of_zeros(1));  // memory of another set
  EXPECT_NO_THROW(test::image_of(one, 0));
  flip(shard_file("train", 0), 0);
  flip(shard_file("train", 2), 2 * kSizes.block_bytes);
  EXPECT_NO_THROW(test::image_of(other, 0));
  expect_error<DataError>([&] { test::image_of(stranger, 0); }, {"sample 0 was wanted"});
  expect_error<DataError>([&] { test::image_of(other, 50); }, {"sample 50 was wanted"});
}

TEST_F(ShardsTest, EveryOtherDamageIsNamed) {
  for (const auto& entry : fs::directory_iterator(directory())) {
    const std::string name = entry.path().filename().string();
    if (name == "train-names.jsonl") continue;
    SCOPED_TRACE(name);
    const Bytes whole = bytes(name);
    const auto refused = [&](const Bytes& damaged) {
      test::write_file(file(name), damaged);
      expect_error<DataError>([&] { load(); }, {name.c_str()});
    };
    refused(Bytes(whole.begin(), whole.end() - 1));
    Bytes longer = whole;
    longer.push_back(0);
    refused(longer);
    refused({});
    if (name.ends_with(".shard")) {
      test::write_file(file(name), whole);
      continue;
    }
    for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 50) {
      Bytes damaged = whole;
      damaged[at] ^= 4;
      refused(damaged);
    }
    fs::remove(file(name));
    expect_error<MissingDataError>([&] { load(); },
                                   {name == "shards.index" ? directory().c_str() : name.c_str()});
    test::write_file(file(name), whole);
  }
  load();
}

TEST_F(ShardsTest, WhatIsNoFileIsRefused) {
  const fs::path shard = file("train-00003.shard");
  fs::rename(shard, path("elsewhere"));
  expect_error<MissingDataError>([&] { load(); }, {"train-00003.shard: no such file"});
  fs::create_directory(shard);
  expect_error<DataError>([&] { load(); }, {"train-00003.shard: not a regular file"});
  fs::remove(shard);
  ASSERT_EQ(::mkfifo(shard.c_str(), 0600), 0);
  expect_error<DataError>([&] { load(); }, {"train-00003.shard: not a regular file"});
  fs::remove(shard);
  fs::create_symlink(shard, shard);
  expect_error<IoError>([&] { load(); }, {"train-00003.shard: cannot be opened"});
  fs::remove(shard);
  fs::create_symlink(path("elsewhere"), shard);
  EXPECT_NO_THROW(load()) << "a link to a file on another disk";
}

TEST_F(ShardsTest, AFileThatIsCutWhileItIsReadIsNamed) {
  const Dataset train = load().train;
  fs::resize_file(file("train-00002.shard"), 100);
  expect_error<DataError>(
      [&] { test::image_of(train, 50); },
      {"train-00002.shard: ends at byte 1535 or before, and was longer when it was opened"});
}

TEST_F(ShardsTest, AnIndexThatLiesIsRefused) {
  const std::string whole = test::text_in(file("shards.index")), head = whole.substr(0, whole.find('\n'));
  const auto refused = [&](const std::string& from, const std::string& to, const char* part) {
    SCOPED_TRACE(to);
    std::string text = head;
    ASSERT_NE(text.find(from), text.npos) << from;
    text.replace(text.find(from), from.size(), to);
    text += "\n" + hex(sha256(std::as_bytes(std::span(text)))) + "\n";
    expect_error<DataError>([&] { parse_shard_index(text, "lies"); }, {"lies: ", part});
  };
  refused(R"("lockstep_shards":1)", R"("lockstep_shards":4)",
          "version 4 of the format, and this program reads 3");
  refused(R"("lockstep_shards":1)", R"("lockstep_shards":0)", "lockstep_shards is not a whole number in 1..");
  refused(R"("values":[)", R"("values":[-)", "train.values is not a sum for each channel");
  refused(R"("values":)", R"("values":7,"v":)", "train.values is not a sum for each channel");
  refused(R"("blocks_sha256":)", R"("blocks_sha256":7,"b":)", "train.blocks_sha256 is not a SHA-256");
  for (const char* block : {"256", "134217728"})
    refused(R"("block_bytes":512)", std::string(R"("block_bytes":)") + block,
            "block_bytes is not a whole number in 512..67108864; make the set again, or copy it again");
  refused(R"("lockstep_shards":1)", R"("lockstep_shards":3,"several_labels":1)",
          "several_labels is not true");
  refused(R"("lockstep_shards":1)", R"("lockstep_shards":3,"several_labels":true)", "label_count is missing");
  refused(R"("lockstep_shards":1)", R"("lockstep_shards":3,"validation":7)", "is not a JSON object");
  refused(R"("lockstep_shards":1)", R"("lockstep_shards":2)", "sample is missing");
  refused(R"("lockstep_shards":1)", R"("lockstep_shards":2,"sample":"float64")",
          R"(sample is not "float32")");
  refused(R"("channels":3)", R"("channels":0)", "channels");
  refused(R"("channels":3)", R"("channels":4)", "values is not a sum for each channel");
  refused(R"("channels":3)", R"("channel":3)", "channels is missing");
  refused(R"("height":5)", R"("height":16777216)", "above 16777216");
  refused(R"("classes":1000)", R"("classes":999)", "class_names has 1,000 names, and there are 999 classes");
  refused(R"("classes":1000)", R"("classes":4294967296)", "classes is not a whole number in 1..1000000");
  refused(R"("class 7")", R"("class 8")", "a name twice");
  refused(R"("class 7")", R"("\u001b[2J")", "printable");
  refused(R"("block_bytes":512)", R"("block_bytes":513)", "power of two");
  refused(R"("block_bytes":512)", R"("block_bytes":0)", "block_bytes");
  refused(R"("shard_bytes":2048)", R"("shard_bytes":2049)", "whole blocks");
  refused(R"("samples":100)", R"("samples":-1)", "train.samples");
  refused(R"("samples":100)", R"("samples":1e2)", "train.samples");
  refused(R"("samples":100)", R"("samples":18446744073709551615)", "train.samples");
  refused(R"("samples":100)", R"("samples":2147483647)", "more than 100000 files");
  refused(R"("samples":100)", R"("samples":10)", "not sums of such pixels");
  refused(R"("labels_sha256":")", R"("labels_sha256":"0)", "not a SHA-256");
  refused(head, "[]", "not a JSON object");
  expect_error<DataError>([] { parse_shard_index(std::string((std::size_t{32} << 20) + 1, ' '), "lies"); },
                          {"lies: more than 33554432 bytes"});
  ShardIndex largest = parse_shard_index(whole, "x");
  largest.shape = {1, 4096, 4096};
  largest.is_fp32 = true;
  largest.train = largest.test = {.samples = 1};
  EXPECT_EQ(parse_shard_index(to_text(largest), "x").shape, largest.shape);
}

TEST_F(ShardsTest, ALabelThatThereIsNoClassForIsRefused) {
  ShardIndex index = parse_shard_index(test::text_in(file("shards.index")), "index");
  for (const std::uint32_t label : {1000U, 0xFFFFFFFFU}) {
    Bytes labels = bytes("train-labels.u32");
    std::memcpy(labels.data() + std::size_t{4} * 17, &label, sizeof label);
    index.train.labels = sha256(std::as_bytes(std::span(labels)));
    write_text("set/shards.index", to_text(index));
    test::write_file(file("train-labels.u32"), labels);
    const std::string text =
        "train-labels.u32: label " + std::to_string(label) + " of sample 17 is not in 0..999";
    expect_error<DataError>([&] { load(); }, {text});
  }
  fs::resize_file(file("train-labels.u32"), 399);
  expect_error<DataError>([&] { load(); },
                          {"train-labels.u32: 399 bytes, and the index says 400; copy the set"});
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

/// A disk that no other process writes to.
class OwnDisk : public MemoryEnv {
 public:
  std::unique_ptr<FileClaim> claim(const std::string& /*path*/) override { return std::make_unique<Claim>(); }

 private:
  struct Claim : FileClaim {
    void write(const std::string& /*text*/) override {}
    bool has_its_name() override { return true; }
  };
};

/// Names may be on the disk in any order, but none before the bytes that it stands for.
TEST(ShardsOnADiskTest, FilesOutlastAPowerLossOnceTheyHaveTheirNames) {
  OwnDisk env;
  {
    ShardWriter writer(env, "set", {1, 32, 32}, {"one", "two"}, {.sizes = kSizes});
    for (std::uint8_t i = 1; i <= 10; ++i)
      writer.add(i <= 5 ? SetHalf::kTrain : SetHalf::kTest, Bytes(1024, i), i % 2, "p/" + std::to_string(i));
    writer.publish();
  }
  const MemoryDisk& whole = env.disk();
  const auto contents = [](const MemoryDisk& disk, const std::string& name) {
    const int node = disk.find("set/" + name);
    return node < 0 ? std::nullopt : std::optional(disk.nodes[static_cast<std::size_t>(node)].data);
  };
  std::size_t found = 0;
  for (std::size_t ops = 0; ops <= env.trace().size(); ++ops) {
    if (ops < env.trace().size() && (ops == 0 || env.trace()[ops - 1].kind != DiskOp::Kind::kRename))
      continue;
    for (std::uint32_t variant = 0; variant < 20; ++variant) {
      const MemoryDisk left =
          after_power_loss({}, std::span(env.trace()).first(ops), PowerLoss::variant(variant));
      for (const std::string& name : env.list("set"))
        if (const auto data = contents(left, name)) {
          ++found;
          ASSERT_EQ(*data, *contents(whole, name)) << name << " after " << ops << " operations, " << variant;
        }
    }
  }
  EXPECT_EQ(env.list("set").size(),
            13U);  // three shards, labels, blocks and names of each half, and the index
  EXPECT_GT(found, 13U * 20);
}

TEST_F(ShardsTest, ASetOfOneClassIsRefused) {
  ShardWriter writer(Env::posix(), directory(), {1, 2, 2}, {"one"}, {.replace = true});
  for (const SetHalf half : {SetHalf::kTrain, SetHalf::kTest}) writer.add(half, Bytes(4), 0);
  writer.publish();
  expect_error<DataError>([&] { load(); }, {"all samples are of class 'one'"});
}

TEST_F(ShardsTest, SizesThatNoIndexMayHaveAreRefusedBeforeAnythingIsWritten) {
  const auto refused = [&](const ImageShape& shape, std::vector<std::string> names, const char* part) {
    expect_error<DataError>([&] { ShardWriter(Env::posix(), path("other"), shape, std::move(names), {}); },
                            {part});
  };
  refused({0, 5, 5}, {"one"}, "channels");
  refused({1, 5000, 5000}, {"one"}, "channels times height and width");
  refused(kShape, {}, "classes");
  refused(kShape, {"one", "one"}, "a name twice");
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

/// Its labels, classes and normalisation, too.
TEST_F(ShardsTest, AnySetOfImagesIsWrittenInShards) {
  const std::string from = path("idx"), to = path("shards");
  test::write_image_set(from, 20, 5);
  EXPECT_FALSE(find_whole_set(directory_.path().string()).has_value());
  const auto found = find_whole_set(from);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->set, "idx");
  EXPECT_EQ(find_whole_set("synthetic")->set, "synthetic");
  const ShardIndex index = write_in_shards(Env::posix(), *found, to, {});
  EXPECT_EQ(index.train.samples, 20);
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
