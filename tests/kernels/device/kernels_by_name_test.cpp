// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Kernels called by name: tiles that only other chips take, and the layouts of vendor libraries.
#include "kernels/cuda/activation_math.cuh"
#include "kernels/cuda/kernels.hpp"
#include "kernels/emulation/order.hpp"
#include "tests/kernels/device/problems.hpp"
#include "tests/kernels/device/rig.hpp"

namespace lockstep::test::chips_test {

// The chip decides into which tiles kernels cut a layer, and nothing else: all have the same bits. The emulator takes
// any chip.

namespace {

// batch, C, H, W, K, R, S, stride, padding
const Conv2dShape kConvolutions[] = {
    {33, 3, 12, 12, 10, 5, 5, 1, 0}, {40, 5, 9, 13, 11, 5, 5, 1, 0}, {5, 7, 10, 10, 12, 3, 3, 1, 1},
    {3, 4, 9, 20, 10, 3, 3, 1, 0},   {2, 10, 8, 18, 6, 5, 5, 1, 2},  {17, 2, 3, 5, 5, 3, 3, 1, 0},
    {33, 4, 9, 8, 8, 5, 5, 1, 0},    {2, 7, 5, 8, 16, 3, 3, 1, 1},   {36, 5, 11, 11, 10, 5, 5, 1, 0},
    {3, 4, 26, 18, 16, 3, 3, 1, 0},  // terms of six units: 12 warps, with more shared memory than a T4 has
};

/// 2 to 40 tiles of each size.
const LinearShape kLinear[] = {{150, 320, 50}, {64, 800, 33}, {70, 45, 130}, {260, 128, 10}, {33, 1000, 9}};

constexpr std::size_t kManyBytes = 227 * 1024;  // an H100's
constexpr emulated::Chip kT4 = {40};
constexpr emulated::Chip kConvolutionChips[] = {
    {1, kManyBytes}, {3}, {4, kManyBytes}, {16}, kT4, {60}, {132}, {1000, kManyBytes}};
constexpr emulated::Chip kLinearChips[] = {{1}, {8}, {20}, {50}, {132}, {100'000}};

class ChipsTest : public testing::Test {
 protected:
  ~ChipsTest() override { emulated::set_most_shared_bytes(kManyBytes); }
  struct Results {
    std::vector<float> y, dx;
    std::vector<std::int64_t> sums;
  };

  template <class Shape>
  Results run(const OnDevice<Shape>& p, const emulated::Chip& chip) {
    emulated::set_most_shared_bytes(chip.shared_bytes);
    const auto y = rig_.poisoned<float>(output_size(p.shape)), dx = rig_.poisoned<float>(input_size(p.shape));
    const ExactSums sums(rig_, p.shape, 4e6F);
    DeviceProperties properties;
    properties.multiprocessors = chip.multiprocessors;
    properties.max_shared_bytes_per_block = chip.shared_bytes;
    emulated::NativeOps ops(properties);
    run(ops, p, y.data(), dx.data(), sums.gradient);
    return {rig_.download(y), rig_.download(dx), sums.download(rig_)};
  }

  template <class Shape>
  void expect_same_bits(std::span<const Shape> shapes, std::span<const emulated::Chip> chips) {
    for (const Shape& shape : shapes) {
      const OnDevice<Shape> on_device(rig_, LayerProblem<Shape>(shape));
      const Results expected = run(on_device, {1});
      for (const emulated::Chip& chip : chips) {
        SCOPED_TRACE(describe(shape) + ", " + std::to_string(chip.multiprocessors) + " multiprocessors, " +
                     std::to_string(chip.shared_bytes) + " bytes of shared memory");
        const Results actual = run(on_device, chip);
        EXPECT_EQ(actual.y, expected.y);
        EXPECT_EQ(actual.dx, expected.dx);
        EXPECT_EQ(actual.sums, expected.sums);
      }
    }
  }

 private:
  void run(DeviceOps& ops, const OnDevice<Conv2dShape>& p, float* y, float* dx, const ExactGradient& sums) {
    ops.conv2d_forward(rig_.stream(), p.shape, p.x(), p.w(), p.b(), {}, nullptr, y, nullptr);
    ops.conv2d_backward_data(rig_.stream(), p.shape, p.dy(), p.w(), nullptr, nullptr, dx);
    ops.conv2d_backward_weights(rig_.stream(), p.shape, 32, p.x(), p.dy(), sums);
  }
  void run(DeviceOps& ops, const OnDevice<LinearShape>& p, float* y, float* dx, const ExactGradient& sums) {
    ops.linear_forward(rig_.stream(), p.shape, p.x(), p.w(), p.b(), {}, nullptr, y, nullptr);
    ops.linear_backward_data(rig_.stream(), p.shape, p.dy(), p.w(), nullptr, dx);
    ops.linear_backward_weights(rig_.stream(), p.shape, 64, p.x(), p.dy(), sums);
  }

  DeviceRig rig_;
};

TEST_F(ChipsTest, ConvolutionsHaveTheSameBitsOnEveryChip) {
  expect_same_bits<Conv2dShape>(kConvolutions, kConvolutionChips);
}

TEST_F(ChipsTest, FullyConnectedLayersHaveTheSameBitsOnEveryChip) {
  expect_same_bits<LinearShape>(kLinear, kLinearChips);
}

}  // namespace

}  // namespace lockstep::test::chips_test

namespace lockstep::test {

/// The kernels as they serve vendor ops.
class SampleOutermostOps final : public emulated::NativeOps {
 public:
  using NativeOps::NativeOps;
  bool batch_innermost() const override { return false; }
};

}  // namespace lockstep::test

namespace lockstep::test::loss_layout_test {

// The loss kernel also serves vendor ops, whose tensors are [sample][class]: the same numbers in another
// place. And its exp and log are those of the math library, nearly.

namespace {

struct Result {
  std::vector<float> gradient;
  std::vector<std::int64_t> counters;
};

class LossLayoutTest : public testing::Test {
 protected:
  Result run(const LossShape& shape, const std::vector<double>& logits,
             const std::vector<std::int32_t>& labels, DeviceOps& ops) {
    const auto x = rig_.upload(logits);
    const auto label_memory = rig_.upload(labels);
    const auto counters = rig_.zeroed<std::int64_t>(kStepCounters);
    const auto dlogits = rig_.poisoned<float>(logits.size());
    ops.loss_and_gradient(rig_.stream(), shape, x.data(),
                          {label_memory.data(), counters.data(), 1e6, nullptr}, dlogits.data());
    return {rig_.download(dlogits), rig_.download(counters)};
  }

