// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Mixup and cutmix against their definition in double precision: shares, boxes, bytes, partners and labels.
#include "common/error.hpp"
#include "data/augmentation.hpp"
#include "data/batch_loader.hpp"
#include "data/dataset.hpp"
#include "data/sampler.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/augment_draws.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep::mixing_test {
namespace {

constexpr std::uint64_t kSeed = 0x0123456789ABCDEFU;
constexpr double kPi = 3.14159265358979323846;
using Image = std::vector<std::uint8_t>;

Augmentation entry(AugmentKind kind, double alpha, double probability = 1) {
  return {kind, {{{alpha, alpha}, {probability, probability}}}};
}
Augmentation mixup(double alpha, double probability = 1) {
  return entry(AugmentKind::kMixup, alpha, probability);
}
Augmentation cutmix(double alpha, double probability = 1) {
  return entry(AugmentKind::kCutmix, alpha, probability);
}

std::vector<std::int32_t> order_of(std::int32_t count) {
  return epoch_permutation(count, kSeed, 3);
}

/// Quantile of Beta(alpha, alpha), where there is a formula: the share is below it with this probability.
double quantile(double alpha, double probability) {
  if (alpha == 1) return probability;
  if (alpha == 0.5) return std::pow(std::sin(probability * kPi / 2), 2);
  // 3 x^2 - 2 x^3
  return 0.5 - std::sin(std::asin(1 - 2 * probability) / 3);
}

// Shares.

TEST(BetaSharesTest, AreTheQuantilesOfTheDistribution) {
  for (const double alpha : {0.5, 1.0, 2.0}) {
    const ShareTable shares = beta_shares(alpha);
    for (std::size_t i = 0; i < shares.size(); ++i)
      ASSERT_NEAR(shares[i], kShareOne * quantile(alpha, static_cast<double>(i) / 1024), 0.501)
          << alpha << ", " << i;
  }
}

TEST(BetaSharesTest, RiseAndAreSymmetricForEveryAlpha) {
  for (const double alpha : {0.01, 0.1, 0.2, 0.4, 1.0, 3.3, 8.0}) {
    const ShareTable shares = beta_shares(alpha);
    EXPECT_EQ(shares.front(), 0);
    EXPECT_EQ(shares[512], kShareOne / 2);
    EXPECT_EQ(shares.back(), kShareOne);
    EXPECT_TRUE(std::ranges::is_sorted(shares)) << alpha;
    for (std::size_t i = 0; i < shares.size(); ++i) EXPECT_EQ(shares[i] + shares[1024 - i], kShareOne);
    // Integrates the squared distance from a half by the trapezoidal rule. The mean is the variance 1 / (8 alpha + 4).
    double sum = 0;
    for (std::size_t i = 0; i < 1024; ++i)
      for (const std::size_t end : {i, i + 1})
        sum += std::pow(static_cast<double>(shares[end]) / kShareOne - 0.5, 2) / 2048;
    EXPECT_NEAR(sum * (8 * alpha + 4), 1, alpha > 4 ? 0.01 : 0.003) << alpha;
  }
}

/// These numbers are part of what a job's weights depend on.
TEST(BetaSharesTest, AreTheSameOnEveryMachine) {
  const auto sum_of = [](double alpha) {
    std::uint64_t sum = 0;
    for (const std::int32_t share : beta_shares(alpha))
      sum = sum * 1'000'003 + static_cast<std::uint64_t>(share);
    return sum;
  };
  EXPECT_EQ(sum_of(0.2), 17980387454516062224U);
  EXPECT_EQ(sum_of(0.4), 10535500723846875968U);
  EXPECT_EQ(sum_of(8), 7979223368631098568U);
}

// Draws.

TEST(SampleMixerTest, SharesAndBoxesAreTheirDefinitionInDoublePrecision) {
  const auto order = order_of(5000);
  int mixed = 0;
  for (const ImageShape& shape : {ImageShape{3, 32, 32}, {1, 17, 23}, {1, 40, 9}, {1, 1, 16384}}) {
    for (const double alpha : {0.5, 1.0, 2.0}) {
      const SampleMixer mixups({mixup(alpha)}, shape, kSeed), cuts({cutmix(alpha)}, shape, kSeed);
      const auto blended = mixups.draw(4, order, 0, 5000), cut = cuts.draw(4, order, 0, 5000);
      for (std::uint32_t place = 0; place < 5000; ++place) {
        const augment::Draws draws = augment::draws_of(kSeed, 4, place, 0);
        const double wanted = quantile(alpha, std::ldexp(draws[2], -32));
        // Tolerance: a density that begins at 0 has quantiles that begin too steep for a line.
        const double off = alpha > 1 ? 0.005 : 2e-5;
        const SampleMix& b = blended[place];
        ASSERT_NEAR(std::ldexp(b.share, -kShareBits), wanted, off) << alpha << ", " << place;
        ASSERT_EQ(b.pixel_share, b.share);
        ASSERT_TRUE(b.left == 0 && b.top == 0 && b.right == shape.width && b.bottom == shape.height);
        const double side = std::sqrt(1 - std::ldexp(b.share, -kShareBits)) / 2;
        const double x = std::floor(std::ldexp(draws[3], -32) * shape.width);
        const double y = std::floor(std::ldexp(draws[4], -32) * shape.height);
        const double aside = std::floor(side * shape.width), down = std::floor(side * shape.height);
        const SampleMix& c = cut[place];
        ASSERT_NEAR(c.left, std::max(0.0, x - aside), 1) << place;
        ASSERT_NEAR(c.right, std::min<double>(shape.width, x + aside), 1) << place;
        ASSERT_NEAR(c.top, std::max(0.0, y - down), 1) << place;
        ASSERT_NEAR(c.bottom, std::min<double>(shape.height, y + down), 1) << place;
        const double area = (c.right - c.left) * (c.bottom - c.top);
        ASSERT_NEAR(std::ldexp(c.share, -kShareBits), 1 - area / shape.height / shape.width, 1e-5) << place;
        ASSERT_EQ(c.pixel_share, 0);
        ASSERT_EQ(c.partner, order[static_cast<std::size_t>(std::floor(std::ldexp(draws[1], -32) * 5000))]);
        ++mixed;
      }
    }
  }
  EXPECT_GE(mixed, 10'000);
}

TEST(SampleMixerTest, TheFirstEntryThatHappensMixes) {
  const ImageShape shape = {1, 28, 28};
  const auto order = order_of(40'000);
  const SampleMixer mixer({{AugmentKind::kFlip, {{{0.5, 0.5}}}}, mixup(1, 0.25), cutmix(1, 0.5)}, shape,
                          kSeed);
  int blended = 0, cut = 0;
  for (const SampleMix& mix : mixer.draw(0, order, 0, 40'000)) {
    blended += mix.pixel_share > 0 && mix.pixel_share < kShareOne ? 1 : 0;
    cut += mix.pixel_share == 0 ? 1 : 0;
  }
  EXPECT_NEAR(blended, 10'000, 350);
  EXPECT_NEAR(cut, 15'000, 400);
}

bool operator==(const SampleMix& a, const SampleMix& b) {
  return a.partner == b.partner && a.share == b.share && a.pixel_share == b.pixel_share && a.left == b.left &&
         a.top == b.top && a.right == b.right && a.bottom == b.bottom;
}

TEST(SampleMixerTest, DrawsDependOnSeedEpochAndPlaceAlone) {
  const ImageShape shape = {1, 28, 28};
  const auto order = order_of(1000);
  const SampleMixer mixer({cutmix(1)}, shape, kSeed);
  const auto all = mixer.draw(5, order, 0, 1000);
  for (const std::int64_t first : {0, 1, 500, 999})
    EXPECT_TRUE(mixer.draw(5, order, first, 1)[0] == all[static_cast<std::size_t>(first)]);
  const auto differ = [&](const std::vector<SampleMix>& other) {
    int same = 0;
    for (std::size_t i = 0; i < all.size(); ++i) same += all[i].partner == other[i].partner ? 1 : 0;
    EXPECT_LT(same, 20);
  };
  differ(mixer.draw(6, order, 0, 1000));
  differ(mixer.draw(5 + (std::int64_t{1} << 24), order, 0, 1000));
  differ(SampleMixer({cutmix(1)}, shape, kSeed + 1).draw(5, order, 0, 1000));
  differ(SampleMixer({{AugmentKind::kFlip, {}}, cutmix(1)}, shape, kSeed).draw(5, order, 0, 1000));
}

TEST(SampleMixerTest, PartnersAreUniformOverTheEpoch) {
  const SampleMixer mixer({mixup(1)}, {1, 28, 28}, kSeed);
  const std::vector<std::int32_t> order = order_of(10);
  std::vector<int> counts(10);
  for (std::int64_t epoch = 0; epoch < 4000; ++epoch)
    for (const SampleMix& mix : mixer.draw(epoch, order, 0, 10))
      ++counts[static_cast<std::size_t>(mix.partner)];
  for (const int count : counts) EXPECT_NEAR(count, 4000, 300);
  EXPECT_TRUE(SampleMixer({{AugmentKind::kFlip, {}}}, {1, 28, 28}, kSeed).draw(0, order, 0, 10).empty());
  for (const auto& [first, count] : {std::pair{-1, 1}, {0, -1}, {5, 6}})
    EXPECT_THROW(mixer.draw(0, order, first, count), InternalError) << first << ", " << count;
}

// Bytes and labels.

Dataset noise_set(const ImageShape& shape, int samples) {
  Dataset set{.shape = shape,
              .classes = 7,
              .images = AlignedBuffer<std::uint8_t>(static_cast<std::size_t>(samples * shape.features()))};
  std::mt19937 generator(1);
  for (std::size_t i = 0; i < set.images.size(); ++i) set.images[i] = static_cast<std::uint8_t>(generator());
  for (int i = 0; i < samples; ++i) set.labels.push_back(static_cast<std::int32_t>(generator() % 7));
  set.scales.scale.assign(static_cast<std::size_t>(shape.channels), 1.0F);
  set.scales.shift.assign(static_cast<std::size_t>(shape.channels), 0.0F);
  return set;
}

Image augmented(const AugmentPlan& plan, const Dataset& set, std::int64_t epoch, std::int32_t sample) {
  const auto features = static_cast<std::size_t>(set.shape.features());
  Image to(features);
  cpu::augment_image(plan, epoch, static_cast<std::uint32_t>(sample),
                     set.images.data() + static_cast<std::size_t>(sample) * features, to.data());
  return to;
}

TEST(BatchLoaderTest, MixedImagesAreThoseOfBothAugmentedAndRoundedOnce) {
  constexpr int kSamples = 300, kColumns = 304, kEpochs = test::effort(6, 1);
  int images = 0;
  for (const ImageShape& shape : {ImageShape{3, 32, 32}, {1, 17, 23}}) {
    const Dataset set = noise_set(shape, kSamples);
    const auto order = order_of(kSamples);
    for (const auto& list : std::vector<std::vector<Augmentation>>{
             {mixup(1)},
             {cutmix(1)},
             {{AugmentKind::kCrop, {{{3, 3}}}}, mixup(0.4, 0.5), cutmix(0.8, 0.7)}}) {
      const AugmentPlan plan = *make_augment_plan(list, set, kSeed);
      const BatchLoader loader(set, &plan);
      for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
        const auto mixes = SampleMixer(list, shape, kSeed).draw(epoch, order, 0, kSamples);
        std::vector<float> x(static_cast<std::size_t>(shape.features()) * kColumns);
        std::vector<std::int32_t> labels(kSamples);
        loader.load(order, kColumns, x.data(), labels.data(), epoch, mixes);
        const auto second = second_labels(set.labels, order, mixes);
        for (std::size_t n = 0; n < kSamples; ++n, ++images) {
          const SampleMix& mix = mixes[n];
          const Image own = augmented(plan, set, epoch, order[n]),
                      partner = augmented(plan, set, epoch, mix.partner);
          for (int f = 0; f < shape.features(); ++f) {
            const auto at = static_cast<std::size_t>(f);
            const bool inside = mix.touches(f % shape.width, f / shape.width % shape.height);
            const double share = inside ? std::ldexp(mix.pixel_share, -kShareBits) : 1;
            ASSERT_NEAR(x[at * kColumns + n], share * own[at] + (1 - share) * partner[at], 0.5)
                << n << ", " << f;
          }
          const std::int32_t own_label = set.labels[static_cast<std::size_t>(order[n])];
          const std::int32_t other = set.labels[static_cast<std::size_t>(mix.partner)];
          const double share = mix.is_mixed() ? std::ldexp(mix.share, -kShareBits) : 1;
          ASSERT_EQ(labels[n], share >= 0.5 ? own_label : other) << n;
          ASSERT_EQ(second[n].share, std::min(share, 1 - share)) << n;
          const std::int32_t smaller = share >= 0.5 ? other : own_label;
          ASSERT_EQ(second[n].label, mix.is_mixed() ? smaller : own_label) << n;
        }
      }
    }
  }
  EXPECT_EQ(images, 2 * 3 * kEpochs * kSamples);
}

TEST(MixedShareTest, GrainsGetTheirOwnPlaces) {
  const ImageShape shape = {1, 28, 28};
  const std::vector<std::int32_t> labels(100, 2);
  const auto order = order_of(100);
  const SampleMixer mixer({mixup(1)}, shape, kSeed);
  const auto all = mixer.draw(1, order, 0, 100);
  const MixedShare share(mixer, 1, order, 40, 30, labels);
  EXPECT_TRUE(share.mixes(50, 5)[4] == all[54]);
  EXPECT_EQ(share.second_labels(69)->share, mixed_labels(all[69], 2, 2).second.share);
  EXPECT_TRUE(MixedShare().mixes(3, 5).empty());
  EXPECT_EQ(MixedShare().second_labels(3), nullptr);
}

}  // namespace
}  // namespace lockstep::mixing_test
