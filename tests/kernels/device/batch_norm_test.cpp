// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Batch normalisation on a device. The bits of the CPU, whose columns are padded and whose grains come one
/// by one; and statistics against plain sums in double.
#include "kernels/batch_norm.hpp"

#include "common/buffers.hpp"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {
namespace {

struct BatchNormCase {
  int samples, grain, channels, pixels;
};

std::vector<float> drawn(std::size_t size, unsigned seed, float mean) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(mean, 2);
  std::vector<float> numbers(size);
  for (float& number : numbers) number = normal(engine);
  return numbers;
}

/// Results of both, in the layout of the device.
struct Normalised {
  std::vector<std::int64_t> words, gradient_words;
  std::vector<float> y, dx, statistics;
  friend bool operator==(const Normalised&, const Normalised&) = default;
};

class DeviceBatchNormTest : public testing::TestWithParam<BatchNormCase> {
 protected:
  std::size_t features() const { return static_cast<std::size_t>(GetParam().channels * GetParam().pixels); }
  std::size_t size() const { return features() * static_cast<std::size_t>(GetParam().samples); }
  std::size_t channels() const { return static_cast<std::size_t>(GetParam().channels); }
  std::int64_t numbers() const { return std::int64_t{GetParam().samples} * GetParam().pixels; }

  void SetUp() override {
    x_ = drawn(size(), 1, 3);
    dy_ = drawn(size(), 2, 0);
    weight_ = drawn(channels(), 3, 1);
    bias_ = drawn(channels(), 4, 0);
  }

  /// Calls use(shape, first column) for each grain.
  template <typename Use>
  void for_each_grain(const Use& use) const {
    const BatchNormCase& c = GetParam();
    for (int first = 0; first < c.samples; first += c.grain) {
      const int samples = std::min(c.grain, c.samples - first), columns = (samples + 15) / 16 * 16;
      use(BatchNormShape{columns, samples, c.channels, c.pixels}, first);
    }
  }
  /// Columns of one grain, NaN in the padding.
  AlignedBuffer<float> part(const std::vector<float>& all, const BatchNormShape& shape, int first) const {
    AlignedBuffer<float> columns(features() * static_cast<std::size_t>(shape.batch));
    std::ranges::fill(columns.span(), NAN);
    for (std::size_t f = 0; f < features(); ++f)
      std::copy_n(all.data() + f * static_cast<std::size_t>(GetParam().samples) + first, shape.samples,
                  columns.data() + f * static_cast<std::size_t>(shape.batch));
    return columns;
  }
  void put(const AlignedBuffer<float>& columns, const BatchNormShape& shape, int first,
           std::vector<float>& all) const {
    for (std::size_t f = 0; f < features(); ++f)
      std::copy_n(columns.data() + f * static_cast<std::size_t>(shape.batch), shape.samples,
                  all.data() + f * static_cast<std::size_t>(GetParam().samples) + first);
  }

  Normalised on_cpu() const {
    Normalised result;
    result.words.resize(channels() * kBatchNormWords);
    result.gradient_words.resize(channels() * kBatchNormWords);
    result.y.resize(size());
    result.dx.resize(size());
    std::vector<BatchNormChannel> of_batch(channels());
    for_each_grain([&](const BatchNormShape& shape, int first) {
      cpu::batch_norm_sums(shape, part(x_, shape, first).data(), result.words.data());
    });
    for (std::size_t c = 0; c < channels(); ++c)
      set_batch_statistics(result.words.data() + c * kBatchNormWords, numbers(), 1e-5, of_batch[c]);
    for_each_grain([&](const BatchNormShape& shape, int first) {
      auto dy = part(dy_, shape, first);
      cpu::batch_norm_gradient_sums(shape, {}, part(x_, shape, first).data(), dy.data(), of_batch.data(),
                                    result.gradient_words.data());
    });
    for (std::size_t c = 0; c < channels(); ++c)
      set_batch_gradients(result.gradient_words.data() + c * kBatchNormWords, numbers(), of_batch[c]);
    for_each_grain([&](const BatchNormShape& shape, int first) {
      const auto x = part(x_, shape, first), dy = part(dy_, shape, first);
      AlignedBuffer<float> out(x.size());
      cpu::batch_norm_forward(shape, x.data(), of_batch.data(), weight_.data(), bias_.data(), {}, out.data());
      put(out, shape, first, result.y);
      cpu::batch_norm_backward(shape, x.data(), dy.data(), of_batch.data(), weight_.data(), out.data());
      put(out, shape, first, result.dx);
      expect_clear_padding(out, shape);
    });
    result.statistics = statistics_of(of_batch);
    return result;
  }
  static void expect_clear_padding(const AlignedBuffer<float>& dx, const BatchNormShape& shape) {
    for (std::size_t i = 0; i < dx.size(); ++i) {
      const int column = static_cast<int>(i) % shape.batch;
      if (column >= shape.samples) {
        ASSERT_EQ(dx.data()[i], 0) << i;
      }
    }
  }
  static std::vector<float> statistics_of(const std::vector<BatchNormChannel>& channels) {
    std::vector<float> all;
    for (const BatchNormChannel& c : channels)
      all.insert(all.end(), {c.mean, c.rstd, c.variance, c.mean_dy, c.mean_dy_xhat, c.dweight, c.dbias});
    return all;
  }

