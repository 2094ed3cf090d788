// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Random epilogues on a device against their layers one by one. Relu, dropout and pool as the CPU has them,
/// forward, and backward by each layer's own rule.
#include "common/error.hpp"
#include "kernels/numerics/random.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/kernels/reference/layers.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test::epilogue_test {
namespace {

constexpr std::uint32_t kStep = 4242;

struct EpilogueCase {
  ImageShape shape;
  int batch = 1;
  Epilogue epilogue;
  std::uint32_t seed = 0;
};

std::string describe(const EpilogueCase& c) {
  std::ostringstream text;
  text << "seed " << c.seed << ": batch " << c.batch << ", " << c.shape.channels << " x " << c.shape.height
       << " x " << c.shape.width;
  for (int i = 0; i < c.epilogue.count; ++i) {
    const EpilogueStep& step = c.epilogue.steps[i];
    const char* const names[] = {", relu", ", dropout ", ", max-pool", ", avg-pool"};
    text << names[static_cast<int>(step.kind)];
    if (step.kind == EpilogueKind::kDropout) text << step.probability << (step.whole_channels ? " 2d" : "");
  }
  return text.str();
}

/// Any layers in any order around at most one pool, on a small image.
EpilogueCase random_case(std::uint32_t seed) {
  std::mt19937 engine(seed);
  const int batches[] = {1, 17, 100, 4, 33, 64},
            sizes[][2] = {{5, 7}, {4, 4}, {2, 3}, {1, 1}, {7, 2}, {6, 9}};
  EpilogueCase c;
  c.seed = seed;
  c.batch = batches[seed % std::size(batches)];
  const auto& size = sizes[engine() % std::size(sizes)];
  c.shape = {static_cast<int>(1 + engine() % 6), size[0], size[1]};
  c.epilogue.seed = 0x123456789ABCDEFULL + seed;
  c.epilogue.first_sample = engine() % 2 == 0 ? 128 : 0xFFFFFFF8U;  // sample numbers may wrap around
  const bool may_pool = size[0] > 1;
  const int count = static_cast<int>(engine() % (Epilogue::kMaxSteps + 1));
  int scaling = 0;
  for (int i = 0; i < count; ++i) {
    EpilogueStep& step = c.epilogue.steps[c.epilogue.count++];
    const auto kinds = may_pool && c.epilogue.pool == 1 ? 4U : 2U;
    step.kind = static_cast<EpilogueKind>(engine() % kinds);
    scaling += Epilogue::scales(step.kind) ? 1 : 0;
    if (scaling > EpilogueFactors::kMost) step.kind = EpilogueKind::kRelu;
    step.whole_channels = engine() % 2 == 0;
    step.layer = engine() % 50;
    step.probability = static_cast<float>(1 + engine() % 19) / 20;
    const bool is_pool = step.kind == EpilogueKind::kMaxPool || step.kind == EpilogueKind::kAvgPool;
    if (is_pool) c.epilogue.pool = 2;
  }
  return c;
}

/// Few different numbers, so that windows have ties; zeros of both signs, and some NaN.
std::vector<float> inputs(const EpilogueCase& c) {
  std::mt19937 engine(c.seed + 1000);
  std::vector<float> x(static_cast<std::size_t>(c.shape.features() * c.batch));
  const float some[] = {0, -0.0F, 1, -1, 0.5F, -0.5F, 3};
  for (float& value : x) {
    const auto draw = engine() % 40;
    value = draw < 7    ? some[draw]
            : draw == 7 ? std::numeric_limits<float>::quiet_NaN()
                        : static_cast<float>(static_cast<std::int32_t>(engine())) / 1e9F;
  }
  return x;
}

/// The layers one after another, each as its contract in kernels/cpu/ops.hpp says, both ways in the CPU's order of
/// roundings.
class Layers {
 public:
  explicit Layers(const EpilogueCase& c) : case_(c), height_(c.shape.height), width_(c.shape.width) {}

  std::vector<float> forward(std::vector<float> x) {
    for (int i = 0; i < case_.epilogue.count; ++i) x = forward_one(case_.epilogue.steps[i], x);
    return x;
  }

