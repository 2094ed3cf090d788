// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Gradients of whole networks against finite differences of the loss.
#include "kernels/numerics/portable_math.hpp"
#include "kernels/numerics/random.hpp"
#include "models/network.hpp"
#include "tests/models/training_rig.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

namespace {

struct GradientCase {
  const char* name;
  const char* layers;
  ImageShape input;
};

std::ostream& operator<<(std::ostream& out, const GradientCase& c) {
  return out << c.name;
}

class GradientTest : public ::testing::TestWithParam<GradientCase> {
 protected:
  static constexpr int kClasses = 4;
  static constexpr int kSamples = 19;
  static constexpr float kStep = 1e-4F;

  /// The loss after moving every element of one tensor by `step`, with the sign of `direction`'s.
  double loss_beside(const Parameter& parameter, const std::vector<float>& direction, float step) {
    const std::vector<float> kept(rig_.weights().data(), rig_.weights().data() + rig_.weights().size());
    for (std::size_t i = 0; i < parameter.size; ++i) {
      rig_.weights()[parameter.offset + i] += step * std::copysign(1.0F, direction[i]);
    }
    const double loss = rig_.forward(0, kSamples);
    std::copy(kept.begin(), kept.end(), rig_.weights().data());
    return loss;
  }

  /// Slopes along random directions. Where a relu or max-pool has its kink within one step, the slopes of the
  /// two sides differ and the gradient is one of them; a wrong gradient is neither.
  void check(const Parameter& parameter, const float* gradient, double loss) {
    const double norm = std::sqrt(std::inner_product(gradient, gradient + parameter.size, gradient, 0.0));
    EXPECT_GT(norm, 0.01) << parameter.name;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const std::vector<float> direction = draw(parameter.size, seed);
      double expected = 0;
      for (std::size_t i = 0; i < parameter.size; ++i)
        expected += std::copysign(1.0, direction[i]) * gradient[i];
      const double above = (loss_beside(parameter, direction, kStep) - loss) / kStep;
      const double below = (loss - loss_beside(parameter, direction, -kStep)) / kStep;
      const double nearer = std::abs(above - expected) < std::abs(below - expected) ? above : below;
      EXPECT_NEAR(nearer, expected, 0.01 * norm + 0.01) << parameter.name << ", direction " << seed;
    }
  }

  TrainingRig rig_{GetParam().layers, GetParam().input, kClasses, kSamples};
};

