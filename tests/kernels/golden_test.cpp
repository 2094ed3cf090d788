// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every op of the CPU backend against PyTorch: tests/golden/make_golden.py made the numbers.
#include "gtest/gtest.h"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/layer_problem.hpp"
#include "tests/kernels/reference/tensor.hpp"

namespace lockstep::golden_test {
namespace {

using reference::from_columns;
using reference::GoldenCase;
using reference::GoldenTensor;
using reference::padded_batch;
using reference::to_columns;

constexpr double kTolerance = 1e-6;

class GoldenTest : public ::testing::Test {
 protected:
  GoldenCase open_case(const std::string& name) const { return {file_, name}; }
  /// The file says how many cases of an op there are: "conv2d.0", "conv2d.1", ...
  std::vector<GoldenCase> cases(const std::string& op, const std::string& tensor = "x") const {
    std::vector<GoldenCase> found;
    while (open_case(op + "." + std::to_string(found.size())).has(tensor)) {
      found.push_back(open_case(op + "." + std::to_string(found.size())));
    }
    EXPECT_FALSE(found.empty()) << "no golden tensors of " << op;
    return found;
  }

  const SafetensorsFile file_ = GoldenCase::open();
};

/// Compares our columns with PyTorch's tensor.
::testing::AssertionResult matches(const AlignedBuffer<float>& columns, const GoldenTensor<float>& golden) {
  return reference::all_near(from_columns(columns, golden.samples()), reference::widen(golden.values),
                             kTolerance);
}

::testing::AssertionResult matches(const std::vector<float>& values, const GoldenTensor<float>& golden) {
  return reference::all_near(values, reference::widen(golden.values), kTolerance);
}

/// For sums of products: an error may be kTolerance of the same sum over absolute values.
::testing::AssertionResult sums_match(const std::vector<float>& values, const GoldenCase& golden,
                                      const std::string& tensor) {
  const auto expected = golden.floats(tensor).values;
  const auto magnitude = golden.floats("abs_" + tensor).values;
  if (values.size() != expected.size()) return ::testing::AssertionFailure() << tensor << " has another size";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i] - expected[i]) <= kTolerance * static_cast<double>(magnitude[i])) continue;
    return ::testing::AssertionFailure() << tensor << "[" << i << "] is " << values[i] << " instead of "
                                         << expected[i] << ", sum of magnitudes " << magnitude[i];
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult sums_match(const AlignedBuffer<float>& columns, const GoldenCase& golden,
                                      const std::string& tensor) {
  return sums_match(from_columns(columns, golden.floats(tensor).samples()), golden, tensor);
}

Conv2dShape conv2d_shape(const GoldenCase& golden) {
  const auto x = golden.floats("x").shape;
  const auto w = golden.floats("w").shape;
  const auto settings = golden.integers("settings").values;
  return {.batch = padded_batch(x[0]),
          .in_channels = x[1],
          .in_height = x[2],
          .in_width = x[3],
          .out_channels = w[0],
          .kernel_height = w[2],
          .kernel_width = w[3],
          .stride = settings[0],
          .padding = settings[1],
          .groups = settings.size() > 2 ? settings[2] : 1,
          .dilation = settings.size() > 2 ? settings[3] : 1};
}

TEST_F(GoldenTest, Conv2dEqualsPyTorch) {
  for (const GoldenCase& golden : cases("conv2d")) {
    const Conv2dShape shape = conv2d_shape(golden);
    const auto x = to_columns(golden.floats("x"));
    const auto dy = to_columns(golden.floats("dy"));
    const auto w = golden.floats("w").values;
    const auto b = golden.floats("b").values;
    AlignedBuffer<float> y(shape.out_size());
    AlignedBuffer<float> dx(shape.in_size());
    std::vector<float> dw(w.size());
    std::vector<float> db(b.size());
    cpu::conv2d_forward(shape, x.data(), w.data(), b.data(), y.data());
    cpu::conv2d_backward_data(shape, dy.data(), w.data(), nullptr, dx.data());
    const auto run = [&](const GradientOutput& to) {
      cpu::conv2d_backward_weights(shape, GradientSplit(shape, shape.batch), x.data(), dy.data(), to);
    };
    test::sum_terms(shape, shape.batch, run, dw.data(), db.data());
    EXPECT_TRUE(sums_match(y, golden, "y"));
    EXPECT_TRUE(sums_match(dx, golden, "dx"));
    EXPECT_TRUE(sums_match(dw, golden, "dw"));
    EXPECT_TRUE(sums_match(db, golden, "db"));
  }
}

TEST_F(GoldenTest, LinearEqualsPyTorch) {
  for (const GoldenCase& golden : cases("linear")) {
    const auto x = to_columns(golden.floats("x"));
    const auto dy = to_columns(golden.floats("dy"));
    const auto w = golden.floats("w");
    const auto b = golden.floats("b").values;
    const LinearShape shape = {padded_batch(golden.floats("x").samples()), w.shape[1], w.shape[0]};
    AlignedBuffer<float> y(dy.size());
    AlignedBuffer<float> dx(x.size());
    std::vector<float> dw(w.values.size());
    std::vector<float> db(b.size());
    cpu::linear_forward(shape, x.data(), w.values.data(), b.data(), y.data());
    cpu::linear_backward_data(shape, dy.data(), w.values.data(), dx.data());
    cpu::linear_backward_weights(shape, x.data(), dy.data(), dw.data(), db.data());
    EXPECT_TRUE(sums_match(y, golden, "y"));
    EXPECT_TRUE(sums_match(dx, golden, "dx"));
    EXPECT_TRUE(sums_match(dw, golden, "dw"));
    EXPECT_TRUE(sums_match(db, golden, "db"));
  }
}

