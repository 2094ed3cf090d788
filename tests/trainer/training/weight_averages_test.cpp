// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Averages of the weights against torch.optim.swa_utils in double (tests/golden/make_golden.py); and the
/// device against the CPU, bit for bit.
#include "common/safetensors.hpp"
#include "kernels/cpu/ops.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/config/job.hpp"
#include "trainer/training/weight_update.hpp"

namespace lockstep::weight_averages_test {
namespace {

constexpr std::size_t kSteps = 50, kParameters = 40;
constexpr std::int64_t kStepsPerEpoch = 5;

template <typename T>
std::vector<T> golden(const std::string& name, const char* dtype) {
  static const SafetensorsFile file =
      test::read_safetensors(test::source_path("tests/golden/averages.safetensors"));
  return test::values_of<T>(file, name, dtype, {kSteps, kParameters});
}

Job job_of_both() {
  return parse_job("{model: net, train: {ema: 0.9, swa: {from_epoch: 4}}}", "job.yaml");
}

/// After each step, [steps][parameters].
std::vector<float> on_cpu(const WeightAverages& averages, std::size_t which) {
  const auto weights = golden<float>("weights", "F32");
  std::vector<float> average(kParameters), all;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const float share = averages.share(which, static_cast<std::int64_t>(step));
    if (share > 0) cpu::average(share, kParameters, weights.data() + step * kParameters, average.data());
    all.insert(all.end(), average.begin(), average.end());
  }
  return all;
}

/// As DeviceArena does it: one share for all steps by the state, or one for the step at hand.
std::vector<float> on_device(const WeightAverages& averages, std::size_t which) {
  test::DeviceRig rig;
  const auto weights = rig.upload(golden<float>("weights", "F32"));
  auto average = rig.zeroed<float>(kParameters);
  std::vector<float> all;
  for (std::size_t step = 0; step < kSteps; ++step) {
    StepState behind;
    behind.step = static_cast<std::uint32_t>(step) + 1;
    const auto state = rig.upload(std::vector<StepState>{behind});
    const float of_each = averages.share_of_each_step(which),
                share = averages.share(which, static_cast<std::int64_t>(step));
    if (of_each > 0 || share > 0)
      rig.ops().average(rig.stream(), {.parameters = kParameters,
                                       .weights = weights.data() + step * kParameters,
                                       .average = average.data(),
                                       .share = of_each > 0 ? of_each : share,
                                       .state = of_each > 0 ? state.data() : nullptr});
    const auto now = rig.download(average);
    all.insert(all.end(), now.begin(), now.end());
  }
  return all;
}

TEST(WeightAveragesTest, AreThoseOfPytorchInDoubleOnEveryDevice) {
  const WeightAverages averages(job_of_both().train, kStepsPerEpoch);
  ASSERT_EQ(averages.names(), (std::vector<std::string>{"ema", "swa"}));
  for (std::size_t which = 0; which < averages.count(); ++which) {
    const auto expected = golden<double>(averages.names()[which], "F64");
    const auto computed = on_cpu(averages, which);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(computed[i], expected[i], 1e-6 * std::max(1.0, std::abs(expected[i])))
          << averages.names()[which] << ", step " << i / kParameters << ", parameter " << i % kParameters;
    EXPECT_EQ(on_device(averages, which), computed) << averages.names()[which];
  }
}

TEST(WeightAveragesTest, AStepThatWasRefusedMovesNothing) {
  test::DeviceRig rig;
  const auto weights = rig.upload(std::vector<float>(3, 8));
  auto average = rig.upload(std::vector<float>(3, 1));
  StepState halted;
  halted.step = 7, halted.halted = 1;
  const auto state = rig.upload(std::vector<StepState>{halted});
  rig.ops().average(rig.stream(), {.parameters = 3,
                                   .weights = weights.data(),
                                   .average = average.data(),
                                   .share = 0.5F,
                                   .state = state.data()});
  EXPECT_EQ(rig.download(average), std::vector<float>(3, 1));
}

TEST(WeightAveragesTest, ExistFromTheStepOnThatCounts) {
  const WeightAverages averages(job_of_both().train, kStepsPerEpoch);
  EXPECT_FALSE(averages.exists(0, 0));
  EXPECT_TRUE(averages.exists(0, 1));
  EXPECT_FALSE(averages.exists(1, 19));
  EXPECT_TRUE(averages.exists(1, 20));
  EXPECT_EQ(averages.share(1, 18), 0);
  EXPECT_EQ(averages.share(1, 19), 1);
  EXPECT_EQ(averages.share(1, 20), 0);
  EXPECT_EQ(averages.share(1, 24), 0.5F);
}

TEST(WeightAveragesTest, AJobWithoutThemHasNone) {
  EXPECT_EQ(WeightAverages(parse_job("model: net", "job.yaml").train, kStepsPerEpoch).count(), 0U);
}

}  // namespace
}  // namespace lockstep::weight_averages_test
