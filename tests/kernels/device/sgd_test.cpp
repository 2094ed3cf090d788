// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The update on a device: the weights are the CPU's bit for bit, sums are zeroed, the state goes on, and a
/// step that is not finite halts it.
#include "kernels/cpu/sgd.hpp"

#include "kernels/cpu/gradient_sum.hpp"
#include "tests/kernels/device/rig.hpp"

namespace lockstep::test {
namespace {

constexpr int kSteps = 3;
constexpr float kLearningRate = 0.05F;
const std::size_t kSizes[] = {1,  2,  3,   7,   8,   15,  16,  17,  31,  32,  33,
                              64, 65, 100, 255, 256, 257, 511, 512, 513, 777, 1281};
// learning rate (not looked at), momentum, weight decay, Nesterov
const SgdParams kParams[] = {{9, 0, 0, false},       {9, 0, 0.01F, false}, {9, 0.5F, 0, false},
                             {9, 0.9F, 0.01F, true}, {9, 0.9F, 0, true},   {9, 0, 0, true}};
const std::int64_t kCounts[] = {64, 100, 1, 96, 7};

enum class Sums { kExact, kFp32, kExactInUnitsOfTheirOwn };

/// Of the k-th parameter where each has its own.
std::int16_t exponent_of(std::size_t k) {
  return static_cast<std::int16_t>(static_cast<int>(k * 37 % 60) - 75);
}

double scale_of(Sums kind, std::size_t k) {
  return kind == Sums::kExactInUnitsOfTheirOwn ? std::ldexp(1.0, -exponent_of(k)) : kExactScale;
}

std::string describe(const SgdParams& p, std::size_t size, std::int64_t count, Sums sums) {
  return "size " + std::to_string(size) + ", momentum " + std::to_string(p.momentum) + ", decay " +
         std::to_string(p.weight_decay) + (p.nesterov ? ", Nesterov" : "") + ", count " +
         std::to_string(count) +
         (sums == Sums::kFp32                     ? ", fp32 sums"
          : sums == Sums::kExactInUnitsOfTheirOwn ? ", units of their own"
                                                  : "");
}

std::vector<float> floats(std::size_t size, std::uint32_t seed) {
  const auto numbers = random_numbers(size, seed);
  return {numbers.begin(), numbers.end()};
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

/// A model in device memory in the middle of a run. Weights start `offset` floats after an aligned address.
struct Model {
  Model(DeviceRig& the_rig, std::size_t the_size, std::size_t the_offset = 0)
      : rig(the_rig), size(the_size), offset(the_offset) {
    StepState start;
    start.step_in_epoch = 5;
    start.step = 77;
    start.learning_rate = kLearningRate;
    start.stop_requested = 1;
    set_state(start);
  }

  void set_state(const StepState& now) { state = rig.upload(std::vector<StepState>{now}); }
  StepState get_state() { return rig.download(state)[0]; }
  std::vector<float> weights_now() { return without_offset(rig.download(weights)); }
  std::vector<float> momentum_now() { return without_offset(rig.download(momentum)); }
  std::vector<float> without_offset(const std::vector<float>& all) const {
    return {all.begin() + static_cast<std::ptrdiff_t>(offset), all.end()};
  }

  void update(const SgdParams& params, const std::vector<std::int64_t>& counted, Sums kind = Sums::kExact) {
    sums = rig.upload(counted);
    fp32_sums = rig.upload(floats(offset + size, static_cast<std::uint32_t>(counted[kLoss])));
    UpdateArgs args;
    args.parameters = size;
    args.sums = sums.data();
    if (kind == Sums::kFp32) args.fp32_sums = fp32_sums.data() + offset;
    args.weights = weights.data() + offset;
    if (params.momentum != 0) args.momentum = momentum.data() + offset;
    if (kind == Sums::kExactInUnitsOfTheirOwn) args.exponents = exponents.data();
    args.sgd = params;
    args.state = state.data();
    rig.ops().sgd_update(rig.stream(), args);
  }

  DeviceRig& rig;
  std::size_t size, offset;
  DeviceBuffer<float> weights = rig.upload(floats(offset + size, 1));
  DeviceBuffer<float> momentum = rig.upload(floats(offset + size, 2));
  DeviceBuffer<std::int64_t> sums;
  DeviceBuffer<float> fp32_sums;
  DeviceBuffer<std::int16_t> exponents = rig.upload([&] {
    std::vector<std::int16_t> all;
    for (std::size_t k = 0; k < size; ++k) all.push_back(exponent_of(k));
    return all;
  }());
  DeviceBuffer<StepState> state;
};

class DeviceSgdTest : public testing::Test {
 protected:
  /// Weights and behind them momentum after kSteps.
  std::vector<float> train(const SgdParams& params, std::size_t size, std::int64_t count, Sums kind,
                           std::size_t offset = 0) {
    Model model(rig_, size, offset);
    for (unsigned i = 0; i < kSteps; ++i) model.update(params, exact_sums(size, count, i), kind);
    std::vector<float> all = model.weights_now();
    const std::vector<float> momentum = model.momentum_now();
    all.insert(all.end(), momentum.begin(), momentum.end());
    return all;
  }

  static std::vector<float> train_on_cpu(SgdParams params, std::size_t size, std::int64_t count, Sums kind) {
    params.learning_rate = kLearningRate;
    std::vector<float> all = floats(size, 1), momentum = floats(size, 2), g(size);
    for (unsigned i = 0; i < kSteps; ++i) {
      const auto sums = exact_sums(size, count, i);
      if (kind == Sums::kFp32) {
        cpu::mean(size, floats(size, static_cast<std::uint32_t>(sums[kLoss])).data(), count, g.data());
      } else {
        for (std::size_t k = 0; k < size; ++k)
          cpu::mean_from_exact(1, &sums[kCounterSlots + k], scale_of(kind, k), count, &g[k]);
      }
      cpu::sgd_step(params, size, g.data(), momentum.data(), all.data());
    }
    all.insert(all.end(), momentum.begin(), momentum.end());
    return all;
  }

  DeviceRig rig_;
};

TEST_F(DeviceSgdTest, HasTheBitsOfTheCpu) {
  std::size_t turn = 0;
  for (const std::size_t size : kSizes) {
    for (const SgdParams& params : kParams) {
      const std::int64_t count = kCounts[turn++ % std::size(kCounts)];
      for (const Sums kind : {Sums::kExact, Sums::kFp32, Sums::kExactInUnitsOfTheirOwn}) {
        SCOPED_TRACE(describe(params, size, count, kind));
        EXPECT_EQ(train(params, size, count, kind), train_on_cpu(params, size, count, kind));
      }
    }
  }
}

TEST_F(DeviceSgdTest, BitsAreTheSameInEveryOrderOfThreads) {
  for (const std::size_t size : {std::size_t{5}, std::size_t{700}})
    same_in_every_order([&] { return train(kParams[3], size, 100, Sums::kExact); });
}

TEST_F(DeviceSgdTest, WeightsNeedNoAlignment) {
  for (const std::size_t offset : {1, 2, 3}) {
    // floats() with another offset are others: fp32 sums are not compared here.
    Model model(rig_, 300, offset);
    const std::vector<float> before = model.weights_now();
    model.update({9, 0, 0, false}, exact_sums(300, 64, 1));
    std::vector<float> expected = before, g(300);
    cpu::mean_from_exact(300, exact_sums(300, 64, 1).data() + kCounterSlots, kExactScale, 64, g.data());
    cpu::sgd_step({kLearningRate, 0, 0, false}, 300, g.data(), nullptr, expected.data());
    EXPECT_EQ(model.weights_now(), expected) << "offset " << offset;
  }
}

TEST_F(DeviceSgdTest, SumsAndCountersAreZeroedAndTheStateGoesOn) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{513}, std::size_t{1500}}) {
    SCOPED_TRACE("size " + std::to_string(size));
    same_in_every_order([&] {
      Model model(rig_, size);
      for (unsigned i = 0; i < kSteps; ++i) {
        model.update(kParams[2], exact_sums(size, 64, i));
        EXPECT_EQ(rig_.download(model.sums), std::vector<std::int64_t>(kCounterSlots + size));
      }
      const StepState state = model.get_state();
      EXPECT_EQ(state.step_in_epoch, 5 + kSteps);
      EXPECT_EQ(state.steps_done, kSteps);
      EXPECT_EQ(state.step, 77U + kSteps);
      EXPECT_EQ(state.learning_rate, kLearningRate);
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

TEST_F(DeviceSgdTest, StepThatIsNotFiniteOnlyHalts) {
  for (const std::size_t size : {std::size_t{3}, std::size_t{1100}}) {
    SCOPED_TRACE("size " + std::to_string(size));
    Model model(rig_, size);
    model.update(kParams[2], exact_sums(size, 64, 0));
    StepState expected = model.get_state();
    const auto weights = model.weights_now(), momentum = model.momentum_now();
    expected.halted = 1;
    auto broken = exact_sums(size, 64, 1);
    broken[kRefused] = 1;
    // The step after it is finite, but comes from weights that should not be: it changes nothing either.
    for (const auto& sums : {broken, exact_sums(size, 64, 2)}) {
      model.update(kParams[2], sums);
      EXPECT_EQ(model.weights_now(), weights);
      EXPECT_EQ(model.momentum_now(), momentum);
      EXPECT_EQ(rig_.download(model.sums), std::vector<std::int64_t>(kCounterSlots + size));
      const StepState state = model.get_state();
      EXPECT_EQ(std::memcmp(&state, &expected, sizeof state), 0) << "halted " << state.halted;
    }
  }
}

}  // namespace
}  // namespace lockstep::test