  DeviceRig rig_;
  SampleOutermostOps outermost_{rig_.device().properties()};
};

TEST_F(LossLayoutTest, SampleOutermostGivesTheSameNumbers) {
  for (const LossShape& shape : {LossShape{17, 17, 10}, {1, 1, 3}, {100, 100, 37}}) {
    SCOPED_TRACE("batch " + std::to_string(shape.batch) + ", " + std::to_string(shape.classes) + " classes");
    const auto batch = static_cast<std::size_t>(shape.batch),
               classes = static_cast<std::size_t>(shape.classes);
    const auto logits = random_numbers(batch * classes, 1);
    std::vector<double> turned(logits.size());
    std::vector<std::int32_t> labels(batch);
    for (std::size_t n = 0; n < batch; ++n) {
      labels[n] = static_cast<std::int32_t>(n * 7 % classes);
      for (std::size_t c = 0; c < classes; ++c) turned[n * classes + c] = logits[c * batch + n];
    }
    const Result innermost = run(shape, logits, labels, rig_.ops());
    const Result outermost = run(shape, turned, labels, outermost_);
    EXPECT_EQ(outermost.counters, innermost.counters);
    for (std::size_t n = 0; n < batch; ++n)
      for (std::size_t c = 0; c < classes; ++c)
        ASSERT_EQ(outermost.gradient[n * classes + c], innermost.gradient[c * batch + n])
            << "class " << c << " of sample " << n;
  }
}

using emulated::ScalarMath, emulated::exp_of_loss, emulated::log_of_loss;

/// In units in the last place of the exact value; below 2^-126 in those of 2^-149.
double error_in_ulp(float actual, double exact) {
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  return std::abs(static_cast<double>(actual) - exact) / ulp;
}

TEST(ExpLogTest, ExpIsWithinTwoUnits) {
  for (int i = 0; i < 200'000; ++i) {
    const float x = -static_cast<float>(i) * 5.1e-4F;
    ASSERT_LE(error_in_ulp(exp_of_loss<ScalarMath>(x), std::exp(static_cast<double>(x))), 2) << "e^" << x;
  }
}

TEST(ExpLogTest, LogIsWithinTwoUnits) {
  EXPECT_EQ(log_of_loss<ScalarMath>(1.0F), 0.0F);
  for (float x = 1 + 0x1p-23F; x < 1e6F; x += (x - 1) * 1e-4F + 0x1p-22F) {
    ASSERT_LE(error_in_ulp(log_of_loss<ScalarMath>(x), std::log(static_cast<double>(x))), 2) << "ln " << x;
  }
}

TEST(ExpLogTest, EdgesAreThoseOfTheMathLibrary) {
  EXPECT_EQ(exp_of_loss<ScalarMath>(0.0F), 1.0F);
  EXPECT_EQ(exp_of_loss<ScalarMath>(-INFINITY), 0.0F);
  EXPECT_EQ(exp_of_loss<ScalarMath>(-1000.0F), 0.0F);
  EXPECT_TRUE(std::isnan(exp_of_loss<ScalarMath>(NAN)));
  EXPECT_TRUE(std::isnan(log_of_loss<ScalarMath>(NAN)));
}

}  // namespace

}  // namespace lockstep::test::loss_layout_test

namespace lockstep::test::sample_outermost_test {

// The kernels that also serve vendor ops, whose tensors are [sample][channel][row][column]: the same numbers
// as batch innermost, in another place. The emulator runs them without those libraries.

namespace {

/// [features, batch] → [batch, features].
template <typename T>
std::vector<T> transposed(const std::vector<T>& from, int batch) {
  const auto columns = static_cast<std::size_t>(batch);
  const std::size_t features = from.size() / columns;
  std::vector<T> to(from.size());
  for (std::size_t f = 0; f < features; ++f)
    for (std::size_t n = 0; n < columns; ++n) to[n * features + f] = from[f * columns + n];
  return to;
}

struct LayoutCase {
  ImageShape shape;
  int batch;
  Epilogue epilogue;
};

constexpr EpilogueStep kRelu = {}, kMax = {EpilogueKind::kMaxPool}, kAvg = {EpilogueKind::kAvgPool};
constexpr EpilogueStep kDropout2d = {EpilogueKind::kDropout, true, 4, 0.5F};
constexpr EpilogueStep kDropout = {EpilogueKind::kDropout, false, 9, 0.25F};

const LayoutCase kCases[] = {
    {{3, 5, 7}, 17, {{kMax, kRelu}, 2, 2, 11, 64}},
    {{5, 4, 4}, 100, {{kDropout2d, kMax, kRelu}, 3, 2, 11, 64}},
    {{50, 1, 1}, 17, {{kRelu, kDropout}, 2, 1, 11, 64}},
    {{6, 5, 7}, 1, {{kRelu, kAvg}, 2, 2, 11, 64}},
    {{3, 5, 7}, 4, {{kDropout, kMax, kDropout, kRelu}, 4, 2, 11, 0}},
    {{2, 5, 7}, 3, {{kDropout}, 1, 1, 11, 0}},
};

class SampleOutermostTest : public testing::Test {
 protected:
  struct Result {
    std::vector<float> y;
    std::vector<std::uint8_t> mask;
    std::vector<float> dx;
  };