TEST_P(GradientTest, AgreesWithFiniteDifferences) {
  const double loss = rig_.forward(0, kSamples);
  const std::vector<float> gradients = rig_.backward();
  for (const Parameter& parameter : rig_.network().parameters().parameters) {
    check(parameter, gradients.data() + parameter.offset, loss);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Networks, GradientTest,
    ::testing::Values(
        GradientCase{"linear", "  - linear: classes\n", {5, 1, 1}},
        GradientCase{"mlp", "  - flatten\n  - linear: 9\n  - relu\n  - linear: classes\n", {2, 3, 3}},
        GradientCase{"convolutions",
                     "  - conv2d: {out: 3, kernel: 3, padding: 1}\n  - relu\n"
                     "  - conv2d: {out: 4, kernel: [3, 2], stride: 2}\n  - relu\n  - linear: classes\n",
                     {2, 8, 7}},
        GradientCase{"pools",
                     "  - conv2d: {out: 3, kernel: 3}\n  - max_pool: 2\n  - relu\n"
                     "  - conv2d: {out: 5, kernel: 2}\n  - avg_pool: {kernel: 3, stride: 1, padding: 1}\n"
                     "  - linear: classes\n",
                     {1, 10, 10}},
        GradientCase{"relu_over_pools",
                     "  - avg_pool: 2\n  - relu\n  - conv2d: {out: 4, kernel: 2}\n  - relu\n"
                     "  - max_pool: {kernel: 3, stride: 2, padding: 1}\n  - linear: classes\n",
                     {2, 9, 9}},
        GradientCase{
            "dropouts",
            "  - dropout: 0.25\n  - conv2d: {out: 6, kernel: 3}\n  - dropout2d: 0.5\n  - max_pool: 2\n"
            "  - relu\n  - linear: 12\n  - relu\n  - dropout: 0.5\n  - relu\n  - linear: classes\n",
            {1, 8, 8}},
        GradientCase{
            "dropout_last", "  - linear: 8\n  - relu\n  - linear: classes\n  - dropout: 0.2\n", {6, 1, 1}},
        GradientCase{
            "curves",
            "  - conv2d: {out: 4, kernel: 3}\n  - tanh\n  - dropout: 0.2\n  - conv2d: {out: 5, kernel: 3}\n"
            "  - sigmoid\n  - global_avg_pool\n  - gelu\n  - linear: 6\n  - gelu: {approximate: tanh}\n  - "
            "linear: classes\n",
            {1, 8, 8}},
        GradientCase{"more_curves",
                     "  - conv2d: {out: 4, kernel: 3}\n  - leaky_relu: 0.1\n  - conv2d: {out: 5, kernel: 3}\n"
                     "  - elu: {alpha: 0.7}\n  - linear: 12\n  - hardswish\n  - linear: 9\n  - silu\n"
                     "  - linear: classes\n",
                     {1, 8, 8}},
        GradientCase{
            "branches",
            "  - conv2d: {out: 4, kernel: 3, padding: 1}\n  - relu: {name: a}\n"
            "  - conv2d: {out: 4, kernel: 3, padding: 1}\n  - relu\n  - add: a\n  - tanh\n  - add: a\n"
            "  - dropout: 0\n  - relu: {name: b}\n  - add: b\n  - linear: classes\n  - add: fc1\n",
            {2, 5, 5}},
        GradientCase{"gates",
                     "  - conv2d: {out: 4, kernel: 3, padding: 1}\n  - tanh: {name: a}\n  - global_avg_pool\n"
                     "  - linear: {name: gate, out: 4}\n  - multiply: a\n  - add: {name: b, from: a}\n"
                     "  - multiply: gate\n  - add: {name: c, from: b}\n  - multiply: c\n  - add: a\n"
                     "  - multiply: c\n  - add: b\n  - multiply: gate\n  - add: a\n  - linear: classes\n",
                     {2, 5, 5}},
        GradientCase{"concats",
                     "  - conv2d: {out: 3, kernel: 3, padding: 1}\n  - tanh: {name: a}\n"
                     "  - conv2d: {out: 2, kernel: 3, padding: 1}\n  - silu\n  - concat: a\n"
                     "  - concat: {from: a, name: c}\n  - concat: c\n  - linear: 5\n  - tanh\n"
                     "  - concat: fc1\n  - linear: classes\n",
                     {2, 5, 4}},
        GradientCase{"group_norms",
                     "  - conv2d: {out: 6, kernel: 3, padding: 1}\n  - group_norm: 3\n  - hardsigmoid\n"
                     "  - conv2d: {out: 4, kernel: 3}\n  - layer_norm: {eps: 0.01}\n  - tanh\n"
                     "  - group_norm: {groups: 2, affine: false}\n  - linear: 8\n  - layer_norm\n  - silu\n"
                     "  - linear: classes\n",
                     {2, 6, 5}},
        GradientCase{"adaptive_pools",
                     "  - conv2d: {out: 3, kernel: 3}\n  - silu\n  - adaptive_avg_pool: 3\n"
                     "  - conv2d: {out: 4, kernel: 2}\n  - tanh\n  - adaptive_avg_pool: {out: 3}\n"
                     "  - linear: classes\n",
                     {1, 9, 7}},
        GradientCase{"transposed_convolutions",
                     "  - conv2d: {out: 4, kernel: 3, stride: 2}\n  - tanh\n"
                     "  - conv_transpose2d: {out: 6, kernel: 3, stride: 2, padding: 1, output_padding: 1, "
                     "groups: 2}\n  - silu\n"
                     "  - conv_transpose2d: {out: 3, kernel: [2, 3], dilation: 2, bias: false}\n  - tanh\n"
                     "  - linear: classes\n",
                     {2, 7, 8}},
        // Not right behind a convolution, whose bias they take away.
        GradientCase{"batch_norms",
                     "  - batch_norm: {affine: false}\n  - conv2d: {out: 4, kernel: 3, padding: 1}\n"
                     "  - tanh: {name: a}\n  - batch_norm: {eps: 0.01, name: b}\n  - route: a\n"
                     "  - conv2d: {out: 4, kernel: 1}\n  - tanh\n  - batch_norm: {eps: 0.1}\n  - add: b\n"
                     "  - linear: classes\n",
                     {2, 5, 4}},
        GradientCase{
            "without_biases",
            "  - conv2d: {out: 4, kernel: 3, padding: 1, bias: false}\n  - tanh\n"
            "  - conv2d: {out: 6, kernel: 3, bias: false}\n  - tanh\n  - linear: {out: 8, bias: false}\n"
            "  - tanh\n  - linear: {out: classes, bias: false}\n",
            {2, 5, 4}},
        GradientCase{"batch_norm_of_vectors",
                     "  - linear: 7\n  - tanh\n  - batch_norm: {eps: 0.1}\n  - linear: classes\n",
                     {6, 1, 1}},
        GradientCase{"branch_of_the_untrained",
                     "  - tanh: {name: a}\n  - conv2d: {out: 2, kernel: 3, padding: 1}\n  - add: a\n"
                     "  - add: a\n  - flatten\n  - linear: classes\n",
                     {2, 4, 4}},
        GradientCase{"ends_in_avg_pool",
                     "  - conv2d: {out: 6, kernel: 3}\n  - relu\n  - conv2d: {out: classes, kernel: 1}\n"
                     "  - avg_pool: 4\n  - flatten\n",
                     {1, 6, 6}}),
    [](const auto& test) { return test.param.name; });

/// All that multiplies, and layers between which numbers stay the same.
TEST(Int16GradientTest, ProductsOf16BitsAreNearThoseOfFp32) {
  const std::string layers =
      "  - conv2d: {out: 6, kernel: 3, padding: 1}\n  - batch_norm\n  - relu: {name: a}\n"
      "  - conv2d: {out: 6, kernel: 3, padding: 1, bias: false}\n  - batch_norm\n  - add: a\n  - relu: "
      "{name: b}\n"
      "  - conv2d: {name: c, out: 4, kernel: 1}\n  - route: b\n  - conv_transpose2d: {out: 4, kernel: 3, "
      "padding: 1}\n"
      "  - add: c\n  - tanh\n  - flatten\n  - linear: 9\n  - silu\n  - linear: classes\n";
  TrainingRig exact(layers, {2, 8, 8}, 4, 21), rounded(layers, {2, 8, 8}, 4, 21, Precision::kInt16);
  const double loss = exact.forward(0, 21);
  const double rounded_loss = rounded.forward(0, 21);
  EXPECT_NEAR(rounded_loss, loss, 0.01 * loss);
  const std::vector<float> expected = exact.backward(), gradients = rounded.backward();
  double difference = 0, all = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(gradients[i] - expected[i], 2);
    all += std::pow(expected[i], 2);
  }
  EXPECT_GT(difference, 0);
  EXPECT_LT(std::sqrt(difference / all), 0.02);
  TrainingRig later(layers, {2, 8, 8}, 4, 21, Precision::kInt16);
  later.forward(5, 16);
  later.backward();
  EXPECT_EQ(later.forward(0, 21), rounded_loss);
  EXPECT_EQ(later.backward(), gradients);
}

}  // namespace

}  // namespace lockstep::test