  std::vector<double> backward(std::vector<double> dy) const {
    // NOLINTNEXTLINE(modernize-loop-convert): clang 14 does not read std::views::reverse
    for (auto back = backward_.rbegin(); back != backward_.rend(); ++back) dy = (*back)(dy);
    return dy;
  }

 private:
  using Gradient = std::vector<double>;

  std::vector<float> forward_one(const EpilogueStep& step, const std::vector<float>& x) {
    switch (step.kind) {
      case EpilogueKind::kRelu:
        return relu(x);
      case EpilogueKind::kDropout:
        return dropout(step, x);
      case EpilogueKind::kMaxPool:
        return max_pool(x);
      case EpilogueKind::kAvgPool:
        return avg_pool(x);
    }
    return x;
  }

  std::vector<float> relu(std::vector<float> y) {
    for (float& value : y) value = value < 0 ? 0.0F : value;
    backward_.emplace_back([y](Gradient dy) {
      for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = y[i] > 0 ? dy[i] : 0;
      return dy;
    });
    return y;
  }

  std::vector<float> dropout(const EpilogueStep& step, std::vector<float> y) {
    std::vector<bool> dropped(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      dropped[i] = is_dropped(step, i);
      y[i] = dropped[i] ? 0.0F : y[i] * (1.0F / (1.0F - step.probability));
    }
    const float scale = 1.0F / (1.0F - step.probability);
    backward_.emplace_back([dropped, scale](Gradient dy) {
      for (std::size_t i = 0; i < dy.size(); ++i)
        dy[i] = dropped[i] ? 0 : static_cast<double>(static_cast<float>(dy[i]) * scale);
      return dy;
    });
    return y;
  }

  /// The rule of kernels/numerics/random.hpp, word for word.
  bool is_dropped(const EpilogueStep& step, std::size_t i) const {
    const auto batch = static_cast<std::size_t>(case_.batch);
    const auto pixels = static_cast<std::size_t>(height_ * width_);
    const auto unit = static_cast<std::uint32_t>(step.whole_channels ? i / batch / pixels : i / batch);
    const auto column = static_cast<std::uint32_t>(i % batch);
    const std::uint32_t stream = random_stream(RandomUse::kDropout, step.layer);
    const Philox4 block =
        philox(case_.epilogue.seed, {{unit / 4, case_.epilogue.first_sample + column, stream, kStep}});
    return block.value[unit % 4] < dropout_threshold(step.probability);
  }

  Pool2dShape next_pool() {
    const Pool2dShape shape = {case_.batch, case_.shape.channels, height_, width_, 2, 2, 0};
    height_ /= 2;
    width_ /= 2;
    return shape;
  }

  std::vector<float> max_pool(const std::vector<float>& x) {
    const Pool2dShape shape = next_pool();
    const auto pooled = reference::max_pool_forward(shape, {x.begin(), x.end()});
    backward_.emplace_back([shape, argmax = pooled.argmax](const Gradient& dy) {
      return reference::max_pool_backward(shape, dy, argmax);
    });
    return {pooled.y.begin(), pooled.y.end()};
  }

  std::vector<float> avg_pool(const std::vector<float>& x) {
    const Pool2dShape shape = next_pool();
    std::vector<float> y(shape.out_size());
    reference::for_each_pool_tap(shape, [&](std::size_t to, int tap, std::size_t from) {
      y[to] = tap == 0 ? x[from] : y[to] + x[from];
    });
    for (float& value : y) value *= 0.25F;
    backward_.emplace_back([shape](const Gradient& dy) { return reference::avg_pool_backward(shape, dy); });
    return y;
  }

  const EpilogueCase& case_;
  int height_, width_;  ///< current size of the image
  std::vector<std::function<Gradient(const Gradient&)>> backward_;
};

class DeviceEpilogueTest : public testing::Test {
 protected:
  static std::size_t out_size(const EpilogueCase& c) { return size_after(c.epilogue, c.shape, c.batch); }

  /// There and back on the device; dy is that of seed c.seed.
  EpilogueResult run(const EpilogueCase& c) {
    return run_epilogue(rig_, rig_.ops(), c.shape, c.batch, c.epilogue, {.scalars = {}, .step = kStep},
                        inputs(c), random_numbers(out_size(c), c.seed));
  }

