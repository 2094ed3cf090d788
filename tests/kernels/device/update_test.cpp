// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The update on a device. The weights are the CPU's bit for bit, sums are zeroed, the state goes on, and a
/// step that is not finite halts it.
#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/kernels/reference/tensor.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test::update_test {
namespace {

constexpr int kSteps = 3;
constexpr std::uint32_t kSlots = 2 + kMostBuffers;  ///< fingerprints of a tensor
const std::size_t kSizes[] = {1,  2,  3,   7,   8,   15,  16,  17,  31,  32,  33,
                              64, 65, 100, 255, 256, 257, 511, 512, 513, 777, 1281};
const std::int64_t kCounts[] = {64, 100, 1, 96, 7};

enum class Sums { kExact, kFp32, kExactInUnitsOfTheirOwn };

/// Exponent of the k-th parameter where each has its own.
std::int16_t exponent_of(std::size_t k) {
  return static_cast<std::int16_t>(static_cast<int>(k * 37 % 60) - 75);
}

double scale_of(Sums kind, std::size_t k) {
  return kind == Sums::kExactInUnitsOfTheirOwn ? std::ldexp(1.0, -exponent_of(k)) : kExactScale;
}

std::string describe(const RuleCase& rule, std::size_t size, std::int64_t count, Sums sums) {
  const char* const kinds[] = {"", ", fp32 sums", ", units of their own"};
  return fmt::format("{}, size {}, count {}{}", rule.name, size, count, kinds[static_cast<int>(sums)]);
}

/// In thirds, of which the second one does not decay. Half of the third has a rate of its own, and half stays.
std::vector<UpdateTensor> ranges_of(std::size_t size) {
  const std::size_t third = size / 3;
  return {{.size = third},
          {.offset = third, .size = third, .decay = 0, .adapts = false},
          {.offset = 2 * third, .size = (size - 2 * third) / 2, .decay = 0.3F, .rate = 1.7F},
          {.offset = 2 * third + (size - 2 * third) / 2,
           .size = size - 2 * third - (size - 2 * third) / 2,
           .moves = false}};
}

/// As running means of squares are.
std::vector<float> positive_floats(std::size_t size, std::uint32_t seed) {
  std::vector<float> numbers = random_floats(size, seed);
  for (float& number : numbers) number = number * number;
  return numbers;
}

/// The counters of step i and the sums behind them, as gradients of that step would have left them.
std::vector<std::int64_t> exact_sums(std::size_t size, std::int64_t count, unsigned i) {
  std::mt19937_64 engine(100 + i);
  std::vector<std::int64_t> sums(kCounterSlots);
  sums[kSamples] = count;
  sums[kLoss] = 1000 + i;
  sums[kLoss + 5] = -7;
  sums[kCorrect] = 3 * i;
  sums[kStopRequests] = i % 2;
  for (std::size_t k = 0; k < size; ++k)
    sums.push_back(static_cast<std::int64_t>(engine()) >> (14 + engine() % 40));
  return sums;
}

/// Scalars for a rule at the i-th step: another rate each time.
StepScalars told_after(const RuleCase& rule, int i) {
  StepScalars scalars = rule.scalars;
  scalars.at[1] *= 1 + 0.125F * static_cast<float>(i);
  return scalars;
}

/// A model in device memory in the middle of a run. Weights start `offset` floats after an aligned address.
struct Model {
  Model(DeviceRig& the_rig, RuleCase the_rule, std::size_t the_size, bool in_ranges = false,
        std::size_t the_offset = 0)
      : rig(the_rig), rule(std::move(the_rule)), size(the_size), offset(the_offset) {
    StepState start;
    start.step_in_epoch = 5;
    start.step = 77;
    start.stop_requested = 1;
    start.scalars = rule.scalars;
    for (int i = 0; i < kLongestSeries; ++i) start.ahead[i] = told_after(rule, i + 1);
    state = rig.upload(std::vector<StepState>{start});
    if (!in_ranges) return;
    const auto parts = ranges_of(size);
    std::vector<std::int32_t> of(offset);
    for (std::size_t i = 0; i < parts.size(); ++i)
      of.insert(of.end(), parts[i].size, static_cast<std::int32_t>(i));
    ranges = rig.upload(parts);
    range_of = rig.upload(of);
    factors = rig.upload(std::vector<TensorFactors>(parts.size(), {NAN, NAN}));
  }