  Normalised on_device() {
    const BatchNormCase& c = GetParam();
    const BatchNormShape shape{c.samples, c.samples, c.channels, c.pixels};
    DeviceRig rig;
    Stream& stream = rig.stream();
    const auto x = rig.upload(x_), dy = rig.upload(dy_), weight = rig.upload(weight_),
               bias = rig.upload(bias_);
    const auto words = rig.zeroed<std::int64_t>(channels() * kBatchNormWords);
    const auto gradient_words = rig.zeroed<std::int64_t>(channels() * kBatchNormWords);
    const auto of_batch =
        rig.upload(std::vector<BatchNormChannel>(channels(), {NAN, NAN, NAN, NAN, NAN, NAN, NAN}));
    const auto y = rig.poisoned<float>(size()), dx = rig.poisoned<float>(size());
    DeviceOps& ops = rig.ops();
    ops.batch_norm_sums(stream, shape, c.grain, x.data(), words.data());
    ops.batch_norm_statistics(stream, c.channels, numbers(), 1e-5, words.data(), of_batch.data());
    ops.batch_norm_forward(stream, shape, x.data(), of_batch.data(), weight.data(), bias.data(), y.data());
    ops.batch_norm_gradient_sums(stream, shape, c.grain, x.data(), dy.data(), of_batch.data(),
                                 gradient_words.data());
    ops.batch_norm_gradients(stream, c.channels, numbers(), gradient_words.data(), of_batch.data());
    ops.batch_norm_backward(stream, shape, x.data(), dy.data(), of_batch.data(), weight.data(), dx.data());
    return {rig.download(words), rig.download(gradient_words), rig.download(y), rig.download(dx),
            statistics_of(rig.download(of_batch))};
  }

  std::vector<float> x_, dy_, weight_, bias_;
};

TEST_P(DeviceBatchNormTest, HasTheBitsOfTheCpuInEveryThreadOrder) {
  const Normalised expected = on_cpu();
  for (const std::uint64_t seed : thread_orders()) {
    set_thread_order(seed);
    EXPECT_TRUE(on_device() == expected) << "thread order " << seed;
  }
}

TEST_P(DeviceBatchNormTest, StatisticsAreThoseOfPlainSums) {
  const std::vector<float> statistics = on_cpu().statistics;
  const std::size_t of_channel = size() / channels();
  for (std::size_t c = 0; c < channels(); ++c) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < of_channel; ++i) mean += x_[c * of_channel + i];
    mean /= static_cast<double>(of_channel);
    for (std::size_t i = 0; i < of_channel; ++i)
      variance += (x_[c * of_channel + i] - mean) * (x_[c * of_channel + i] - mean);
    EXPECT_NEAR(statistics[7 * c], mean, 3e-7 * std::abs(mean)) << c;
    const double rstd = 1 / std::sqrt(variance / static_cast<double>(of_channel) + 1e-5);
    EXPECT_NEAR(statistics[7 * c + 1], rstd, 2e-7 * rstd) << c;
    const double unbiased = variance / static_cast<double>(of_channel - 1);
    EXPECT_NEAR(statistics[7 * c + 2], unbiased, 2e-7 * unbiased) << c;
  }
}

/// Equal numbers far from zero: rounding must not make a variance of its own.
TEST(BatchNormStatisticsTest, EqualNumbersHaveNone) {
  const BatchNormShape shape{32, 21, 1, 49};
  AlignedBuffer<float> x(32 * 49);
  std::ranges::fill(x.span(), 1e6F / 3);
  std::vector<std::int64_t> words(kBatchNormWords);
  cpu::batch_norm_sums(shape, x.data(), words.data());
  BatchNormChannel channel;
  set_batch_statistics(words.data(), 21 * 49, 1e-5, channel);
  EXPECT_EQ(channel.mean, 1e6F / 3);
  EXPECT_NEAR(channel.variance, 0, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Shapes, DeviceBatchNormTest,
                         testing::Values(BatchNormCase{16, 16, 2, 5}, BatchNormCase{37, 16, 3, 9},
                                         BatchNormCase{2, 8, 5, 1}, BatchNormCase{50, 20, 2, 190},
                                         BatchNormCase{64, 64, 1, 70}, BatchNormCase{33, 11, 4, 3}));

}  // namespace
}  // namespace lockstep::test