  /// There and back; all tensors, given and returned, are batch innermost.
  Result run(const LayoutCase& c, bool batch_innermost) {
    const auto there = [&](auto tensor) { return batch_innermost ? tensor : transposed(tensor, c.batch); };
    const auto back = [&](auto tensor) {
      return batch_innermost ? tensor : transposed(tensor, static_cast<int>(tensor.size()) / c.batch);
    };
    const auto batch = static_cast<std::size_t>(c.batch);
    const auto features = static_cast<std::size_t>(c.shape.features());
    const std::size_t out_size =
        batch * static_cast<std::size_t>(c.shape.channels * c.epilogue.out(c.shape.height) *
                                         c.epilogue.out(c.shape.width));
    const auto x = rig_.upload(there(random_numbers(batch * features, 1)));
    const auto y = rig_.poisoned<float>(out_size);
    const auto mask = rig_.poisoned<std::uint8_t>(out_size);
    const auto state = rig_.upload(std::vector<StepState>(1));
    DeviceOps& ops = batch_innermost ? rig_.ops() : outermost_;
    ops.epilogue_forward(rig_.stream(), c.shape, c.batch, x.data(), c.epilogue, state.data(), y.data(),
                         mask.data());
    const auto dy = rig_.upload(there(random_numbers(out_size, 2)));
    const auto dx = rig_.poisoned<float>(x.size());
    const EpilogueBackward expand = {c.shape.channels, c.shape.height,       c.shape.width,
                                     c.epilogue.pool,  c.epilogue.factors(), mask.data()};
    ops.epilogue_backward(rig_.stream(), expand, c.batch, dy.data(), dx.data());
    return {back(rig_.download(y)), back(rig_.download(mask)), back(rig_.download(dx))};
  }

  DeviceRig rig_;
  SampleOutermostOps outermost_{rig_.device().properties()};
};

TEST_F(SampleOutermostTest, EpilogueGivesTheSameBits) {
  for (const LayoutCase& c : kCases) {
    SCOPED_TRACE("batch " + std::to_string(c.batch) + ", channels " + std::to_string(c.shape.channels));
    const Result expected = run(c, true), actual = run(c, false);
    EXPECT_EQ(actual.y, expected.y);
    EXPECT_EQ(actual.mask, expected.mask);
    EXPECT_EQ(actual.dx, expected.dx);
  }
}

TEST_F(SampleOutermostTest, GatherGivesTheSameBits) {
  for (const auto& [batch, features] : {std::pair{1, 35}, {17, 784}, {100, 35}, {33, 64}, {5, 1}}) {
    SCOPED_TRACE("batch " + std::to_string(batch) + ", features " + std::to_string(features));
    const auto set = rig_.upload(random_numbers(static_cast<std::size_t>(batch * features), 3));
    const auto labels = rig_.zeroed<std::int32_t>(static_cast<std::size_t>(batch));
    DeviceDataset data;
    data.features_fp32 = set.data();
    data.labels = labels.data();
    data.features = features;
    const auto x = rig_.poisoned<float>(set.size());
    const auto taken = rig_.poisoned<std::int32_t>(labels.size());
    outermost_.gather(rig_.stream(), batch, data, {}, x.data(), taken.data());
    EXPECT_EQ(rig_.download(x), rig_.download(set));
    EXPECT_EQ(rig_.download(taken), rig_.download(labels));
  }
}

}  // namespace

}  // namespace lockstep::test::sample_outermost_test
