// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The SGD step against its formula in double, over several steps and at every alignment.
#include "kernels/cpu/sgd.hpp"

#include "gtest/gtest.h"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"

#include <string>

namespace lockstep {
namespace {

using reference::all_near;
using reference::random_tensor;
using reference::widen;

constexpr int kSteps = 5;
const std::size_t kSizes[] = {1, 7, 16, 37, 64, 1000};
// learning rate, momentum, weight decay, Nesterov
const SgdParams kParams[] = {
    {0.1F, 0, 0, false},    {0.1F, 0, 0.01F, false},     {0.05F, 0.5F, 0, false}, {0.05F, 0.9F, 0.01F, false},
    {0.05F, 0.9F, 0, true}, {0.02F, 0.9F, 0.001F, true}, {0.05F, 0, 0, true}};

std::string describe(const SgdParams& p) {
  return "lr " + std::to_string(p.learning_rate) + ", momentum " + std::to_string(p.momentum) + ", decay " +
         std::to_string(p.weight_decay) + (p.nesterov ? ", Nesterov" : "");
}

/// torch.optim.SGD in double; its first step (buffer = gradient) is the step from a buffer of zeros.
void reference_step(const SgdParams& p, const std::vector<double>& g, std::vector<double>& m,
                    std::vector<double>& w) {
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double d = g[i] + static_cast<double>(p.weight_decay) * w[i];
    m[i] = static_cast<double>(p.momentum) * m[i] + d;
    const double direction = p.nesterov ? d + static_cast<double>(p.momentum) * m[i] : m[i];
    w[i] -= static_cast<double>(p.learning_rate) * direction;
  }
}

/// The weights after kSteps, which start `offset` floats behind a cache line.
std::vector<float> train(const SgdParams& params, std::size_t size, std::size_t offset) {
  auto w = random_tensor(size + offset, 1);
  AlignedBuffer<float> m(size + offset);
  for (unsigned step = 0; step < kSteps; ++step) {
    const auto g = random_tensor(size, 2 + step);
    cpu::sgd_step(params, size, g.data(), m.data() + offset, w.data() + offset);
  }
  return {w.span().begin() + static_cast<std::ptrdiff_t>(offset), w.span().end()};
}

TEST(SgdTest, EqualsFormulaInDouble) {
  for (const SgdParams& params : kParams) {
    for (const std::size_t size : kSizes) {
      SCOPED_TRACE(describe(params) + ", size " + std::to_string(size));
      std::vector<double> w = widen(random_tensor(size, 1).span());
      std::vector<double> m(size);
      for (unsigned step = 0; step < kSteps; ++step) {
        reference_step(params, widen(random_tensor(size, 2 + step).span()), m, w);
      }
      EXPECT_TRUE(all_near(train(params, size, 0), w, 1e-6));
    }
  }
}

TEST(SgdTest, WeightsNeedNoAlignment) {
  for (const SgdParams& params : kParams) {
    const auto expected = widen(train(params, 37, 0));
    auto w = random_tensor(37, 1);
    for (std::size_t offset = 1; offset < 16; ++offset) {
      AlignedBuffer<float> shifted(37 + offset);
      AlignedBuffer<float> m(37 + offset);
      std::copy(w.span().begin(), w.span().end(), shifted.data() + offset);
      for (unsigned step = 0; step < kSteps; ++step) {
        const auto g = random_tensor(37, 2 + step);
        cpu::sgd_step(params, 37, g.data(), m.data() + offset, shifted.data() + offset);
      }
      EXPECT_TRUE(all_near(shifted.span().subspan(offset), expected, 1e-7))
          << describe(params) << ", " << offset;
    }
  }
}

TEST(SgdTest, WithoutMomentumTheBufferMayBeNull) {
  auto w = random_tensor(19, 1);
  const auto before = widen(w.span());
  const auto g = random_tensor(19, 2);
  cpu::sgd_step({0.5F, 0, 0, false}, 19, g.data(), nullptr, w.data());
  for (std::size_t i = 0; i < 19; ++i) EXPECT_EQ(w[i], static_cast<float>(before[i] - 0.5 * g[i]));
}

TEST(SgdTest, BitsAreTheSameOnEverySimdTargetWithFusedMultiplyAdd) {
  for (const SgdParams& params : kParams) {
    SCOPED_TRACE(describe(params));
    reference::expect_same_bits(reference::fused_targets(), [&] { return train(params, 1003, 1); });
  }
}

}  // namespace
}  // namespace lockstep
