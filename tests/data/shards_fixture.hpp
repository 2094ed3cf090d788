// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A set in shards, written sample after sample, with one label each or several.
#pragma once

#include "data/sets/shards.hpp"
#include "tests/data/idx_fixture.hpp"

namespace lockstep::shards_test {

inline constexpr ImageShape kShape{3, 5, 7};  // 105 bytes: samples lie across blocks and files
inline constexpr ShardSizes kSizes{.block_bytes = 512, .shard_bytes = 2048};
inline constexpr std::int64_t kTrain = 100, kTest = 30, kClasses = 1000;

inline test::Bytes image_of(std::int64_t sample) {
  std::mt19937 generator(static_cast<unsigned>(sample));
  test::Bytes image(static_cast<std::size_t>(kShape.features()));
  for (std::uint8_t& byte : image) byte = static_cast<std::uint8_t>(generator());
  return image;
}

inline std::int32_t label_of(std::int64_t sample) {
  return static_cast<std::int32_t>(sample * 7919 % kClasses);
}

inline std::vector<std::string> class_names() {
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
  std::filesystem::path file(const std::string& name) const {
    return std::filesystem::path(directory()) / name;
  }
  DatasetOptions options() const { return {.set = "shards", .root = directory()}; }
  TrainTestData load() const { return load_dataset(options()); }
  test::Bytes bytes(const std::string& name) const { return test::bytes_of(test::text_in(file(name))); }
  void flip(const std::string& name, std::size_t offset) {
    test::Bytes all = bytes(name);
    all.at(offset) ^= 1;
    test::write_file(file(name), all);
  }
};

/// Some with many labels, some with none.
inline std::vector<std::uint32_t> labels_of(std::int64_t sample) {
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

}  // namespace lockstep::shards_test
