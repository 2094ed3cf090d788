// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// People's own data: any size, classes and channels, and whatever may be wrong with the files.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "data/batch_loader.hpp"
#include "data/dataset.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/set_formats.hpp"
#include "data/sets/set_loading.hpp"
#include "data/sets/shards.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/mix.hpp"
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::own_set_test {

namespace {

using test::Bytes;
using test::idx_file;

std::string sha256_of(const Bytes& file) {
  return hex(sha256(std::as_bytes(std::span(file))));
}

/// Seven colour images of 2 x 3 pixels in three classes.
class OwnSetTest : public test::DirectoryTest {
 protected:
  OwnSetTest() { test::write_colour_set(directory_.path(), 7, 2); }
  void remove(const char* name) const { std::filesystem::remove(path(name)); }
  std::string root() const { return directory_.path().string(); }
  TrainTestData load() const { return load_dataset({.set = "idx", .root = root()}); }
  template <typename E>
  void expect_failure(std::initializer_list<std::string_view> parts) const {
    expect_error<E>([this] { load(); }, parts);
  }
};

TEST_F(OwnSetTest, ChannelsAreTakenApart) {
  const TrainTestData data = load();
  EXPECT_EQ(data.train.shape, (ImageShape{3, 2, 3}));
  EXPECT_EQ(data.train.classes, 3);
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"0", "1", "2"}));
  for (std::size_t sample = 0; sample < 7; ++sample)
    for (std::size_t channel = 0; channel < 3; ++channel)
      for (std::size_t pixel = 0; pixel < 6; ++pixel)
        ASSERT_EQ(data.train.images[sample * 18 + channel * 6 + pixel], sample * 18 + pixel * 3 + channel);
}

/// In a file in place of another one.
TEST_F(OwnSetTest, FilesThatDoNotFitAreNamedWithWhatToDo) {
  struct Row {
    const char *before, *name;
    Bytes bytes;
    const char *part, *rest;
  };
  const Row rows[] = {
      {"train-images-idx4-ubyte", "train-images-idx3-ubyte", idx_file({7, 6}),
       "offset 3: 2 dimensions, expected 3 for images, or 4 where they have channels; is it the right file?",
       ""},
      {"train-labels-idx1-ubyte", "train-labels-idx2-ubyte", idx_file({7, 4}),
       "offset 3: 2 dimensions, expected 1 for labels; of samples with several, use shards "
       "(docs/shard-format",
       ""},
      {"t10k-images-idx4-ubyte", "t10k-images-idx3-ubyte", idx_file({2, 2, 3}),
       "offset 8: images of 1 x 2 x 3 (channels x rows x columns), but those of ",
       "train-images-idx4-ubyte are 3 x 2 x 3 (channels x rows x columns); make the set again"},
      {"train-images-idx4-ubyte", "train-images-idx4-ubyte", idx_file({6, 2, 3, 3}),
       "offset 4: 6 images, but ",
       "train-labels-idx1-ubyte has 7 labels; the two are not of one set, make the set again"}};
  for (const auto& [before, name, bytes, part, rest] : rows) {
    test::write_colour_set(directory_.path(), 7, 2);
    remove(before);
    write(name, bytes);
    expect_failure<DataError>({std::string(name) + ": " + part, rest});
    remove(name);
  }
}

TEST_F(OwnSetTest, ItsFingerprintIsThatOfTheFiles) {
  const TrainTestData data = load();
  EXPECT_EQ(fingerprint_of(data.train).samples, sha256_of(idx_file({7, 2, 3, 3})));
  EXPECT_EQ(fingerprint_of(data.test).labels, sha256_of(idx_file({2}, 1, 3)));
}

TEST_F(OwnSetTest, EachChannelIsNormalisedByWhatIsMeasuredOnTheTrainingImages) {
  const TrainTestData data = load();
  ASSERT_EQ(data.normalisation.mean.size(), 3U);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    double sum = 0, squares = 0;
    for (std::size_t i = channel; i < 126; i += 3) sum += static_cast<double>(i) / 255 / 42;
    for (std::size_t i = channel; i < 126; i += 3)
      squares += std::pow(static_cast<double>(i) / 255 - sum, 2) / 42;
    EXPECT_NEAR(data.normalisation.mean[channel], sum, 1e-14);
    EXPECT_NEAR(data.normalisation.std[channel], std::sqrt(squares), 1e-14);
    EXPECT_FLOAT_EQ(data.test.scales.scale[channel], static_cast<float>(1 / (255 * std::sqrt(squares))));
  }
}

