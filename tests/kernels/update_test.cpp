// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The optimiser step on the CPU. SGD against its formula in double, and for every rule alignment, ranges and
/// SIMD targets. What the other rules compute is compared with PyTorch by
/// tests/trainer/training/weight_update_test.cpp.
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/tensor.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::update_test {
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

/// Weights and behind them the buffers after kSteps; all start `offset` floats behind a cache line.
std::vector<float> train(const RuleCase& rule, std::span<const UpdateTensor> ranges, std::size_t size,
                         std::size_t offset) {
  const auto start = random_tensor(size, 1);
  AlignedBuffer<float> w(size + offset), first(size + offset), second(size + offset), third(size + offset);
  std::ranges::copy(start.span(), w.data() + offset);
  float* const buffers[] = {first.data() + offset, second.data() + offset, third.data() + offset};
  for (unsigned step = 0; step < kSteps; ++step) {
    const auto g = random_tensor(size, 2 + step);
    cpu::update(rule.rule, rule.scalars, ranges, g.data(), buffers, w.data() + offset);
  }
  std::vector<float> all;
  for (const AlignedBuffer<float>* part : {&w, &first, &second, &third})
    all.insert(all.end(), part->span().begin() + static_cast<std::ptrdiff_t>(offset), part->span().end());
  return all;
}

std::vector<float> train(const RuleCase& rule, std::size_t size, std::size_t offset) {
  const UpdateTensor all{.size = size};
  return train(rule, {&all, 1}, size, offset);
}

TEST(SgdTest, EqualsFormulaInDouble) {
  for (const SgdParams& params : kParams) {
    for (const std::size_t size : kSizes) {
      SCOPED_TRACE(sgd_case(params).name + ", size " + std::to_string(size));
      std::vector<double> w = widen(random_tensor(size, 1).span());
      std::vector<double> m(size);
      for (unsigned step = 0; step < kSteps; ++step) {
        reference_step(params, widen(random_tensor(size, 2 + step).span()), m, w);
      }
      std::vector<float> trained = train(sgd_case(params), size, 0);
      trained.resize(size);
      EXPECT_TRUE(all_near(trained, w, 1e-6));
    }
  }
}

TEST(UpdateTest, ArenasNeedNoAlignment) {
  for (const RuleCase& rule : rule_cases()) {
    const auto expected = train(rule, 37, 0);
    for (std::size_t offset = 1; offset < 16; ++offset)
      EXPECT_EQ(train(rule, 37, offset), expected) << rule.name << ", " << offset;
  }
}

TEST(UpdateTest, WithoutBuffersThereNeedBeNone) {
  auto w = random_tensor(19, 1);
  const auto before = widen(w.span());
  const auto g = random_tensor(19, 2);
  const UpdateTensor all{.size = 19};
  cpu::update(UpdateRule::kSgd, pack_scalars(SgdStep{.rate = 0.5F}), {&all, 1}, g.data(), nullptr, w.data());
  for (std::size_t i = 0; i < 19; ++i) EXPECT_EQ(w[i], static_cast<float>(before[i] - 0.5 * g[i]));
}

/// Elements do not interact: where a range ends leaves no trace, and what is in no range stays.
TEST(UpdateTest, RangesLeaveNoTraceAndOthersStay) {
  for (const RuleCase& rule : rule_cases()) {
    if (uses_norms(rule.rule)) continue;
    const UpdateTensor parts[] = {{.size = 5}, {.offset = 5, .size = 20}, {.offset = 25, .size = 12}};
    EXPECT_EQ(train(rule, parts, 37, 0), train(rule, 37, 0)) << rule.name;
    const UpdateTensor middle{.offset = 10, .size = 20};
    const auto whole = train(rule, 37, 0), some = train(rule, {&middle, 1}, 37, 0);
    const auto before = random_tensor(37, 1);
    for (std::size_t i = 0; i < 37; ++i)
      EXPECT_EQ(some[i], i >= 10 && i < 30 ? whole[i] : before[i]) << rule.name << ", " << i;
  }
}

TEST(UpdateTest, RangesThatDoNotDecayMoveAsWithoutDecay) {
  const UpdateTensor ranges[] = {{.size = 16}, {.offset = 16, .size = 21, .decay = 0}};
  for (const RuleCase& rule : rule_cases()) {
    if (uses_norms(rule.rule)) continue;
    RuleCase without = rule;
    without.scalars.at[0] = 0;  // every rule's decay
    const auto mixed = train(rule, ranges, 37, 0), all = train(rule, 37, 0), none = train(without, 37, 0);
    for (std::size_t i = 0; i < 37; ++i)
      EXPECT_EQ(mixed[i], (i < 16 ? all : none)[i]) << rule.name << ", " << i;
  }
}

TEST(UpdateTest, BitsAreTheSameOnEverySimdTarget) {
  for (const RuleCase& rule : rule_cases()) {
    SCOPED_TRACE(rule.name);
    reference::expect_same_bits(reference::all_targets(), [&] { return train(rule, 1003, 1); });
  }
}

}  // namespace
}  // namespace lockstep::update_test