  StepState get_state() { return rig.download(state)[0]; }
  std::vector<float> weights_now() { return without_offset(rig.download(weights)); }
  /// Weights and behind them what is remembered.
  std::vector<float> all_now() {
    std::vector<float> all = weights_now();
    for (const DeviceBuffer<float>& buffer : buffers) {
      const std::vector<float> one = without_offset(rig.download(buffer));
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  std::vector<float> without_offset(const std::vector<float>& all) const {
    return {all.begin() + static_cast<std::ptrdiff_t>(offset), all.end()};
  }

  /// From now on updates take fingerprints, of tensors that begin at these parameters.
  void keep_fingerprints(const std::vector<std::size_t>& begins) {
    std::vector<FingerprintTensor> tensors;
    for (std::size_t i = 0; i < begins.size(); ++i) tensors.push_back(fingerprint_tensor(begins[i], i));
    tensors.push_back({.first = 0, .offset = size});
    std::vector<std::int32_t> of;
    for (std::size_t i = 0; i < size; i += kFingerprintStride)
      of.push_back(static_cast<std::int32_t>(std::ranges::upper_bound(begins, i) - begins.begin()) - 1);
    fingerprint_tensors = rig.upload(tensors);
    tensor_of = rig.upload(of);
    slots = kSlots * begins.size();
    rows = rig.upload(std::vector<std::int64_t>(kSteps * slots));
  }
  /// It has its own place in the network, and slots that are not in order.
  static FingerprintTensor fingerprint_tensor(std::size_t begin, std::size_t i) {
    FingerprintTensor tensor{.first = begin + 5000 + 1021 * i, .offset = begin};
    for (std::uint32_t k = 0; k < std::size(tensor.slots); ++k)
      tensor.slots[k] = static_cast<std::uint32_t>(kSlots * i) + (k + 3) % kSlots;
    return tensor;
  }
  /// Row that the next update should add, computed by the CPU.
  std::vector<std::int64_t> expected_row(const std::vector<std::size_t>& begins,
                                         const std::vector<std::int64_t>& counted) {
    std::vector<std::int64_t> row(slots);
    const std::vector<float> all[] = {weights_now(), without_offset(rig.download(buffers[0])),
                                      without_offset(rig.download(buffers[1])),
                                      without_offset(rig.download(buffers[2]))};
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const FingerprintTensor tensor = fingerprint_tensor(begins[i], i);
      const std::size_t count = (i + 1 < begins.size() ? begins[i + 1] : size) - begins[i];
      const auto put = [&](std::size_t k, std::uint64_t value) {
        row[tensor.slots[k]] = static_cast<std::int64_t>(value);
      };
      put(0, cpu::fingerprint(kGradientBuffer, tensor.first,
                              std::span(counted).subspan(kCounterSlots + begins[i], count)));
      for (std::uint32_t k = 0; k < 1U + static_cast<unsigned>(buffers_of(rule.rule)); ++k)
        put(1 + k,
            cpu::fingerprint(kWeightsBuffer + k, tensor.first, std::span(all[k]).subspan(begins[i], count)));
    }
    return row;
  }

  void update(const std::vector<std::int64_t>& counted, Sums kind = Sums::kExact) {
    sums = rig.upload(counted);
    fp32_sums = rig.upload(random_floats(offset + size, static_cast<std::uint32_t>(counted[kLoss])));
    UpdateArgs args;
    args.parameters = size;
    args.sums = sums.data();
    if (kind == Sums::kFp32) args.fp32_sums = fp32_sums.data() + offset;
    args.weights = weights.data() + offset;
    for (int b = 0; b < buffers_of(rule.rule); ++b) args.buffers[b] = buffers[b].data() + offset;
    if (ranges.size() > 0) {
      args.tensors = {.count = static_cast<int>(ranges.size()),
                      .ranges = ranges.data(),
                      .range_of = range_of.data() + offset,
                      .factors = factors.data()};
    }
    if (kind == Sums::kExactInUnitsOfTheirOwn) args.exponents = exponents.data();
    if (rows.size() > 0)
      args.fingerprints = {fingerprint_tensors.data(), tensor_of.data(), slots, rows.data()};
    args.rule = rule.rule;
    args.state = state.data();
    rig.ops().update(rig.stream(), args);
  }

  DeviceRig& rig;
  RuleCase rule;
  std::size_t size, offset;
  DeviceBuffer<float> weights = rig.upload(random_floats(offset + size, 1));
  DeviceBuffer<float> buffers[kMostBuffers] = {rig.upload(positive_floats(offset + size, 2)),
                                               rig.upload(positive_floats(offset + size, 3)),
                                               rig.upload(positive_floats(offset + size, 4))};
  DeviceBuffer<UpdateTensor> ranges{rig.device(), 0};
  DeviceBuffer<std::int32_t> range_of{rig.device(), 0};
  DeviceBuffer<TensorFactors> factors{rig.device(), 0};
  DeviceBuffer<FingerprintTensor> fingerprint_tensors{rig.device(), 0};
  DeviceBuffer<std::int32_t> tensor_of{rig.device(), 0};
  std::size_t slots = 0;
  DeviceBuffer<std::int64_t> rows{rig.device(), 0};  ///< [kSteps][slots]
  DeviceBuffer<std::int64_t> sums;
  DeviceBuffer<float> fp32_sums;
  DeviceBuffer<std::int16_t> exponents = rig.upload([&] {
    std::vector<std::int16_t> all;
    for (std::size_t k = 0; k < size; ++k) all.push_back(exponent_of(k));
    return all;
  }());
  DeviceBuffer<StepState> state;
};

class DeviceUpdateTest : public testing::Test {
 protected:
  /// All numbers after kSteps.
  std::vector<float> train(const RuleCase& rule, std::size_t size, std::int64_t count, Sums kind,
                           bool in_ranges) {
    Model model(rig_, rule, size, in_ranges);
    for (unsigned i = 0; i < kSteps; ++i) model.update(exact_sums(size, count, i), kind);
    return model.all_now();
  }

