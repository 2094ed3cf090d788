// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets in CIFAR's binary format, made small, and whatever may be wrong with their files.
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "tests/data/idx_fixture.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::expect_error;
using test::operator+;

/// Three images with CIFAR-10's shape; each test damages one file.
class CifarSetTest : public testing::Test {
 protected:
  CifarSetTest() {
    for (int i = 1; i <= 5; ++i) write("data_batch_" + std::to_string(i) + ".bin", records(2, 2 * i - 2));
    write("test_batch.bin", records(3, 5));
  }
  /// Labels first, first + 1, ...; pixel p is p plus the label.
  static Bytes records(int count, int first) {
    Bytes bytes;
    for (int i = 0; i < count; ++i) {
      bytes.push_back(static_cast<std::uint8_t>((first + i) % 10));
      for (int p = 0; p < 3072; ++p) bytes.push_back(static_cast<std::uint8_t>(p + first + i));
    }
    return bytes;
  }
  void write(const std::string& name, const Bytes& bytes) const {
    test::write_file(directory_.path() / name, bytes);
  }
  TrainTestData load() const { return load_dataset({.set = "cifar10", .root = directory_.path().string()}); }
  void expect_failure(std::initializer_list<const char*> parts) const {
    expect_error<DataError>([this] { load(); }, parts);
  }

  test::TemporaryDirectory directory_;
};

TEST_F(CifarSetTest, FilesStandOneAfterAnother) {
  const TrainTestData data = load();
  EXPECT_EQ(data.train.shape, (ImageShape{3, 32, 32}));
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(data.test.labels, (std::vector<std::int32_t>{5, 6, 7}));
  for (std::size_t i = 0; i < 10; ++i)
    for (std::size_t p = 0; p < 3072; ++p) ASSERT_EQ(data.train.images[i * 3072 + p], (p + i) % 256);
  EXPECT_EQ(data.class_names.at(9), "truck");
  EXPECT_EQ(data.normalisation.mean, (std::vector<double>{0.4914, 0.4822, 0.4465}));
  EXPECT_EQ(data.train.scales.scale.size(), 3U);
}

TEST_F(CifarSetTest, ItLiesInTheFolderOfItsArchiveToo) {
  const fs::path inner = directory_.path() / "cifar-10-batches-bin";
  fs::create_directory(inner);
  for (const auto& entry : fs::directory_iterator(directory_.path()))
    if (entry.is_regular_file()) fs::rename(entry.path(), inner / entry.path().filename());
  EXPECT_EQ(load().directory, inner.string());
}

TEST_F(CifarSetTest, FilesMayBePackedAndNamesBesideThem) {
  write("data_batch_3.bin.gz", test::gzip(records(2, 4)));
  fs::remove(directory_.path() / "data_batch_3.bin");
  const std::string names = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n";
  write("batches.meta.txt", Bytes(names.begin(), names.end()));
  EXPECT_EQ(load().train.size(), 10);
  EXPECT_EQ(load().class_names.at(9), "j");
}

TEST_F(CifarSetTest, WhatIsNoWholeNumberOfRecordsIsAnErrorAtItsOffset) {
  write("data_batch_2.bin", records(2, 2) + Bytes(100));
  expect_failure({"data_batch_2.bin: offset 6146: the last record has 100 of 3073 bytes"});
  write("data_batch_2.bin", {});
  expect_failure({"data_batch_2.bin: offset 0: the file is empty"});
  write("data_batch_2.bin", {1});
  expect_failure({"data_batch_2.bin: offset 0: the last record has 1 of 3073 bytes"});
}

TEST_F(CifarSetTest, ALabelOutOfRangeIsAnErrorAtItsOffset) {
  Bytes bytes = records(3, 0);
  bytes[3073] = 10;
  write("test_batch.bin", bytes);
  expect_failure({"test_batch.bin: offset 3073: label 10 is not in 0..9"});
}

TEST_F(CifarSetTest, GzipDamageIsAnError) {
  fs::remove(directory_.path() / "data_batch_1.bin");
  Bytes packed = test::gzip(records(2, 0));
  packed.resize(packed.size() / 2);
  write("data_batch_1.bin.gz", packed);
  expect_failure({"data_batch_1.bin.gz", "offset"});
}

TEST_F(CifarSetTest, AMissingFileIsMissingData) {
  fs::remove(directory_.path() / "data_batch_4.bin");
  expect_error<MissingDataError>([this] { load(); }, {"lacks data_batch_4.bin", "launch/get-data cifar10"});
}

/// CIFAR-100: a coarse label goes before the fine one.
TEST(CifarFineSetTest, TheFineLabelIsTaken) {
  const test::TemporaryDirectory directory;
  const auto load = [&] { return load_dataset({.set = "cifar100", .root = directory.path().string()}); };
  Bytes train, test;
  for (int i = 0; i < 4; ++i) {
    for (Bytes* half : {&train, &test}) {
      half->push_back(static_cast<std::uint8_t>(19 - i));
      half->push_back(static_cast<std::uint8_t>(96 + i));
      half->insert(half->end(), 3072, static_cast<std::uint8_t>(i));
    }
  }
  test::write_file(directory.path() / "train.bin", train);
  test::write_file(directory.path() / "test.bin", test);
  const TrainTestData data = load();
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{96, 97, 98, 99}));
  EXPECT_EQ(data.test.images[3 * 3072], 3);
  EXPECT_EQ(data.class_names.size(), 100U);
  EXPECT_EQ(data.class_names.at(99), "worm");
  test[1] = 100;
  test::write_file(directory.path() / "test.bin", test);
  expect_error<DataError>(load, {"test.bin: offset 1: label 100 is not in 0..99"});
  test.pop_back();
  test[1] = 0;
  test::write_file(directory.path() / "test.bin", test);
  expect_error<DataError>(load, {"test.bin: offset 9222: the last record has 3073 of 3074 bytes"});
}

}  // namespace
}  // namespace lockstep
