// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets in shards: what was written is read, from disk as from memory, and nothing else passes for it.
#include "data/sets/shards.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "tests/data/idx_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace lockstep::shards_test {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::expect_error;

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

class ShardsTest : public ::testing::Test {
 protected:
  ShardsTest() { write(false); }

  void write(bool replace) {
    ShardWriter writer(Env::posix(), directory(), kShape, class_names(),
                       {.replace = replace, .sizes = kSizes});
    for (std::int64_t i = 0; i < kTrain; ++i)
      writer.add_train(image_of(i), static_cast<std::uint32_t>(label_of(i)),
                       "p/" + std::to_string(i) + ".png");
    for (std::int64_t i = 0; i < kTest; ++i)
      writer.add_test(image_of(kTrain + i), static_cast<std::uint32_t>(label_of(kTrain + i)));
    writer.publish();
  }
  std::string directory() const { return (directory_.path() / "set").string(); }
  fs::path file(const std::string& name) const { return fs::path(directory()) / name; }
  DatasetOptions options() const { return {.set = "shards", .root = directory()}; }
  TrainTestData load() const { return load_dataset(options()); }
  Bytes bytes(const std::string& name) const {
    std::ifstream stream(file(name), std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(stream), {});
  }
  void flip(const std::string& name, std::size_t offset) {
    Bytes all = bytes(name);
    all.at(offset) ^= 1;
    test::write_file(file(name), all);
  }

  test::TemporaryDirectory directory_;
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
    const ImageRows rows(half, {&index, 1});
    EXPECT_TRUE(std::ranges::equal(rows[0], image_of(i))) << i;
    EXPECT_EQ(half.labels[static_cast<std::size_t>(index)], label_of(i));
  }
}

}  // namespace
}  // namespace lockstep::shards_test
