// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets in shards that are damaged, or lie: nothing else passes for what was written.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "data/sample_store.hpp"
#include "data/stored_file.hpp"
#include "tests/data/shards_fixture.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/test_settings.hpp"

#include <sys/stat.h>

#include <future>

namespace lockstep::shards_test {
namespace {

namespace fs = std::filesystem;
using test::Bytes;

TEST(PixelSumsTest, AreThoseOfSomePixelsOrNot) {
  const auto are = [](std::uint64_t values, std::uint64_t squares) {
    return are_possible({.values = {1, values}, .squares = {1, squares}}, 2);
  };
  EXPECT_TRUE(are(510, 130'050) && are(10, 2550) && are(10, 50));
  EXPECT_FALSE(are(511, 130'305));  // brighter than white
  EXPECT_FALSE(are(10, 2551));      // squares above 255 times the values
  EXPECT_FALSE(are(10, 49));        // a variance below 0
}

/// The index says what it is told, whatever the file holds.
TEST_F(ShardedLabelsTest, LyingFilesAreRefused) {
  const Bytes kept = bytes("train-labels.u32");
  const std::string index = test::text_in(file("shards.index"));
  const auto fails = [&](const std::vector<std::pair<std::size_t, std::uint8_t>>& changes, const char* part) {
    Bytes labels = kept;
    for (const auto& [at, value] : changes) labels.at(at) = value;
    test::write_file(file("train-labels.u32"), labels);
    ShardIndex lying = parse_shard_index(index, "index");
    lying.train.labels = sha256(std::as_bytes(std::span(labels)));
    write_text("set/shards.index", to_text(lying));
    expect_error<DataError>([&] { load(); }, {"train-labels.u32: ", part});
  };
  fails({{0, 200}}, "the labels of sample 0 are not 200 different ones");      // 2 labels: 1 and 4
  fails({{0, 0}}, "holds labels of more samples than the 20 that there are");  // labels become counts
  fails({{4, 4}}, "the labels of sample 0 are not 2 different ones");          // one label twice
  fails({{9, 200}}, "in 0..999, ascending");                                   // above all classes
  fails({{0, 3}, {12, 5}}, "holds labels of fewer samples than the 20 that there are");  // 1, 4 and 5
  fails({{kept.size() - 16, 4}}, "the labels of sample 19 are not 4 different ones");  // 3, 6 and 9, no more
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

TEST_F(ShardsTest, ABlockIsComparedBeforeItsFirstByteIsRead) {
  const Bytes contents = {1, 2, 3, 4, 5, 6, 7, 8};
  write("bytes", contents);
  const ShardStore store(
      ShardStore::Contents{.files = {path("bytes")},
                           .samples = 8,
                           .sample_bytes = 1,
                           .block_bytes = 4,
                           .file_bytes = 8,
                           .blocks = {sha256(std::as_bytes(std::span(contents).first(4))), Sha256Digest{}},
                           .sums = {}});
  Bytes byte(1);
  store.read(std::vector<std::int64_t>{3}, byte);
  EXPECT_EQ(byte, Bytes{4});
  expect_error<DataError>([&] { store.read(std::vector<std::int64_t>{4}, byte); },
                          {"bytes 4 to 7 (block 1 of the half)", "sample 4 was wanted"});
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
  fs::resize_file(file("train-00005.shard"), 1);
  expect_error<DataError>([&] { load(); },
                          {"train-00005.shard: 1 byte, and the index says 260; copy the set"});
}

TEST_F(ShardsTest, AFileThatIsCutWhileItIsReadIsNamed) {
  const Dataset train = load().train;
  fs::resize_file(file("train-00002.shard"), 100);
  expect_error<DataError>(
      [&] { test::image_of(train, 50); },
      {"train-00002.shard: ends at byte 1535 or before, and was longer when it was opened"});
}

/// A place that no file has fails as a disk does: it is tried again, for half a second.
TEST_F(ShardsTest, AReadThatTakesItsTimeIsKnownMeanwhile) {
  const StoredFile index(file("shards.index"));
  std::uint8_t byte = 0;
  auto reading = std::async(std::launch::async, [&] { index.read(std::uint64_t{1} << 63, {&byte, 1}); });
  std::optional<ReadUnderWay> read;
  while (!read && reading.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout)
    read = longest_read();
  EXPECT_THROW(reading.get(), IoError);
  EXPECT_EQ(read.value_or(ReadUnderWay{}).file, index.name());
  EXPECT_FALSE(longest_read());
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
  refused(R"("height":5)", R"("height":16777216)", "channels times height and width is above 16777216");
  refused(R"("classes":1000)", R"("classes":999)", "class_names has 1,000 names, and there are 999 classes");
  refused(R"("classes":1000)", R"("classes":4294967296)", "classes is not a whole number in 1..1000000");
  refused(R"("class 7")", R"("class 8")", "class_names has a name twice");
  refused(R"("class 7")", R"("\u001b[2J")", "class_names is not a list of printable names; make");
  refused(R"("block_bytes":512)", R"("block_bytes":513)", "block_bytes is not a power of two");
  refused(R"("block_bytes":512)", R"("block_bytes":0)", "block_bytes");
  refused(R"("shard_bytes":2048)", R"("shard_bytes":2049)", "shard_bytes is not a number of whole blocks");
  refused(R"("samples":100)", R"("samples":-1)", "train.samples");
  refused(R"("samples":100)", R"("samples":1e2)", "train.samples");
  refused(R"("samples":100)", R"("samples":18446744073709551615)", "train.samples");
  refused(R"("samples":100)", R"("samples":2147483647)",
          "train.samples is so many that there are more than 100000 files");
  refused(R"("samples":100)", R"("samples":1950477)", "more than 100000 files");  // 85 bytes in another one
  refused(R"("samples":100)", R"("samples":10)", "train.squares and values are not sums of such pixels");
  refused(R"("labels_sha256":")", R"("labels_sha256":"0)", "train.labels_sha256 is not a SHA-256");
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

}  // namespace
}  // namespace lockstep::shards_test