TEST_F(OwnSetTest, NumbersOfTheJobComeFirstOneForAllOrOneForEach) {
  const TrainTestData data = load_dataset({.set = "idx", .root = root(), .mean = {0.5}, .std = {1, 2, 4}});
  EXPECT_EQ(data.train.scales.scale, (std::vector<float>{1 / 255.0F, 0.5F / 255.0F, 0.25F / 255.0F}));
  EXPECT_EQ(data.train.scales.shift, (std::vector<float>{-0.5F, -0.25F, -0.125F}));
  expect_error<ConfigError>(
      [&] {
        load_dataset({.set = "idx", .root = root(), .mean = {1, 2}});
      },
      {"mean: 2 numbers for images with 3 channels; give one, or one for each"});
  const Normalisation measured = load().normalisation;
  EXPECT_EQ(load_dataset({.set = "idx", .root = root(), .mean = {0.5}}).normalisation.std, measured.std);
  EXPECT_EQ(load_dataset({.set = "idx", .root = root(), .std = {1}}).normalisation.mean, measured.mean);
}

TEST_F(OwnSetTest, AChannelWithoutContrastIsLeftAsItIs) {
  write("train-images-idx4-ubyte", idx_file({7, 2, 3, 3}, 85, 255));  // 0, 85, 170 in every pixel
  EXPECT_EQ(load().normalisation.std, (std::vector<double>{1, 1, 1}));
}

TEST_F(OwnSetTest, NamesComeFromAFileBesideTheData) {
  write_text("classes.txt", "cat\nbig dog\neel\nunicorn\n");
  const TrainTestData data = load();
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"cat", "big dog", "eel", "unicorn"}));
  EXPECT_EQ(data.train.classes, 4);
}

TEST_F(OwnSetTest, ALabelWithoutANameIsAnErrorAtItsOffset) {
  write_text("classes.txt", "cat\ndog\n");
  expect_failure<DataError>(
      {"train-labels-idx1-ubyte: offset 10: label 2 is not in 0..1; give all classes a line in ",
       "classes.txt, or make the set again"});
}

TEST_F(OwnSetTest, LabelsOfTheTestHalfCountToo) {
  write("t10k-labels-idx1-ubyte", idx_file({2}, 255, 256));
  EXPECT_EQ(load().train.classes, 256);
}

TEST_F(OwnSetTest, TwoFilesOfWhichEitherMayBeMeantAreAnError) {
  write("train-images-idx3-ubyte", idx_file({7, 2, 3}));
  expect_failure<DataError>(
      {"train-images-idx3-ubyte and train-images-idx4-ubyte are both there", "remove one"});
}

TEST_F(OwnSetTest, WithoutADirectoryItIsNowhere) {
  expect_error<ConfigError>([] { resolve_data_root("idx", "auto"); }, {"root", "needs the directory"});
  expect_error<MissingDataError>([this] { resolve_data_root("idx", root() + "/none"); },
                                 {"/none (no such directory)", "lockstep convert"});
  EXPECT_EQ(resolve_data_root("idx", "auto", root()), root());
}

TEST_F(OwnSetTest, ItsOutlineIsThatOfTheFiles) {
  write_text("classes.txt", "cat\ndog\neel\n");
  EXPECT_EQ(outline_of({.set = "idx", .root = root()}).validation_samples, 0);
  write("validation-images-idx4-ubyte", idx_file({4, 2, 3, 3}));
  write("validation-labels-idx1-ubyte", idx_file({4}, 1, 3));
  const SetOutline outline = outline_of({.set = "idx", .root = root(), .validation = {.is_files = true}});
  EXPECT_EQ(outline.validation_samples, 4);
  EXPECT_EQ(outline.shape, (ImageShape{3, 2, 3}));
  EXPECT_EQ(outline.classes, 3);
  EXPECT_EQ(outline.train_samples, 7);
  EXPECT_EQ(outline.test_samples, 2);
  EXPECT_EQ(outline_of({.set = "idx", .root = root()}).validation_samples, 0) << "they are not asked for";
  EXPECT_TRUE(load().has_validation_half && load().validation.size() == 0);
  const TrainTestData data = load_dataset({.set = "idx", .root = root(), .validation = {.is_files = true}});
  EXPECT_EQ(data.validation.name, "idx validation");
  EXPECT_EQ(data.validation.labels, (std::vector<std::int32_t>{0, 1, 2, 0}));
}

