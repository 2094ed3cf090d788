// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The sets that are made in memory.
#include "data/sets/made_sets.hpp"

#include "common/digest.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/set_fingerprints.hpp"
#include "data/sets/set_loading.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::made_sets_test {
namespace {

std::uint64_t hash(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0xCBF29CE484222325U;
  for (const std::uint8_t byte : bytes) value = (value ^ byte) * 0x100000001B3U;
  return value;
}

std::uint64_t hash(std::span<const float> numbers) {
  return hash(std::span(reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size_bytes()));
}

TEST(DrawsTest, NormalNumbersHaveTheMomentsOfN01) {
  SampleDraws draws(3, DataStream::kRandomTrain, 0);
  constexpr int kCount = 200000;
  double moments[5] = {};
  for (int i = 0; i < kCount; ++i) {
    const double x = draws.normal();
    for (int k = 1; k <= 4; ++k) moments[k] += std::pow(x, k) / kCount;
  }
  EXPECT_NEAR(moments[1], 0, 0.01);
  EXPECT_NEAR(moments[2], 1, 0.02);
  EXPECT_NEAR(moments[3], 0, 0.04);
  EXPECT_NEAR(moments[4], 3, 0.12);
}

TEST(DrawsTest, BoundedNumbersStayBelowAndReachAll) {
  SampleDraws draws(3, DataStream::kRandomTrain, 1);
  std::array<int, 10> seen{};
  for (int i = 0; i < 10000; ++i) ++seen.at(draws.below(10));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(RandomSetTest, LabelsOfBothKindsCanBeLearntByAPerceptron) {
  const TrainTestData data = load_dataset({.set = "random"});
  ASSERT_EQ(data.train.shape, (ImageShape{5, 1, 1}));
  const auto ones = std::accumulate(data.train.labels.begin(), data.train.labels.end(), 0);
  EXPECT_NEAR(ones, 500, 200);
  std::array<float, 5> w{};
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (std::int64_t i = 0; i < data.train.size(); ++i) {
      const float* x = data.train.features.data() + i * 5;
      const float side = std::inner_product(w.begin(), w.end(), x, 0.0F) > 0 ? 1.0F : 0.0F;
      const float error = static_cast<float>(data.train.labels[static_cast<std::size_t>(i)]) - side;
      for (std::size_t f = 0; f < 5; ++f) w[f] += error * x[f];
    }
  }
  int correct = 0;
  for (std::int64_t i = 0; i < data.test.size(); ++i) {
    const float* x = data.test.features.data() + i * 5;
    correct += (std::inner_product(w.begin(), w.end(), x, 0.0F) > 0) ==
               (data.test.labels[static_cast<std::size_t>(i)] == 1);
  }
  EXPECT_GE(correct, 190);
}

TEST(SyntheticSetTest, IsAsBrightAsMnistSoThatItsNormalisationFits) {
  const TrainTestData data = load_dataset({.set = "synthetic"});
  double sum = 0, squares = 0;
  const auto count = static_cast<double>(data.train.images.size());
  for (const std::uint8_t byte : data.train.images.span()) {
    const double x = byte * double{data.train.scales.scale[0]} + double{data.train.scales.shift[0]};
    sum += x / count;
    squares += x * x / count;
  }
  EXPECT_NEAR(sum, 0, 0.15);
  EXPECT_NEAR(std::sqrt(squares - sum * sum), 1, 0.15);
}

/// Nearest of the ten mean images. A crude classifier, far better than chance if the digits are what their
/// labels say.
TEST(SyntheticSetTest, MeanImagesTellDigitsApart) {
  const TrainTestData data = load_dataset({.set = "synthetic"});
  ASSERT_EQ(data.train.shape, (ImageShape{1, 28, 28}));
  std::vector<double> means(10 * 784), counts(10);
  for (std::int64_t i = 0; i < data.train.size(); ++i) {
    const auto label = static_cast<std::size_t>(data.train.labels[static_cast<std::size_t>(i)]);
    ++counts[label];
    for (std::size_t p = 0; p < 784; ++p)
      means[label * 784 + p] += data.train.images[static_cast<std::size_t>(i) * 784 + p];
  }
  for (const double count : counts) EXPECT_NEAR(count, 600, 120);
  int correct = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    std::array<double, 10> distance{};
    for (std::size_t c = 0; c < 10; ++c)
      for (std::size_t p = 0; p < 784; ++p)
        distance[c] += std::pow(means[c * 784 + p] / counts[c] - data.test.images[i * 784 + p], 2);
    correct += std::min_element(distance.begin(), distance.end()) - distance.begin() == data.test.labels[i];
  }
  EXPECT_GE(correct, 600);
  for (const std::int32_t digit : {-1, 10}) EXPECT_THROW(strokes_of_digit(digit), InternalError);
}

TEST(SyntheticSetTest, ALargerSetBeginsWithTheSmallerOne) {
  const TrainTestData small = load_dataset({.set = "synthetic", .train_samples = 10, .test_samples = 3});
  const TrainTestData large = load_dataset({.set = "synthetic", .train_samples = 20, .test_samples = 3});
  ASSERT_EQ(small.train.images.size(), 7840U);
  EXPECT_TRUE(std::equal(small.train.images.span().begin(), small.train.images.span().end(),
                         large.train.images.data()));
  EXPECT_EQ(small.test.size(), 3);
}

TEST(MadeSetsTest, TrainAndTestAndSeedsDiffer) {
  for (const char* set : {"synthetic", "random"}) {
    const auto bits = [](const Dataset& d) { return hash(d.images.span()) ^ hash(d.features.span()); };
    const TrainTestData one = load_dataset({.set = set, .seed = 1, .train_samples = 50, .test_samples = 50});
    const TrainTestData two = load_dataset({.set = set, .seed = 2, .train_samples = 50, .test_samples = 50});
    EXPECT_NE(bits(one.train), bits(one.test)) << set;
    EXPECT_NE(bits(one.train), bits(two.train)) << set;
  }
}

// Every compiler and machine must make these bytes, or ranks on different machines would train on different
// data.
TEST(MadeSetsTest, BytesArePinned) {
  const TrainTestData synthetic = load_dataset({.set = "synthetic", .seed = 1234, .train_samples = 1000});
  EXPECT_EQ(hash(synthetic.train.images.span()), 0xDDB8437C28C30C01U);
  const TrainTestData random = load_dataset({.set = "random", .seed = 1234});
  EXPECT_EQ(hash(random.train.features.span()), 0xB0C0C6549215EDB9U);
}

TEST(MadeSetsTest, FeaturesHaveTheFingerprintOfTheirIdxFile) {
  const Dataset train = load_dataset({.set = "random", .train_samples = 300}).train;
  std::vector<std::uint8_t> file = {0, 0, 0x0d, 2, 0, 0, 1, 44, 0, 0, 0, 5};
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(train.features.data());
  file.insert(file.end(), begin, begin + 300 * 5 * sizeof(float));
  EXPECT_EQ(fingerprint_of(train).samples, hex(sha256(std::as_bytes(std::span(file)))));
}

}  // namespace
}  // namespace lockstep::made_sets_test
