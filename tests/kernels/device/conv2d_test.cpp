// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolutions on a device: the bits of the CPU in every order of threads, whatever the batch and the
/// grains. And fused ops against their parts. The CPU agrees with naive loops: tests/kernels/linear_test.cpp.
#include "kernels/sum_cuts.hpp"
#include "tests/kernels/device/cpu_columns.hpp"
#include "tests/kernels/device/problems.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test::conv2d_test {
namespace {

constexpr float kNoLimit = 4e6F;

// batch, C, H, W, K, R, S, stride, padding, groups, dilation
const Conv2dShape kShapes[] = {
    {5, 1, 28, 28, 10, 5, 5, 1, 0},
    {2, 1, 28, 28, 20, 3, 3, 1, 0},
    {3, 4, 7, 12, 6, 5, 5, 1, 0},
    {1, 6, 8, 13, 11, 5, 5, 1, 0},
    {1, 1, 5, 7, 1, 1, 1, 1, 0},
    {17, 3, 5, 7, 4, 3, 3, 1, 0},
    {100, 1, 9, 9, 2, 5, 5, 1, 0},
    {33, 7, 6, 6, 5, 5, 5, 1, 2},
    {37, 3, 8, 9, 13, 3, 3, 1, 1},
    {9, 2, 16, 15, 3, 3, 3, 1, 1},
    {7, 2, 17, 18, 4, 5, 5, 1, 0},
    {2, 20, 7, 6, 7, 3, 3, 1, 2},
    {2, 3, 5, 5, 2, 5, 5, 1, 4},
    {3, 2, 3, 4, 3, 5, 5, 1, 2},
    {17, 1, 3, 3, 1, 3, 3, 1, 0},
    {40, 7, 5, 5, 3, 5, 5, 1, 0},
    {31, 5, 6, 6, 7, 1, 1, 1, 0},
    {6, 4, 7, 9, 3, 7, 3, 1, 0},
    {16, 3, 7, 7, 5, 2, 2, 1, 0},
    {17, 2, 8, 8, 3, 4, 4, 2, 1},
    {100, 2, 5, 7, 3, 3, 3, 2, 1},
    {8, 3, 11, 10, 6, 3, 3, 2, 0},
    {7, 5, 10, 7, 2, 5, 3, 3, 2},
    {12, 6, 9, 9, 8, 2, 2, 3, 0},
    {4, 11, 3, 3, 20, 1, 1, 2, 0},
    // Groups, among them one for each channel. Taps that are apart, with strides that share a factor with that and not.
    {5, 6, 7, 6, 4, 3, 3, 1, 1, 2},
    {3, 12, 5, 6, 18, 1, 1, 1, 0, 3},
    {17, 5, 6, 7, 5, 3, 3, 1, 1, 5},
    {4, 6, 9, 8, 12, 3, 3, 2, 1, 6},
    {3, 14, 5, 4, 10, 2, 3, 1, 1, 2},
    {2, 3, 9, 10, 4, 3, 3, 1, 2, 1, 2},
    {3, 2, 11, 9, 3, 3, 2, 2, 1, 1, 2},
    {2, 2, 13, 12, 5, 3, 3, 3, 4, 1, 2},
    {2, 4, 14, 13, 6, 3, 3, 4, 5, 2, 6},
    {33, 1, 8, 9, 2, 2, 2, 1, 3, 1, 3},
    {3, 9, 6, 6, 17, 3, 3, 1, 1},
    {5, 3, 9, 14, 9, 3, 3, 1, 1},
    {2, 9, 5, 5, 12, 3, 3, 1, 2},
    {36, 5, 9, 9, 10, 5, 5, 1, 0},
    // More channels than groups, and filters that no kernel is written for.
    {5, 9, 6, 7, 11, 2, 3, 1, 1},
    {3, 13, 5, 5, 12, 1, 1, 1, 0},
    {4, 6, 7, 6, 9, 3, 3, 2, 1},
    {3, 31, 4, 5, 17, 3, 3, 1, 1},
    {2, 8, 5, 14, 6, 5, 5, 1, 2},
    {2, 7, 4, 15, 10, 3, 3, 1, 0},
    {3, 5, 9, 3, 21, 4, 1, 3, 0},
    {3, 26, 4, 5, 28, 3, 3, 1, 1, 2},
    {2, 40, 3, 3, 40, 3, 3, 1, 2, 4, 2},
    // Several grains, of which the last is short.
    {145, 3, 7, 6, 4, 3, 3, 1, 1},
    {100, 3, 6, 7, 5, 2, 3, 2, 1},
};

// Large shapes; their weight gradients take the emulator long. The second convolutions of Net and LeNet, and four
// that have filters of some channels, or taps, at a time in shared memory: the last two, one direction each.
const Conv2dShape kLargeShapes[] = {
    {3, 10, 12, 12, 20, 5, 5, 1, 0}, {1, 20, 13, 13, 50, 5, 5, 1, 0}, {1, 200, 5, 6, 5, 5, 5, 1, 0},
    {1, 3, 7, 7, 200, 5, 5, 1, 0},   {1, 12, 6, 7, 10, 7, 7, 2, 3},   {1, 2, 8, 6, 32, 7, 3, 1, 1},
};

constexpr EpilogueStep kRelu = {}, kMax = {EpilogueKind::kMaxPool}, kAvg = {EpilogueKind::kAvgPool};
constexpr EpilogueStep kDropout2d = {EpilogueKind::kDropout, true, 4, 0.5F};
constexpr EpilogueStep kDropout = {EpilogueKind::kDropout, false, 9, 0.25F};

// steps, count, pool, seed, first sample
const Epilogue kEpilogues[] = {
    {{kRelu}, 1, 1, 11, 0},       {{kMax}, 1, 2, 11, 0},
    {{kAvg}, 1, 2, 11, 0},        {{kDropout2d, kMax, kRelu}, 3, 2, 11, 64},
    {{kRelu, kAvg}, 2, 2, 11, 0}, {{kRelu, kDropout}, 2, 1, 11, 64},
};

const Conv2dShape kEpilogueShapes[] = {
    {3, 10, 12, 12, 20, 5, 5, 1, 0}, {2, 5, 13, 13, 11, 5, 5, 1, 0},     {17, 3, 8, 7, 4, 3, 3, 1, 1},
    {33, 2, 5, 7, 3, 3, 3, 1, 0},    {9, 2, 9, 11, 5, 2, 2, 2, 0},       {2, 3, 6, 6, 2, 5, 5, 1, 0},
    {3, 1, 8, 12, 6, 3, 3, 1, 0},    {2, 1, 11, 13, 11, 5, 5, 1, 0},     {33, 1, 5, 7, 3, 3, 3, 1, 1},
    {3, 6, 7, 8, 6, 3, 3, 1, 1, 6},  {2, 4, 8, 9, 10, 3, 3, 1, 2, 2, 2},
};

std::vector<Conv2dShape> all_shapes() {
  std::vector<Conv2dShape> shapes(std::begin(kShapes), std::end(kShapes));
  shapes.insert(shapes.end(), std::begin(kLargeShapes), std::end(kLargeShapes));
  return shapes;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Output of an op with an epilogue.
struct Activation {
  std::vector<float> y;
  std::vector<std::uint8_t> mask;
};

class Conv2dTest : public testing::Test {
 protected:
  std::vector<float> forward(const Conv2dOnDevice& p) {
    const auto y = rig_.poisoned<float>(p.shape.out_size());
    rig_.ops().conv2d_forward(rig_.stream(), p.shape, p.x(), p.w(), p.b(), {}, nullptr, y.data(), nullptr);
    return rig_.download(y);
  }

  /// With a bias, which is the first weights, it is the forward pass of a transposed convolution.
  std::vector<float> backward_data(const Conv2dOnDevice& p, bool with_bias = false) {
    const auto dx = rig_.poisoned<float>(p.shape.in_size());
    rig_.ops().conv2d_backward_data(rig_.stream(), p.shape, p.dy(), p.w(), with_bias ? p.w() : nullptr,
                                    nullptr, dx.data());
    return rig_.download(dx);
  }

  /// Expands the gradient through a pool before it, of which every output has its gradient from its whole window.
  std::vector<float> expanded(const Conv2dOnDevice& p) {
    const Conv2dShape& s = p.shape;
    const auto mask = rig_.upload(std::vector<std::uint8_t>(s.in_size(), 15));
    const auto dx = rig_.poisoned<float>(4 * s.in_size());
    const EpilogueBackward expand = {s.in_channels, 2 * s.in_height, 2 * s.in_width, 2, {1.5F}, mask.data()};
    rig_.ops().conv2d_backward_data(rig_.stream(), s, p.dy(), p.w(), nullptr, &expand, dx.data());
    return rig_.download(dx);
  }

  /// dw, db, refused.
  std::vector<std::int64_t> backward_weights(const Conv2dOnDevice& p, int grain, float limit = kNoLimit) {
    const ExactSums sums(rig_, p.shape, limit);
    rig_.ops().conv2d_backward_weights(rig_.stream(), p.shape, grain, p.x(), p.dy(), sums.gradient);
    return sums.download(rig_);
  }

  std::size_t outputs(const Conv2dShape& s, const Epilogue& e) {
    return static_cast<std::size_t>(s.out_channels * e.out(s.out_height()) * e.out(s.out_width()) * s.batch);
  }

  DeviceBuffer<StepState> step(std::uint32_t number) {
    StepState state;
    state.step = number;
    return rig_.upload(std::vector<StepState>{state});
  }

  Activation fused(const Conv2dOnDevice& p, const Epilogue& epilogue) {
    const auto y = rig_.poisoned<float>(outputs(p.shape, epilogue));
    const auto mask = rig_.poisoned<std::uint8_t>(y.size());
    const auto state = step(7);
    rig_.ops().conv2d_forward(rig_.stream(), p.shape, p.x(), p.w(), p.b(), epilogue, state.data(), y.data(),
                              mask.data());
    return {rig_.download(y), rig_.download(mask)};
  }

  Activation in_two_ops(const Conv2dOnDevice& p, const Epilogue& epilogue) {
    const Conv2dShape& s = p.shape;
    const auto before = rig_.upload(forward(p));
    const auto y = rig_.poisoned<float>(outputs(s, epilogue));
    const auto mask = rig_.poisoned<std::uint8_t>(y.size());
    const auto state = step(7);
    rig_.ops().epilogue_forward(rig_.stream(), {s.out_channels, s.out_height(), s.out_width()}, s.batch,
                                before.data(), epilogue, state.data(), y.data(), mask.data());
    return {rig_.download(y), rig_.download(mask)};
  }

  DeviceRig rig_;
};

/// The CPU's ops with the same numbers.
class Conv2dOnCpu {
 public:
  explicit Conv2dOnCpu(const Conv2dProblem& p)
      : p_(p), shape_(padded(p.shape)), w_(p.w.begin(), p.w.end()), b_(p.b.begin(), p.b.end()) {}

  AlignedBuffer<float> forward() {
    auto y = cpu_room(p_.dy.size(), p_.shape.batch);
    cpu::conv2d_forward(shape_, to_cpu(p_.x, p_.shape.batch).data(), w_.data(), b_.data(), y.data());
    return y;
  }
  AlignedBuffer<float> backward_data(bool with_bias = false) {
    auto dx = cpu_room(p_.x.size(), p_.shape.batch);
    cpu::conv2d_backward_data(shape_, to_cpu(p_.dy, p_.shape.batch).data(), w_.data(),
                              with_bias ? w_.data() : nullptr, dx.data());
    return dx;
  }
  /// As Conv2dTest::backward_weights().
  std::vector<std::int64_t> backward_weights(int grain) {
    const std::size_t size = w_.size() + b_.size();
    const auto terms = static_cast<std::size_t>(GradientSplit(p_.shape, grain).terms);
    std::vector<std::int64_t> sums(size + 1);
    std::vector<float> gradient(terms * size, NAN);
    for (int first = 0; first < p_.shape.batch; first += grain) {
      const Conv2dProblem part = p_.columns(first, std::min(grain, p_.shape.batch - first));
      const int columns = part.shape.batch;
      cpu::conv2d_backward_weights(padded(part.shape), GradientSplit(part.shape, grain),
                                   to_cpu(part.x, columns).data(), to_cpu(part.dy, columns).data(),
                                   {gradient.data(), gradient.data() + w_.size(), size});
      for (std::size_t t = 0; t < terms; ++t)
        cpu::accumulate_exact(size, gradient.data() + t * size, {.limit = kNoLimit}, sums.data());
    }
    return sums;
  }

 private:
  static Conv2dShape padded(Conv2dShape shape) {
    shape.batch = padded_columns(shape.batch);
    return shape;
  }

  const Conv2dProblem& p_;
  Conv2dShape shape_;
  std::vector<float> w_, b_;
};

TEST_F(Conv2dTest, ForwardAndDataGradientHaveTheBitsOfTheCpuInEveryOrderOfThreads) {
  for (const Conv2dShape& shape : all_shapes()) {
    SCOPED_TRACE(describe(shape));
    const Conv2dProblem p(shape);
    const Conv2dOnDevice on_device(rig_, p);
    expect_bits_of_cpu(Conv2dOnCpu(p).forward(), same_in_every_order([&] { return forward(on_device); }),
                       shape.batch, "y");
    expect_bits_of_cpu(Conv2dOnCpu(p).backward_data(),
                       same_in_every_order([&] { return backward_data(on_device); }), shape.batch, "dx");
    expect_bits_of_cpu(Conv2dOnCpu(p).backward_data(true), backward_data(on_device, true), shape.batch,
                       "dx with a bias");
  }
}

/// Large ones take the emulator long, and are tried in one order.
TEST_F(Conv2dTest, WeightGradientsHaveTheBitsOfTheCpuInEveryOrderOfThreads) {
  constexpr int kGrains[] = {64, 37, 16, 100};
  int i = 0;
  for (const Conv2dShape& shape : all_shapes()) {
    const int grain = kGrains[i % 4];
    const bool is_large = i++ >= static_cast<int>(std::size(kShapes));
    SCOPED_TRACE(describe(shape) + ", grain " + std::to_string(grain));
    const Conv2dProblem p(shape);
    const Conv2dOnDevice on_device(rig_, p);
    const auto run = [&] { return backward_weights(on_device, grain); };
    EXPECT_EQ(is_large ? run() : same_in_every_order(run), Conv2dOnCpu(p).backward_weights(grain));
  }
}

/// Grains of more groups of 32 samples than there are units, and rows that no unit shares evenly.
TEST_F(Conv2dTest, WeightGradientsOfLargeGrainsHaveTheBitsOfTheCpu) {
  for (const Conv2dShape& shape :
       {Conv2dShape{4200, 1, 2, 3, 1, 2, 2, 1, 0}, {300, 2, 9, 5, 3, 3, 3, 1, 1}}) {
    SCOPED_TRACE(describe(shape));
    const Conv2dProblem p(shape);
    EXPECT_EQ(backward_weights(Conv2dOnDevice(rig_, p), shape.batch),
              Conv2dOnCpu(p).backward_weights(shape.batch));
  }
}

TEST_F(Conv2dTest, FusedEpilogueEqualsTheTwoOpsBitForBit) {
  for (const Conv2dShape& shape : kEpilogueShapes) {
    const Conv2dProblem p(shape);
    const Conv2dOnDevice on_device(rig_, p);
    for (const Epilogue& epilogue : kEpilogues) {
      SCOPED_TRACE(describe(shape) + ", epilogue " + std::to_string(&epilogue - kEpilogues));
      const Activation actual = fused(on_device, epilogue), expected = in_two_ops(on_device, epilogue);
      EXPECT_TRUE(same_bits(actual.y, expected.y)) << "y";
      EXPECT_EQ(actual.mask, expected.mask);
    }
  }
}

TEST_F(Conv2dTest, FusedExpansionEqualsTheTwoOpsBitForBit) {
  for (const Conv2dShape& shape : kEpilogueShapes) {
    const Conv2dProblem p(shape);
    const Conv2dOnDevice on_device(rig_, p);
    const auto unfused = rig_.upload(backward_data(on_device));
    for (const int pool : {1, 2}) {
      for (const int dropped : {0, 1}) {  // A row and a column that no window covers.
        if (dropped >= pool) continue;
        SCOPED_TRACE(describe(shape) + ", pool " + std::to_string(pool) + ", dropped " +
                     std::to_string(dropped));
        std::vector<std::uint8_t> mask(shape.in_size());
        std::mt19937 bits(static_cast<std::uint32_t>(kProblemSeed));
        for (std::uint8_t& m : mask) m = static_cast<std::uint8_t>(bits() & (pool == 2 ? 15U : 1U));
        const auto device_mask = rig_.upload(mask);
        const EpilogueBackward expand = {shape.in_channels,
                                         shape.in_height * pool + dropped,
                                         shape.in_width * pool + dropped,
                                         pool,
                                         {1.5F},
                                         device_mask.data()};
        const auto size = static_cast<std::size_t>(expand.channels * expand.height * expand.width) *
                          static_cast<std::size_t>(shape.batch);
        const auto actual = rig_.poisoned<float>(size), expected = rig_.poisoned<float>(size);
        rig_.ops().conv2d_backward_data(rig_.stream(), shape, on_device.dy(), on_device.w(), nullptr, &expand,
                                        actual.data());
        rig_.ops().epilogue_backward(rig_.stream(), expand, shape.batch, unfused.data(), expected.data());
        EXPECT_TRUE(same_bits(rig_.download(actual), rig_.download(expected)));
      }
    }
  }
}

struct PooledCase {
  Conv2dShape shape;
  bool data_left_out = true;  ///< the data gradient, too, reads nothing where the pool has no window
};

// Filters of each kind, with padding and without. Outputs of which a pool drops a row, a column, both, or none.
const PooledCase kPooledCases[] = {
    {{5, 2, 13, 13, 8, 5, 5, 1, 0}},      {{33, 3, 7, 9, 5, 3, 3, 1, 0}},
    {{3, 2, 8, 9, 6, 5, 5, 1, 2}},        {{2, 4, 9, 8, 16, 3, 3, 1, 1}},
    {{4, 2, 6, 8, 3, 5, 5, 1, 0}},        {{2, 3, 4, 17, 4, 3, 3, 1, 0}, false},
    {{4, 2, 7, 6, 3, 2, 2, 2, 0}, false}, {{8, 3, 9, 11, 12, 5, 5, 1, 0}},
};

/// With `beyond` wherever a pool of windows of two has none.
Conv2dProblem with_dropped(Conv2dProblem p, double beyond) {
  const int rows = p.shape.out_height(), columns = p.shape.out_width(), batch = p.shape.batch;
  for (std::size_t i = 0; i < p.dy.size(); ++i) {
    const int pixel = static_cast<int>(i) / batch, row = pixel / columns % rows, column = pixel % columns;
    if (row >= rows / 2 * 2 || column >= columns / 2 * 2) p.dy[i] = beyond;
  }
  return p;
}

/// A gradient that the pool behind made is 0 there, and its kernels do not ask.
TEST_F(Conv2dTest, GradientsLeaveOutWhatAPoolDropped) {
  constexpr double kUnread = std::numeric_limits<double>::quiet_NaN();
  for (const PooledCase& c : kPooledCases) {
    SCOPED_TRACE(describe(c.shape));
    const Conv2dProblem zeros = with_dropped(Conv2dProblem(c.shape), 0);
    Conv2dProblem data = with_dropped(zeros, c.data_left_out ? kUnread : 0);
    Conv2dProblem weights = with_dropped(zeros, kUnread);
    data.shape.read = weights.shape.read = {c.shape.out_height() / 2 * 2, c.shape.out_width() / 2 * 2};
    const Conv2dOnDevice all(rig_, zeros), data_on_device(rig_, data), weights_on_device(rig_, weights);
    EXPECT_TRUE(same_bits(backward_data(data_on_device), backward_data(all)));
    EXPECT_TRUE(same_bits(expanded(data_on_device), expanded(all)));
    EXPECT_EQ(same_in_every_order([&] { return backward_weights(weights_on_device, 32); }),
              backward_weights(all, 32));
  }
}

TEST_F(Conv2dTest, AGrainAddsAtMostSixteenTermsToASum) {
  for (const Conv2dShape& shape : {Conv2dShape{64, 1, 28, 28, 2, 5, 5, 1, 0},
                                   {64, 1, 20, 20, 3, 2, 2, 1, 0},
                                   {300, 2, 40, 4, 2, 3, 3, 1, 1}}) {
    SCOPED_TRACE(describe(shape));
    Conv2dProblem p(shape);
    std::fill(p.x.begin(), p.x.end(), 1.0);
    std::fill(p.dy.begin(), p.dy.end(), 1.0);
    const auto sums = backward_weights(Conv2dOnDevice(rig_, p), shape.batch, 1e-30F);
    const auto elements = static_cast<std::int64_t>(sums.size() - 1);
    EXPECT_GE(sums.back(), elements);
    EXPECT_LE(sums.back(), elements * kPartialSums);
    EXPECT_TRUE(std::all_of(sums.begin(), sums.end() - 1, [](std::int64_t sum) { return sum == 0; }));
  }
}

TEST_F(Conv2dTest, NanIsRefusedOnceForEachWeightItReaches) {
  for (const Conv2dShape& shape : {Conv2dShape{50, 2, 9, 9, 3, 5, 5, 1, 0},
                                   {50, 2, 9, 9, 3, 5, 5, 1, 2},
                                   {50, 2, 9, 9, 3, 4, 4, 1, 0}}) {
    SCOPED_TRACE(describe(shape));
    Conv2dProblem p(shape);
    std::fill(p.x.begin(), p.x.end(), 0.0);
    std::fill(p.dy.begin(), p.dy.end(), 1.0);
    const std::size_t centre = static_cast<std::size_t>(4 * shape.in_width + 4) * 50;
    p.x[centre + 49] = std::numeric_limits<double>::quiet_NaN();  // channel 0, reached by all of its taps
    const auto sums = backward_weights(Conv2dOnDevice(rig_, p), 64);
    EXPECT_EQ(sums.back(), shape.out_channels * shape.kernel_height * shape.kernel_width);
    const double pixels = shape.out_height() * shape.out_width() * shape.batch;
    for (std::size_t k = 0; k < p.b.size(); ++k) EXPECT_EQ(from_exact(sums[p.w.size() + k]), pixels);
  }
}

}  // namespace
}  // namespace lockstep::test::conv2d_test