  void expect_equals_layers(const EpilogueCase& c) {
    SCOPED_TRACE(describe(c));
    const EpilogueResult actual = run(c);
    Layers layers(c);
    const std::vector<float> y = layers.forward(inputs(c));
    ASSERT_EQ(actual.y.size(), y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const bool same =
          std::isnan(y[i]) ? std::isnan(actual.y[i]) : std::memcmp(&actual.y[i], &y[i], sizeof(float)) == 0;
      ASSERT_TRUE(same) << "y[" << i << "] is " << actual.y[i] << ", expected " << y[i];
    }
    const auto dx = layers.backward(random_numbers(y.size(), c.seed));
    ASSERT_EQ(actual.dx.size(), dx.size());
    for (std::size_t i = 0; i < dx.size(); ++i)
      ASSERT_EQ(actual.dx[i], static_cast<float>(dx[i])) << "dx[" << i << "]";
  }

  DeviceRig rig_;
};

TEST_F(DeviceEpilogueTest, RandomEpiloguesEqualTheirLayers) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) expect_equals_layers(random_case(seed));
}

/// Epilogues of the layers of Net and LeNet.
TEST_F(DeviceEpilogueTest, EpiloguesOfTheNetworksEqualTheirLayers) {
  constexpr EpilogueStep kRelu = {}, kMax = {EpilogueKind::kMaxPool}, kAvg = {EpilogueKind::kAvgPool};
  constexpr EpilogueStep kDropout2d = {EpilogueKind::kDropout, true, 4, 0.5F};
  constexpr EpilogueStep kDropout = {EpilogueKind::kDropout, false, 9, 0.5F};
  const EpilogueCase cases[] = {
      {{10, 8, 8}, 17, {{kMax, kRelu}, 2, 2, 11, 64}, 1},
      {{20, 4, 4}, 64, {{kDropout2d, kMax, kRelu}, 3, 2, 11, 64}, 2},
      {{50, 1, 1}, 100, {{kRelu, kDropout}, 2, 1, 11, 64}, 3},
      {{6, 5, 7}, 100, {{kRelu, kAvg}, 2, 2, 11, 64}, 4},
      {{3, 5, 7}, 1, {{kDropout, kMax, kDropout, kRelu}, 4, 2, 11, 0}, 5},
      {{10, 1, 1}, 17, {}, 6},
  };
  for (const EpilogueCase& c : cases) expect_equals_layers(c);
}

TEST_F(DeviceEpilogueTest, MaskIsNotWrittenWhereItIsNotWanted) {
  const EpilogueCase c = {{2, 4, 4}, 5, {{{}, {EpilogueKind::kMaxPool}}, 2, 2}, 7};
  const auto x = rig_.upload(inputs(c));
  const auto y = rig_.poisoned<float>(out_size(c));
  rig_.ops().epilogue_forward(rig_.stream(), c.shape, c.batch, x.data(), c.epilogue, nullptr, y.data(),
                              nullptr);
  EXPECT_TRUE(same_bits(rig_.download(y), run(c).y));
}

TEST_F(DeviceEpilogueTest, DropoutNeedsTheStateThatKeysIt) {
  const auto x = rig_.zeroed<float>(16), y = rig_.zeroed<float>(16);
  Epilogue epilogue;
  epilogue.count = 1;
  const auto queue = [&] {
    rig_.ops().epilogue_forward(rig_.stream(), {1, 2, 2}, 4, x.data(), epilogue, nullptr, y.data(), nullptr);
  };
  EXPECT_NO_THROW(queue()) << "it is relu";
  epilogue.steps[0] = {.kind = EpilogueKind::kDropout, .probability = 0.5F};
  EXPECT_THROW(queue(), InternalError);
}

TEST_F(DeviceEpilogueTest, BitsAreTheSameInEveryOrderOfThreads) {
  for (const std::uint32_t seed : {7U, 8U, 20U, 25U}) {
    const EpilogueCase c = random_case(seed);
    SCOPED_TRACE(describe(c));
    same_in_every_order([&] {
      const EpilogueResult result = run(c);
      std::vector<float> all = result.y;
      all.insert(all.end(), result.mask.begin(), result.mask.end());
      all.insert(all.end(), result.dx.begin(), result.dx.end());
      return all;
    });
  }
}

}  // namespace
}  // namespace lockstep::test::epilogue_test