  static std::vector<float> train_on_cpu(const RuleCase& rule, std::size_t size, std::int64_t count,
                                         Sums kind, bool in_ranges) {
    std::vector<float> w = random_floats(size, 1), first = positive_floats(size, 2),
                       second = positive_floats(size, 3), third = positive_floats(size, 4), g(size);
    std::vector<UpdateTensor> ranges = {{.size = size}};
    if (in_ranges) ranges = ranges_of(size);
    float* const buffers[] = {first.data(), second.data(), third.data()};
    for (unsigned i = 0; i < kSteps; ++i) {
      const auto sums = exact_sums(size, count, i);
      if (kind == Sums::kFp32) {
        cpu::mean(size, random_floats(size, static_cast<std::uint32_t>(sums[kLoss])).data(), count, g.data());
      } else {
        for (std::size_t k = 0; k < size; ++k)
          cpu::mean_from_exact(1, &sums[kCounterSlots + k], scale_of(kind, k), count, &g[k]);
      }
      cpu::update(rule.rule, told_after(rule, static_cast<int>(i)), ranges, g.data(), buffers, w.data());
    }
    for (const std::vector<float>* buffer : {&first, &second, &third})
      w.insert(w.end(), buffer->begin(), buffer->end());
    return w;
  }

  DeviceRig rig_;
};

TEST_F(DeviceUpdateTest, HasTheBitsOfTheCpuAndReadsWhatEachStepIsTold) {
  std::size_t turn = 0;
  for (const std::size_t size : kSizes) {
    for (const RuleCase& rule : rule_cases()) {
      const std::int64_t count = kCounts[turn++ % std::size(kCounts)];
      const bool in_ranges = uses_norms(rule.rule) || turn % 2 == 0;
      for (const Sums kind : {Sums::kExact, Sums::kFp32, Sums::kExactInUnitsOfTheirOwn}) {
        SCOPED_TRACE(describe(rule, size, count, kind));
        EXPECT_EQ(train(rule, size, count, kind, in_ranges),
                  train_on_cpu(rule, size, count, kind, in_ranges));
      }
    }
  }
}

TEST_F(DeviceUpdateTest, ARuleThatUsesNormsTakesASingleTensor) {
  for (const RuleCase& rule : rule_cases()) {
    if (!uses_norms(rule.rule)) continue;
    SCOPED_TRACE(rule.name);
    Model model(rig_, rule, 100);
    model.ranges = rig_.upload(std::vector<UpdateTensor>{{.size = 100}});
    model.range_of = rig_.upload(std::vector<std::int32_t>(100));
    model.factors = rig_.upload(std::vector<TensorFactors>(1, {NAN, NAN}));
    for (unsigned i = 0; i < kSteps; ++i) model.update(exact_sums(100, 64, i));
    EXPECT_EQ(model.all_now(), train_on_cpu(rule, 100, 64, Sums::kExact, false));
  }
}

TEST_F(DeviceUpdateTest, WhatARuleNeedsMustBeThereAndFloatsHaveNoFingerprints) {
  const auto sums = rig_.zeroed<std::int64_t>(kCounterSlots + 4);
  const auto weights = rig_.zeroed<float>(4), buffer = rig_.zeroed<float>(4);
  const auto state = rig_.upload(std::vector<StepState>(1));
  UpdateArgs args{};
  args.parameters = 4;
  args.sums = sums.data();
  args.weights = weights.data();
  args.state = state.data();
  args.rule = UpdateRule::kAdam;
  args.buffers[0] = buffer.data();
  EXPECT_THROW(rig_.ops().update(rig_.stream(), args), InternalError) << "it has two buffers";
  args.rule = UpdateRule::kSgd;
  args.fp32_sums = buffer.data();
  args.fingerprints.rows = sums.data();
  EXPECT_THROW(rig_.ops().update(rig_.stream(), args), InternalError);
  args.fp32_sums = nullptr;
  args.fingerprints.rows = nullptr;
  args.rule = UpdateRule::kLars;
  expect_error<InternalError>([&] { rig_.ops().update(rig_.stream(), args); },
                              {"args.tensors.factors != nullptr"});
}

TEST_F(DeviceUpdateTest, MoreNumbersThanThreadsHaveNumbersAreABug) {
  const AverageArgs args{
      .parameters = std::size_t{1} << 31, .weights = nullptr, .average = nullptr, .share = 1};
  expect_error<InternalError>([&] { rig_.ops().average(rig_.stream(), args); }, {"elements < "});
}

TEST_F(DeviceUpdateTest, ANormIsThatOfATensorAtLeast) {
  const DeviceBuffer<double> squares(rig_.device(), 1);
  const auto factor = rig_.zeroed<float>(1);
  const GradientNorm none{
      .tensors = nullptr, .count = 0, .squares = squares.data(), .most = 1, .factor = factor.data()};
  const auto measure = [&] { rig_.ops().gradient_norm(rig_.stream(), {}, none); };
  expect_error<InternalError>(measure, {"norm.count > 0"});
}

TEST_F(DeviceUpdateTest, WeightsNeedNoAlignment) {
  for (const std::size_t offset : {1, 2, 3}) {
    // random_floats() with another offset are others: fp32 sums are not compared here.
    const RuleCase rule = sgd_case({0.05F, 0, 0, false});
    Model model(rig_, rule, 300, true, offset);
    std::vector<float> expected = model.weights_now(), g(300);
    model.update(exact_sums(300, 64, 1));
    cpu::mean_from_exact(300, exact_sums(300, 64, 1).data() + kCounterSlots, kExactScale, 64, g.data());
    cpu::update(rule.rule, rule.scalars, ranges_of(300), g.data(), nullptr, expected.data());
    EXPECT_EQ(model.weights_now(), expected) << "offset " << offset;
  }
}

TEST_F(DeviceUpdateTest, SumsAndCountersAreZeroedAndTheStateGoesOn) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{513}, std::size_t{1500}}) {
    SCOPED_TRACE("size " + std::to_string(size));
    same_in_every_order([&] {
      Model model(rig_, rule_cases()[2], size);
      for (unsigned i = 0; i < kSteps; ++i) {
        model.update(exact_sums(size, 64, i));
        EXPECT_EQ(rig_.download(model.sums), std::vector<std::int64_t>(kCounterSlots + size));
      }
      const StepState state = model.get_state();
      EXPECT_EQ(state.step_in_epoch, 5 + kSteps);
      EXPECT_EQ(state.steps_done, kSteps);
      EXPECT_EQ(state.step, 77U + kSteps);
      const StepScalars told = told_after(model.rule, kSteps);
      EXPECT_EQ(std::memcmp(&state.scalars, &told, sizeof told), 0);
      EXPECT_EQ(state.stop_requested, 1U);
      EXPECT_EQ(state.halted, 0U);
      EXPECT_EQ(state.blocks_done, 0U);
      const std::vector<std::int64_t> last = exact_sums(0, 64, 2);
      std::vector<std::int64_t> sums(kCounterSlots);
      sums[kSamples] = 192, sums[kLoss] = 3003, sums[kLoss + 5] = -21, sums[kCorrect] = 9,
      sums[kStopRequests] = 1;
      for (std::size_t k = 0; k < kCounterSlots; ++k) {
        EXPECT_EQ(state.last[k], last[k]) << "counter " << k;
        EXPECT_EQ(state.sums[k], sums[k]) << "counter " << k;
      }
      return std::vector<StepState>{state};
    });
  }
}

