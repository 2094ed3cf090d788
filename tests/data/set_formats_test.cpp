// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sets from IDX files and from CIFAR's binary ones, and combinations of labels.
#include "data/sets/set_formats.hpp"

#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "data/dataset.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/set_loading.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"

namespace lockstep::idx_set_test {

// Image sets as a whole: the four files must belong together.

namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::idx_file;
using test::idx_header;
using test::operator+;  // NOLINT(misc-unused-using-decls): clang-tidy does not see operators

/// A good small set on disk; each test damages it in its own way.
class IdxSetTest : public test::DirectoryTest {
 protected:
  IdxSetTest() { test::write_image_set(directory_.path()); }

  TrainTestData load() const { return load_dataset({.set = "mnist", .root = directory_.path().string()}); }
  template <typename E>
  void expect_failure(std::initializer_list<std::string_view> parts) const {
    expect_error<E>([this] { load(); }, parts);
  }
};

TEST_F(IdxSetTest, AGoodSetIsLoaded) {
  const TrainTestData data = load();
  EXPECT_EQ(data.origin, directory_.path().string());
  EXPECT_EQ(data.train.name, "mnist train");
  EXPECT_EQ(data.test.name, "mnist test");
  EXPECT_EQ(data.train.shape, (ImageShape{1, 4, 3}));
  EXPECT_EQ(data.train.classes, 10);
  EXPECT_EQ(data.train.size(), 20);
  EXPECT_EQ(data.test.size(), 5);
  EXPECT_EQ(data.train.labels[7], 21 % 10);
  EXPECT_EQ(data.train.images[13], 13);
  EXPECT_EQ(data.test.images[5], 35);
  EXPECT_EQ(data.train.features.size(), 0U);
  for (const char* other : {"conversion.json", "train-images-idx4-ubyte", "validation-images-idx3-ubyte"})
    write(other, {1});
  EXPECT_FALSE(load().has_validation_half) << "files of people's own sets, which it is not";
}

std::string sha256_of(const Bytes& file) {
  return hex(sha256(std::as_bytes(std::span(file))));
}

TEST_F(IdxSetTest, ItsFingerprintIsThatOfTheFilesHoweverTheyArePacked) {
  const TrainTestData plain = load();
  const Fingerprint of_files{.samples = sha256_of(idx_file({20, 4, 3})),
                             .labels = sha256_of(idx_file({20}, 3, 10))};
  EXPECT_EQ(fingerprint_of(plain.train), of_files);
  write("train-images-idx3-ubyte.gz", test::gzip(idx_file({20, 4, 3})));
  fs::remove(path("train-images-idx3-ubyte"));
  EXPECT_EQ(fingerprint_of(load().train), of_files);
  EXPECT_EQ(load().train.quick, plain.train.quick);
}

TEST_F(IdxSetTest, AHalfOfOneSampleHasTheFingerprintOfItsFiles) {
  test::write_image_set(directory_.path(), 20, 1);
  const Fingerprint of_files{.samples = sha256_of(idx_file({1, 4, 3}, 7)),
                             .labels = sha256_of(idx_file({1}))};
  EXPECT_EQ(fingerprint_of(load().test), of_files);
}

TEST_F(IdxSetTest, FingerprintsInTheBackgroundAreTheSame) {
  const auto data = std::make_shared<TrainTestData>(load());
  for (const bool early : {false, true}) {
    LazyFingerprints lazy(data);
    if (early) lazy.start();
    EXPECT_EQ(lazy.get().train, fingerprint_of(data->train));
    EXPECT_EQ(lazy.get().test, fingerprint_of(data->test));
  }
}

TEST_F(IdxSetTest, AnyBitAndTwoBitsAnywhereChangeTheQuickFingerprint) {
  TrainTestData data = load();
  const std::string before = quick_fingerprint_of(data.train).samples;
  std::set<std::string> seen = {before};
  for (std::size_t i = 0; i < data.train.images.size(); ++i) {
    for (const std::size_t other : {i, (i + 64) % data.train.images.size()}) {  // its lane, a block later
      data.train.images[i] ^= 0x80;
      if (other != i) data.train.images[other] ^= 0x80;
      EXPECT_TRUE(seen.insert(quick_fingerprint_of(data.train).samples).second) << i << ", " << other;
      data.train.images[i] ^= 0x80;
      if (other != i) data.train.images[other] ^= 0x80;
    }
  }
  EXPECT_EQ(quick_fingerprint_of(data.train).samples, before);
}

TEST_F(IdxSetTest, AGivenDirectoryIsMeantItselfAndNoneWithin) {
  test::write_image_set(path("mnist"), 40);
  EXPECT_EQ(load().train.size(), 40);
  EXPECT_EQ(load_dataset({.set = "mnist", .directory = directory_.path().string()}).train.size(), 20);
}

TEST_F(IdxSetTest, PixelsAreNormalisedByMeanAndDeviation) {
  const TrainTestData data =
      load_dataset({.set = "kmnist", .root = directory_.path().string(), .mean = {0.5}, .std = {0.25}});
  for (const Dataset* set : {&data.train, &data.test}) {
    EXPECT_FLOAT_EQ(0 * set->scales.scale[0] + set->scales.shift[0], -2.0F);
    EXPECT_FLOAT_EQ(255 * set->scales.scale[0] + set->scales.shift[0], 2.0F);
  }
}

TEST_F(IdxSetTest, FilesThatDoNotFitAreErrorsAtTheirOffsets) {
  Bytes labels = idx_file({20}, 3, 10);
  labels[8 + 17] = 10;
  for (const auto& [name, bytes, part] :
       {std::tuple{"train-labels-idx1-ubyte", labels,
                   "offset 25: label 10 is not in 0..9; fetch it again with"},
        {"t10k-labels-idx1-ubyte", idx_file({4}, 1, 10),
         "has 4 labels; the two are not of one set, fetch it"},
        {"t10k-images-idx3-ubyte", idx_file({5, 3, 4}), "offset 8: images of 1 x 3 x 4 (channels"},
        {"train-images-idx3-ubyte", idx_file({20}), "offset 3: 1 dimension, expected 3 for images; is it"},
        {"train-images-idx3-ubyte", idx_file({20, 4, 3, 1}),
         "offset 3: 4 dimensions, expected 3 for images;"}}) {
    write(name, bytes);
    expect_failure<DataError>({name, part});
    test::write_image_set(directory_.path());
  }
}

TEST_F(IdxSetTest, OfSeveralDamagedFilesTheFirstIsNamedEveryTime) {
  write("t10k-images-idx3-ubyte", {});
  write("train-images-idx3-ubyte", idx_header({20, 4, 3}) + Bytes(239));
  for (int i = 0; i < 20; ++i) expect_failure<DataError>({"train-images-idx3-ubyte: offset 16"});
}

TEST_F(IdxSetTest, OptionsOutOfRangeAreConfigErrors) {
  const std::string root = directory_.path().string();
  const auto fails = [](const DatasetOptions& options, const char* part) {
    expect_error<ConfigError>([&] { load_dataset(options); }, {part});
  };
  fails({.set = "cifar", .root = root}, "unknown data set 'cifar'");
  fails({.set = "mnist", .root = root, .train_samples = 1000}, "train_samples");
  fails({.set = "mnist", .root = root, .train_samples = -1},
        "train_samples: -1 is not in 0..2147483647 (0: all)");
  fails({.set = "synthetic", .test_samples = 10'000'001},
        "test_samples: 10000001 is not in 0..10000000 (0: the set's default)");
  fails({.set = "synthetic", .test_samples = -1}, "test_samples");
  fails({.set = "synthetic", .train_samples = 1'000'000'000'000}, "train_samples");
  fails({.set = "mnist", .root = root, .std = {0}}, "std: 0 is not a number above 0");
  fails({.set = "mnist", .root = root, .std = {NAN}}, "std: nan is not a number above 0");
  fails({.set = "mnist", .root = root, .mean = {INFINITY}}, "mean: inf is not a finite number");
}

}  // namespace

}  // namespace lockstep::idx_set_test

