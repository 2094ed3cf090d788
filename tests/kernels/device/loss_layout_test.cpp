// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loss kernel also serves vendor ops, whose tensors are [sample][class]: the same numbers in another
/// place. And its exp and log are those of the math library, nearly.
#include "kernels/cuda/activation_math.cuh"
#include "kernels/cuda/kernels.hpp"
#include "tests/kernels/device/rig.hpp"

namespace lockstep::test::loss_layout_test {
namespace {

struct Result {
  std::vector<float> gradient;
  std::vector<std::int64_t> counters;
};

class LossLayoutTest : public testing::Test {
 protected:
  Result run(const LossShape& shape, const std::vector<double>& logits,
             const std::vector<std::int32_t>& labels, const emulated::TensorLayout& layout) {
    const auto x = rig_.upload(logits);
    const auto label_memory = rig_.upload(labels);
    const auto counters = rig_.zeroed<std::int64_t>(kStepCounters);
    const auto dlogits = rig_.poisoned<float>(logits.size());
    emulated::softmax_cross_entropy(static_cast<cudaStream_t>(rig_.stream().native_handle()), shape, layout,
                                    x.data(), {label_memory.data(), counters.data(), 1e6, nullptr},
                                    dlogits.data());
    return {rig_.download(dlogits), rig_.download(counters)};
  }

  DeviceRig rig_;
};

TEST_F(LossLayoutTest, SampleOutermostGivesTheSameNumbers) {
  for (const LossShape shape : {LossShape{17, 17, 10}, {1, 1, 3}, {100, 100, 37}}) {
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
    const Result innermost = run(shape, logits, labels, {batch, 1});
    const Result outermost = run(shape, turned, labels, {1, classes});
    EXPECT_EQ(outermost.counters, innermost.counters);
    for (std::size_t n = 0; n < batch; ++n)
      for (std::size_t c = 0; c < classes; ++c)
        ASSERT_EQ(outermost.gradient[n * classes + c], innermost.gradient[c * batch + n])
            << "class " << c << " of sample " << n;
  }
}

/// In units in the last place of the exact value; below 2^-126 in those of 2^-149.
double error_in_ulp(float actual, double exact) {
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  return std::abs(static_cast<double>(actual) - exact) / ulp;
}

TEST(ExpLogTest, ExpIsWithinTwoUnits) {
  for (int i = 0; i < 200'000; ++i) {
    const float x = -static_cast<float>(i) * 5.1e-4F;
    ASSERT_LE(error_in_ulp(emulated::exp_nonpositive(x), std::exp(static_cast<double>(x))), 2) << "e^" << x;
  }
}

TEST(ExpLogTest, LogIsWithinTwoUnits) {
  EXPECT_EQ(emulated::log_from_one(1.0F), 0.0F);
  for (float x = 1 + 0x1p-23F; x < 1e6F; x += (x - 1) * 1e-4F + 0x1p-22F) {
    ASSERT_LE(error_in_ulp(emulated::log_from_one(x), std::log(static_cast<double>(x))), 2) << "ln " << x;
  }
}

TEST(ExpLogTest, EdgesAreThoseOfTheMathLibrary) {
  EXPECT_EQ(emulated::exp_nonpositive(0.0F), 1.0F);
  EXPECT_EQ(emulated::exp_nonpositive(-INFINITY), 0.0F);
  EXPECT_EQ(emulated::exp_nonpositive(-1000.0F), 0.0F);
  EXPECT_TRUE(std::isnan(emulated::exp_nonpositive(NAN)));
  EXPECT_TRUE(std::isnan(emulated::log_from_one(NAN)));
}

}  // namespace
}  // namespace lockstep::test::loss_layout_test