namespace lockstep {

// Initial weights: ranges, moments, and bits that no machine may change.

namespace {

struct Moments {
  double mean = 0, deviation = 0, fourth = 0;
};

Moments moments_of(const std::vector<float>& numbers) {
  Moments m;
  const auto count = static_cast<double>(numbers.size());
  for (const float x : numbers) m.mean += x / count;
  double variance = 0;
  for (const float x : numbers) variance += std::pow(x - m.mean, 2) / count;
  for (const float x : numbers) m.fourth += std::pow(x - m.mean, 4) / count / (variance * variance);
  m.deviation = std::sqrt(variance);
  return m;
}

TEST(InitialWeightsTest, UniformFillsTheRangeOfItsFanIn) {
  std::vector<float> weights(100003);
  InitialWeights{1, 0}.fill_uniform(25, weights);
  const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
  EXPECT_GE(*least, -0.2F);
  EXPECT_LT(*least, -0.1999F);
  EXPECT_LE(*most, 0.2F);
  EXPECT_GT(*most, 0.1999F);
  EXPECT_NEAR(moments_of(weights).mean, 0, 0.002);
  EXPECT_NEAR(moments_of(weights).deviation, 0.2 / std::sqrt(3.0), 0.001);
}

TEST(InitialWeightsTest, NormalHasItsDeviationAndTails) {
  std::vector<float> weights(200000);
  InitialWeights{1, 0}.fill_normal(0.01, weights);
  const Moments m = moments_of(weights);
  EXPECT_NEAR(m.mean, 0, 1e-4);
  EXPECT_NEAR(m.deviation, 0.01, 1e-4);
  EXPECT_NEAR(m.fourth, 3, 0.06);
  EXPECT_GT(*std::max_element(weights.begin(), weights.end()), 0.04F);
}

/// As models/network.hpp says.
TEST(InitialWeightsTest, FourElementsAreMadeOfOneBlock) {
  std::vector<float> uniform(10), normal(10);
  const InitialWeights initial{7, 3};
  initial.fill_uniform(25, uniform);
  initial.fill_normal(0.5, normal);
  for (std::uint32_t e = 0; e < 10; ++e) {
    const Philox4 block = philox(7, {{e / 4, 0, random_stream(RandomUse::kInitialise, 3), 0}});
    const std::uint32_t word = block.value[e % 4];
    EXPECT_EQ(uniform[e], static_cast<float>((2.0 * uniform01(word) - 1) * (1 / std::sqrt(25.0)))) << e;
    EXPECT_EQ(normal[e], static_cast<float>(0.5 * normal_quantile((word + 0.5) / 4294967296.0))) << e;
  }
}

TEST(InitialWeightsTest, FollowFromSeedTensorAndPlaceAlone) {
  const auto numbers = [](const InitialWeights& initial, std::size_t count) {
    std::vector<float> weights(count);
    initial.fill_uniform(4, weights);
    weights.resize(5);
    return weights;
  };
  EXPECT_EQ(numbers({1, 0}, 5), numbers({1, 0}, 9));
  EXPECT_NE(numbers({1, 0}, 5), numbers({1, 1}, 5));
  EXPECT_NE(numbers({1, 0}, 5), numbers({2, 0}, 5));
}

}  // namespace

}  // namespace lockstep