TEST_F(OwnSetTest, AHalfOfAValidationHalfIsRefused) {
  const auto fails = [&](const std::string& there, const std::string& lacks) {
    write(there, idx_file({4}, 1, 3));
    expect_failure<DataError>(
        {": " + there + " has no " + lacks + " beside it; add that, or remove the one"});
    remove(there.c_str());
  };
  fails("validation-images-idx4-ubyte", "validation-labels-idx1-ubyte");
  fails("validation-labels-idx1-ubyte", "validation-images-idx3-ubyte");
}

}  // namespace

}  // namespace lockstep::own_set_test

namespace lockstep {

// Batches as the kernels see them.

namespace {

TEST(BatchLoaderTest, ImagesAreNormalisedAndTransposedAndPaddingIsZero) {
  const TrainTestData data = load_dataset({.set = "synthetic", .train_samples = 40, .test_samples = 1});
  const std::vector<std::int32_t> indices = {39, 0, 7};
  AlignedBuffer<float> x(784 * 16);
  std::fill(x.span().begin(), x.span().end(), NAN);
  std::vector<std::int32_t> labels(3);
  BatchLoader(data.train).load(indices, 16, x.data(), labels.data());
  for (std::size_t n = 0; n < 16; ++n) {
    for (std::size_t f = 0; f < 784; ++f) {
      const float expected =
          n >= indices.size()
              ? 0.0F
              : std::fma(
                    static_cast<float>(data.train.images[static_cast<std::size_t>(indices[n]) * 784 + f]),
                    data.train.scales.scale[0], data.train.scales.shift[0]);
      ASSERT_EQ(x[f * 16 + n], expected) << "feature " << f << ", column " << n;
    }
  }
  for (std::size_t n = 0; n < 3; ++n)
    EXPECT_EQ(labels[n], data.train.labels[static_cast<std::size_t>(indices[n])]);
}

TEST(BatchLoaderTest, FeaturesAreTransposedUnchanged) {
  const TrainTestData data = load_dataset({.set = "random"});
  const std::vector<std::int32_t> indices = {999, 5};
  AlignedBuffer<float> x(5 * 16);
  std::vector<std::int32_t> labels(2);
  BatchLoader(data.train).load(indices, 16, x.data(), labels.data());
  for (std::size_t f = 0; f < 5; ++f) {
    EXPECT_EQ(x[f * 16 + 0], data.train.features[999 * 5 + f]);
    EXPECT_EQ(x[f * 16 + 1], data.train.features[5 * 5 + f]);
    EXPECT_EQ(x[f * 16 + 2], 0.0F);
  }
  EXPECT_EQ(labels, (std::vector<std::int32_t>{data.train.labels[999], data.train.labels[5]}));
}

/// Notes what is prefetched of it; its rows are empty.
class NotedRows final : public SampleStore {
 public:
  mutable std::vector<std::int64_t> prefetched;

  std::int64_t size() const override { return 9; }
  const PixelSums& sums() const override { return sums_; }
  void read(std::span<const std::int64_t> /*samples*/, std::span<std::uint8_t> /*to*/) const override {}
  void prefetch(std::vector<std::int64_t> samples) const override { prefetched = std::move(samples); }

 private:
  PixelSums sums_;
};

TEST(BatchLoaderTest, RowsOnDiskArePrefetchedFromTheirPlacesInTheFile) {
  const auto rows = std::make_shared<NotedRows>();
  Dataset set;
  set.labels.resize(3);
  set.places = {1, 4, 8};
  set.rows = rows;
  BatchLoader(set).prefetch(std::vector<std::int32_t>{2, 0});
  EXPECT_EQ(rows->prefetched, (std::vector<std::int64_t>{8, 1}));
}

TEST(BatchLoaderTest, AnIndexOutsideTheSetOrTooManyOfThemIsABug) {
  const TrainTestData data = load_dataset({.set = "random", .train_samples = 20});
  const BatchLoader loader(data.train);
  AlignedBuffer<float> x(5 * 16);
  std::vector<std::int32_t> labels(17);
  const auto load = [&](const std::vector<std::int32_t>& indices, int columns) {
    loader.load(indices, columns, x.data(), labels.data());
  };
  EXPECT_THROW(load({0, 20}, 16), InternalError);
  EXPECT_THROW(load({-1}, 16), InternalError);
  EXPECT_THROW(load(std::vector<std::int32_t>(17), 16), InternalError);
  EXPECT_THROW(load({0}, 15), InternalError);
  const std::vector<std::int32_t> one = {0};
  const std::vector<SampleMix> mixes(1);
  EXPECT_THROW(loader.load(one, 16, x.data(), labels.data(), 0, mixes), InternalError)
      << "nothing to mix with";
  std::vector<std::uint8_t> short_room(19);
  EXPECT_THROW(read_samples(data.train, one, short_room), InternalError);
}

}  // namespace

}  // namespace lockstep