/// Its bits are the same in every order of threads.
TEST_F(DeviceUpdateTest, TakesTheFingerprintsOfEachStepBeforeItMoves) {
  for (const auto& [size, begins] :
       std::vector<std::pair<std::size_t, std::vector<std::size_t>>>{{1, {0}},
                                                                     {3, {0, 1, 2}},
                                                                     {64, {0}},
                                                                     {129, {0, 63}},
                                                                     {700, {0, 64, 320, 321}},
                                                                     {1500, {0, 1, 2, 1027, 1499}}}) {
    for (const std::size_t offset : {0, 1}) {
      for (const RuleCase& rule : rule_cases()) {
        SCOPED_TRACE(describe(rule, size, 64, Sums::kExact) + ", offset " + std::to_string(offset));
        same_in_every_order([&, &parts = begins, parameters = size] {
          Model model(rig_, rule, parameters, true, offset);
          model.keep_fingerprints(parts);
          std::vector<std::int64_t> expected;
          for (unsigned i = 0; i < kSteps; ++i) {
            const auto counted = exact_sums(parameters, 64, i);
            const auto row = model.expected_row(parts, counted);
            expected.insert(expected.end(), row.begin(), row.end());
            model.update(counted);
          }
          EXPECT_EQ(rig_.download(model.rows), expected);
          return model.all_now();
        });
      }
    }
  }
}

TEST_F(DeviceUpdateTest, StepThatIsNotFiniteOnlyHalts) {
  for (const std::size_t size : {std::size_t{3}, std::size_t{1100}}) {
    SCOPED_TRACE("size " + std::to_string(size));
    Model model(rig_, rule_cases()[2], size);
    model.update(exact_sums(size, 64, 0));
    StepState expected = model.get_state();
    const auto numbers = model.all_now();
    expected.halted = 1;
    auto broken = exact_sums(size, 64, 1);
    broken[kRefused] = 1;
    // The step after it is finite, but comes from weights that should not be: it changes nothing either.
    for (const auto& sums : {broken, exact_sums(size, 64, 2)}) {
      model.update(sums);
      EXPECT_EQ(model.all_now(), numbers);
      EXPECT_EQ(rig_.download(model.sums), std::vector<std::int64_t>(kCounterSlots + size));
      const StepState state = model.get_state();
      EXPECT_EQ(std::memcmp(&state, &expected, sizeof state), 0) << "halted " << state.halted;
    }
  }
}

}  // namespace
}  // namespace lockstep::test::update_test