Pool2dShape pool2d_shape(const GoldenCase& golden) {
  const auto x = golden.floats("x").shape;
  const auto settings = golden.integers("settings").values;
  return {.batch = padded_batch(x[0]),
          .channels = x[1],
          .in_height = x[2],
          .in_width = x[3],
          .kernel = settings[0],
          .stride = settings[1],
          .padding = settings[2]};
}

TEST_F(GoldenTest, MaxPoolEqualsPyTorch) {
  for (const GoldenCase& golden : cases("max_pool2d")) {
    const Pool2dShape shape = pool2d_shape(golden);
    AlignedBuffer<float> y(shape.out_size());
    AlignedBuffer<std::uint8_t> argmax(shape.out_size());
    AlignedBuffer<float> dx(shape.in_size());
    cpu::max_pool_forward(shape, to_columns(golden.floats("x")).data(), y.data(), argmax.data());
    cpu::max_pool_backward(shape, to_columns(golden.floats("dy")).data(), argmax.data(), dx.data());
    EXPECT_TRUE(matches(y, golden.floats("y")));
    EXPECT_TRUE(matches(dx, golden.floats("dx")));
  }
}

TEST_F(GoldenTest, AvgPoolEqualsPyTorch) {
  for (const GoldenCase& golden : cases("avg_pool2d")) {
    const Pool2dShape shape = pool2d_shape(golden);
    AlignedBuffer<float> y(shape.out_size());
    AlignedBuffer<float> dx(shape.in_size());
    cpu::avg_pool_forward(shape, to_columns(golden.floats("x")).data(), y.data());
    cpu::avg_pool_backward(shape, to_columns(golden.floats("dy")).data(), dx.data());
    EXPECT_TRUE(matches(y, golden.floats("y")));
    EXPECT_TRUE(matches(dx, golden.floats("dx")));
  }
}

TEST_F(GoldenTest, ReluEqualsPyTorch) {
  const GoldenCase golden = cases("relu").front();
  auto y = to_columns(golden.floats("x"));
  auto dx = to_columns(golden.floats("dy"));
  std::vector<std::uint8_t> positive(sign_bytes(y.size()));
  cpu::relu_forward(y.size(), y.data(), y.data(), positive.data());
  cpu::relu_backward(dx.size(), positive.data(), dx.data(), dx.data());
  EXPECT_TRUE(matches(y, golden.floats("y")));
  EXPECT_TRUE(matches(dx, golden.floats("dx")));
}

TEST_F(GoldenTest, Relu6EqualsPyTorch) {
  const GoldenCase golden = cases("relu6").front();
  auto y = to_columns(golden.floats("x"));
  auto dx = to_columns(golden.floats("dy"));
  cpu::activation_forward(Activation::kRelu6, y.size(), y.data(), y.data());
  cpu::activation_backward(Activation::kRelu6, y.size(), y.data(), dx.data(), dx.data());
  EXPECT_TRUE(matches(y, golden.floats("y")));
  EXPECT_TRUE(matches(dx, golden.floats("dx")));
}

LossShape loss_shape(const GoldenCase& golden) {
  const auto x = golden.floats("x");
  return {padded_batch(x.samples()), x.samples(), x.features()};
}

TEST_F(GoldenTest, LogSoftmaxEqualsPyTorch) {
  const GoldenCase golden = cases("log_softmax").front();
  auto y = to_columns(golden.floats("x"));
  cpu::log_softmax(loss_shape(golden), y.data(), y.data());
  EXPECT_TRUE(matches(y, golden.floats("y")));
}

TEST_F(GoldenTest, CrossEntropyEqualsPyTorch) {
  const GoldenCase golden = cases("cross_entropy").front();
  auto dx = to_columns(golden.floats("x"));
  LossSums sums;
  cpu::loss_and_gradient(loss_shape(golden), dx.data(), golden.integers("labels").values.data(), dx.data(),
                         &sums);
  const auto loss = static_cast<double>(golden.floats("y").values[0]);
  EXPECT_NEAR(sums.loss, loss, 1e-6 * loss);
  EXPECT_EQ(sums.correct, golden.integers("correct").values[0]);
  EXPECT_TRUE(matches(dx, golden.floats("dx")));
}

TEST_F(GoldenTest, SgdEqualsPyTorchOverSeveralSteps) {
  for (const GoldenCase& golden : cases("sgd", "w0")) {
    const auto settings = golden.floats("settings").values;
    const RuleCase rule = sgd_case({settings[0], settings[1], settings[2], settings[3] != 0});
    auto w = golden.floats("w0").values;
    std::vector<float> m(w.size());
    for (const char step : {'1', '2', '3', '4'}) {
      const UpdateTensor all{.size = w.size()};
      float* const buffer = m.data();
      cpu::update(rule.rule, rule.scalars, {&all, 1}, golden.floats(std::string("g") + step).values.data(),
                  &buffer, w.data());
      EXPECT_TRUE(matches(w, golden.floats(std::string("w") + step))) << "step " << step << ", " << rule.name;
    }
  }
}

}  // namespace
}  // namespace lockstep::golden_test
