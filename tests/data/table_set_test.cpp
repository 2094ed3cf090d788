// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets of tables: normalised, in memory or on disk, with the same bits.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "data/batch_loader.hpp"
#include "data/normalisation.hpp"
#include "data/sets/leave_out.hpp"
#include "data/sets/shards.hpp"
#include "tests/data/npz_fixture.hpp"
#include "tests/data/own_disk.hpp"
#include "tests/data/table_fixture.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::table_test {
namespace {

TEST_F(TableTest, RowsBecomeANormalisedSet) {
  write_text("t.csv", kTable);
  options_.table.label = "kind";
  const TableConversion done = convert("t.csv", "set");
  EXPECT_EQ(done.class_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(done.train, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(done.test, (std::vector<std::int64_t>{1, 1}));
  const TrainTestData data = load("set");
  EXPECT_EQ(data.train.shape.channels, 2);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    sum += data.train.features.data()[2 * i];
    squares += std::pow(data.train.features.data()[2 * i], 2);
    EXPECT_EQ(data.train.features.data()[2 * i + 1], 0);  // a column of equal numbers
  }
  EXPECT_NEAR(sum, 0, 1e-6);
  EXPECT_NEAR(squares / 4, 1, 1e-6);
  EXPECT_EQ(data.normalisation.std[1], 1);
  const float tested = data.test.features.data()[0];
  const double number = tested * data.normalisation.std[0] + data.normalisation.mean[0];
  EXPECT_NEAR(number, std::round(number), 1e-5);  // normalised as those that are trained on
}

TEST_F(TableTest, AValidationHalfIsNormalisedAsTheOthers) {
  write_text("t.csv", kTable);
  options_.table.label = "kind";
  options_.split.validation = {.samples = 1};
  const TableConversion done = convert("t.csv", "set");
  EXPECT_EQ(done.train, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(done.validation, (std::vector<std::int64_t>{1, 1}));
  const TrainTestData data =
      load_dataset({.set = "table", .root = path("set"), .validation = {.is_files = true}});
  ASSERT_EQ(data.validation.size(), 2);
  const double number =
      data.validation.features.data()[0] * data.normalisation.std[0] + data.normalisation.mean[0];
  EXPECT_NEAR(number, std::round(number), 1e-5);
  EXPECT_TRUE(contains(index_of("set"), {R"({"lockstep_shards":3,"sample":"float32","channels":2)"}));
}

TEST_F(TableTest, ASetOfNumbersIsNoSetOfPictures) {
  write_text("t.csv", kTable);
  options_.table.label = "kind";
  convert("t.csv", "set");
  EXPECT_TRUE(contains(index_of("set"), {R"({"lockstep_shards":2,"sample":"float32","channels":2)"}));
  expect_error<DataError>([&] { load_dataset({.set = "shards", .root = path("set")}); }, {"data.set=table"});
  write_in_shards(Env::posix(), {.set = "synthetic", .train_samples = 4, .test_samples = 2}, path("digits"),
                  {});
  EXPECT_EQ(index_of("digits").find("sample\":"), std::string::npos);  // as version 1 has always been
  EXPECT_TRUE(contains(index_of("digits"), {R"({"lockstep_shards":1,"channels")"}));
  expect_error<DataError>([&] { load_dataset({.set = "table", .root = path("digits")}); },
                          {"data.set=shards"});
}

/// Whatever part of it: the numbers that a network sees.
std::vector<float> batch_of(const Dataset& set) {
  constexpr std::int32_t kSamples = 40;
  std::vector<std::int32_t> indices, labels(kSamples);
  for (std::int32_t i = 0; i < kSamples; ++i)
    indices.push_back(static_cast<std::int32_t>(i * (set.size() - 1) / (kSamples - 1)));
  std::vector<float> x(static_cast<std::size_t>(set.shape.features()) * 48);
  const BatchLoader loader(set);
  loader.prefetch(indices);
  loader.load(indices, 48, x.data(), labels.data(), 0);
  return x;
}

TEST_F(TableTest, ALargeOneStaysOnDiskAndHasTheSameBits) {
  constexpr int kFeatures = 1000, kRows = 17'000;  // 65 MiB
  std::vector<float> row(kFeatures);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(row.data()), row.size() * sizeof(float));
  TableColumns columns;
  for (int k = 0; k < kFeatures; ++k) columns.all.push_back({.name = std::to_string(k)});
  {
    ShardWriter writer(Env::posix(), path("set"), {kFeatures / 10, 2, 5}, {"one", "two"},
                       {.is_fp32 = true, .columns = to_text(columns)});
    for (int i = 0; i < kRows; ++i) {
      for (int k = 0; k < kFeatures; ++k)
        row[static_cast<std::size_t>(k)] = static_cast<float>((i * 31 + k * 17) % 1009) / 7;
      writer.add(i % 50 == 0 ? SetHalf::kTest : SetHalf::kTrain, bytes, static_cast<std::uint32_t>(i % 2));
    }
    writer.publish();
  }
  for (const HoldOut& held_out : {HoldOut{}, HoldOut{.samples = 3000}}) {
    DatasetOptions options{.set = "table", .root = path("set"), .test_samples = 100, .validation = held_out};
    const TrainTestData on_disk = load_dataset(options);
    options.in_memory = true;
    const TrainTestData in_memory = load_dataset(options);
    EXPECT_TRUE(on_disk.train.rows != nullptr && on_disk.train.features.size() == 0);
    EXPECT_TRUE(in_memory.train.rows == nullptr && in_memory.train.features.size() > 0);
    EXPECT_EQ(on_disk.normalisation, in_memory.normalisation);
    EXPECT_EQ(on_disk.train.quick, in_memory.train.quick);
    EXPECT_EQ(batch_of(on_disk.train), batch_of(in_memory.train));
    EXPECT_EQ(batch_of(on_disk.test), batch_of(in_memory.test));
    if (!held_out.is_given()) continue;
    EXPECT_EQ(batch_of(on_disk.validation), batch_of(in_memory.validation));
  }
  std::ranges::reverse(columns.all);
  const Dataset reversed =
      load_dataset(
          {.set = "table", .root = path("set"), .mean = {0}, .std = {1}, .columns = to_text(columns)})
          .train;
  ASSERT_EQ(reversed.features.size(), std::size_t{16'660} * kFeatures);
  EXPECT_EQ(reversed.features.data()[0], 870.0F / 7) << "(31 + 999 * 17) % 1009";
  const Dataset train =
      load_dataset({.set = "table", .root = path("set"), .mean = {1e-3}, .std = {1e-38}}).train;
  const std::int32_t sample = 7;
  const auto read = [&] { FeatureRows(train, std::span(&sample, 1)); };
  expect_error<DataError>(read, {"table train: value", "of sample 7 is", "too far from the mean"});
}

/// A file of holes. Its 65,536 rows of 64 MiB are refused before anything of them is read.
TEST_F(TableTest, OneThatDoesNotFitIntoMemoryIsRefused) {
  constexpr int kRows = 1 << 16;
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 42;
  const test::Bytes labels(sizeof(std::int32_t) * kRows), blocks(sizeof(Sha256Digest) * kRows);
  ShardIndex index;
  index.shape = {1, 4096, 4096};
  index.is_fp32 = true;
  index.classes = 2;
  index.sizes = {.block_bytes = kBytes / kRows, .shard_bytes = kBytes};
  index.train = {.samples = kRows,
                 .labels = sha256(std::as_bytes(std::span(labels))),
                 .blocks = sha256(std::as_bytes(std::span(blocks)))};
  index.test = {.samples = 1};
  write_text("set/shards.index", to_text(index));
  write("set/train-labels.u32", labels);
  write("set/train-blocks.sha256", blocks);
  write("set/train-00000.shard", {});
  std::error_code error;
  std::filesystem::resize_file(path("set/train-00000.shard"), kBytes, error);
  if (error) GTEST_SKIP() << "no file here can have holes of terabytes: " << error.message();
  expect_error<MemoryError>(
      [&] { load_dataset({.set = "table", .root = path("set"), .in_memory = true}); },
      {"not enough memory: the table in " + path("set").string() + " would take 4.0 TiB, and ",
       "; convert fewer rows or columns of it"});
}

TEST(NormaliseFeaturesTest, NumbersThatHardlyDifferHaveTheirDeviationAndEqualOnesNone) {
  Dataset set{.name = "t", .shape = {2, 1, 1}, .classes = 2, .labels = {0, 1}};
  set.features = AlignedBuffer<float>(4);
  std::ranges::copy(std::array{1.0F, 5.0F, 2.0F, 5.0F}, set.features.data());
  EXPECT_EQ(measure(set), (Normalisation{.mean = {1.5, 5}, .std = {0.5, 1}}));
}

TEST_F(TableTest, ANumberBeyondFp32IsNamedWithItsHalfAndPlace) {
  {
    ShardWriter writer(Env::posix(), path("set").string(), {1, 1, 1}, {"one", "two"}, {.is_fp32 = true});
    for (const float number : {1.0F, 1.0F, 9.0F}) {
      const std::span bytes(reinterpret_cast<const std::uint8_t*>(&number), sizeof number);
      writer.add(SetHalf::kTrain, bytes, number > 1 ? 1 : 0);
      writer.add(SetHalf::kTest, bytes, 0);
    }
    writer.publish();
  }
  const auto fails = [&](const char* leave_out, const char* part) {
    DatasetOptions options{.set = "table", .root = path("set"), .mean = {0}, .std = {1e-38}};
    options.leave_out = std::make_shared<const LeaveOutList>(parse_leave_out(leave_out, "out.txt"));
    expect_error<DataError>([&] { load_dataset(options); }, {part});
  };
  fails("0", "set: table train: value 0 of sample 2 is 9, too far from the mean 0");
  fails("2", "set: table test: value 0 of sample 2 is 9, too far from the mean 0");
}

TEST(NormaliseFeaturesTest, ANumberBeyondFp32IsNamed) {
  std::array<float, 4> features = {0, 0, 0, 1};
  expect_error<DataError>(
      [&] {
        normalise_features(features, {2, 1, 1}, {.mean = {0}, .std = {1e-39}}, "t", 4);
      },
      {"t: value 1 of sample 5 is 1, too far from the mean 0 for the standard deviation 1e-39"});
  const Normalisation by{.mean = {0}, .std = {1, 1e-39}};
  EXPECT_EQ(find_beyond_fp32(std::array<float, 4>{1, 1, 0, 1}, {2, 1, 2}, by), 3);
  EXPECT_EQ(find_beyond_fp32(std::array<float, 4>{1, 1, 0, 0}, {2, 1, 2}, by), -1);
}

TEST_F(TableTest, OneThatChangesBetweenItsReadingsIsRefused) {
  const std::string rows = kTable;
  options_.table = {.from = path("t.csv"), .label = "kind"};
  options_.to = "set";
  for (const std::string& later :
       {rows.substr(0, rows.size() - 6), rows + "9,a,9\n", "w,kind,h\n1,a" + rows.substr(12)}) {
    write_text("t.csv", rows);
    test::OwnDisk env;
    env.on_call = [&, is_changed = false](const std::string&, const std::string&) mutable {
      if (!std::exchange(is_changed, true)) write_text("t.csv", later);
    };
    expect_error<DataError>([&] { convert_table(env, options_); },
                            {"t.csv: changed while it was read; convert it again"});
  }
}

TEST_F(TableTest, LabelsOfMoreThanAMillionClassesAreRefused) {
  std::vector<std::uint32_t> labels(1'000'001);
  std::iota(labels.begin(), labels.end(), 0U);
  const std::string_view bytes(reinterpret_cast<const char*>(labels.data()), 4 * labels.size());
  write("t.npz", npz_test::npz({{"x", "|u1", "1000001, 1", std::string(labels.size(), 'x')},
                                {"y", "<u4", "1000001", std::string(bytes)}}));
  expect_error<DataError>([&] { convert("t.npz", "set"); },
                          {"t.npz: row 1000000: more than 1000000 classes or 2147483647 rows; are labels in "
                           "another column (--label)?"});
}

TEST_F(TableTest, ShardsWithANumberThatIsNoneAreRefused) {
  const float row[] = {1, std::numeric_limits<float>::quiet_NaN()};
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(row), sizeof row);
  ShardWriter writer(Env::posix(), path("set"), {2, 1, 1}, {"one"}, {.is_fp32 = true});
  writer.add(SetHalf::kTrain, bytes, 0);
  writer.add(SetHalf::kTest, bytes, 0);
  writer.publish();
  expect_error<DataError>([&] { load("set"); }, {"value 1 of sample 0 is nan, no finite number"});
}

}  // namespace
}  // namespace lockstep::table_test