namespace lockstep {

// Sets in CIFAR's binary format, made small, and whatever may be wrong with their files.

namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::operator+;  // NOLINT(misc-unused-using-decls): clang-tidy does not see operators

/// Three images with CIFAR-10's shape; each test damages one file.
class CifarSetTest : public test::DirectoryTest {
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
  TrainTestData load() const { return load_dataset({.set = "cifar10", .root = directory_.path().string()}); }
  void expect_failure(std::initializer_list<std::string_view> parts) const {
    expect_error<DataError>([this] { load(); }, parts);
  }
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
  EXPECT_EQ(data.train.name + ", " + data.test.name, "cifar10 train, cifar10 test");
  EXPECT_EQ(data.train.classes, 10);
}

TEST_F(CifarSetTest, ItLiesInTheFolderOfItsArchiveToo) {
  const fs::path inner = path("cifar-10-batches-bin");
  fs::create_directory(inner);
  for (const auto& entry : fs::directory_iterator(directory_.path()))
    if (entry.is_regular_file()) fs::rename(entry.path(), inner / entry.path().filename());
  EXPECT_EQ(load().directory, inner.string());
}

TEST_F(CifarSetTest, FilesMayBePackedAndNamesBesideThem) {
  write("data_batch_3.bin.gz", test::gzip(records(2, 4)));
  fs::remove(path("data_batch_3.bin"));
  write_text("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_EQ(load().train.size(), 10);
  EXPECT_EQ(load().class_names.at(9), "j");
}

TEST_F(CifarSetTest, WhatIsNoWholeNumberOfRecordsIsAnErrorAtItsOffset) {
  write("data_batch_2.bin", records(2, 2) + Bytes(100));
  expect_failure({"data_batch_2.bin: offset 6146: the last record has 100 of 3073 bytes"});
  write("data_batch_2.bin", {});
  expect_failure({"data_batch_2.bin: offset 0: the file is empty"});
  write("data_batch_2.bin", test::gzip({}));
  expect_failure({"data_batch_2.bin: offset 0 of the uncompressed data: no records"});
  write("data_batch_2.bin", {1});
  expect_failure({"data_batch_2.bin: offset 0: the last record has 1 of 3073 bytes"});
}

TEST_F(CifarSetTest, ALabelOutOfRangeIsAnErrorAtItsOffset) {
  Bytes bytes = records(3, 0);
  bytes[3073] = 10;
  write("test_batch.bin", bytes);
  expect_failure({"test_batch.bin: offset 3073: label 10 is not in 0..9"});
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

/// Grey images; notes how many bytes of them are read at once.
class NotingStore final : public SampleStore {
 public:
  std::int64_t size() const override { return 72; }
  const PixelSums& sums() const override { return sums_; }
  void read(std::span<const std::int64_t> /*samples*/, std::span<std::uint8_t> to) const override {
    std::ranges::fill(to, std::uint8_t{7});
    most_at_once = std::max(most_at_once, to.size());
  }
  void prefetch(std::vector<std::int64_t> /*samples*/) const override {}

  static inline std::size_t most_at_once = 0;

 private:
  PixelSums sums_;
};

/// Decoded pictures are in memory twice until they are copied.
TEST(InMemoryTest, LargeImagesAreReadAFewAtATime) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  constexpr SetFormat kNoting = {.name = "noting",
                                 .load =
                                     [](const SetEntry&, const SetFiles&, const DatasetOptions&) {
                                       TrainTestData data;
                                       data.class_names = {"a", "b"};
                                       for (Dataset* half : {&data.train, &data.test}) {
                                         half->shape = {1, 512, 1024};
                                         half->classes = 2;
                                         half->labels.assign(half == &data.train ? 72U : 1U, 0);
                                         half->store = std::make_shared<const NotingStore>();
                                       }
                                       return data;
                                     },
                                 .has_pictures = true};
  const test::TemporaryDirectory directory;
  const TrainTestData data =
      load_set(find_set("pictures"), kNoting,
               {.set = "pictures", .directory = directory.path().string(), .in_memory = true});
  EXPECT_EQ(NotingStore::most_at_once, 32 * kMiB);
  ASSERT_EQ(data.train.images.size(), 36 * kMiB);
  EXPECT_EQ(std::ranges::count(data.train.images.span(), 7), std::ptrdiff_t{36 * kMiB});
}

TEST(LabelSetsTest, ATableOfCombinationsThatDoesNotFitIsRefused) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs more address space";
#else
  const rlim_t used = 1024 * std::stoull(value_after("/proc/self/status", "VmSize:")), left = 24 << 20;
  const SoftLimit space(RLIMIT_AS, used + left);
  if (!space.is_set()) GTEST_SKIP() << "a hard limit is lower";
  LabelSets sets(3, "my-set");
  expect_error<MemoryError>(
      [&] {
        sets.row_of(std::vector<std::uint32_t>{0, 2});
      },
      {"the combinations of labels in my-set would take 32 MiB, and "});
#endif
}

}  // namespace

}  // namespace lockstep
