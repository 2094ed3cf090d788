// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The last fully connected layer and its loss in one launch: the bits and counters of two launches, whatever the
/// numbers are, and nothing of what it does not take.
#include "tests/kernels/device/rig.hpp"

#include <initializer_list>
#include <limits>

namespace lockstep::test::linear_loss_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kLossLimit = 1e6;

using Counters = std::vector<std::int64_t>;

struct Result {
  std::vector<float> gradient;
  Counters counters;
};

std::vector<std::int32_t> random_labels(const LossShape& s) {
  std::mt19937 engine(21);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(s.batch));
  for (std::int32_t& label : labels)
    label = static_cast<std::int32_t>(engine() % static_cast<unsigned>(s.classes));
  return labels;
}

struct LastLayer {
  int batch, inputs, classes;
};

class LastLayerTest : public testing::Test {
 protected:
  /// @param limit  LossTarget's
  Result run(const LastLayer& s, const std::vector<double>& x, bool at_once, const LossRule& rule = {},
             double scale = 1, double limit = kLossLimit) {
    const LinearShape shape{s.batch, s.inputs, s.classes};
    LossShape loss{s.batch, s.batch, s.classes};
    loss.rule = rule;
    auto weights = random_numbers(static_cast<std::size_t>(s.inputs * s.classes), 30);
    for (double& w : weights) w *= scale;
    const auto w = rig_.upload(weights);
    const auto b = rig_.upload(random_numbers(static_cast<std::size_t>(s.classes), 31));
    const auto input = rig_.upload(x),
               y = rig_.poisoned<float>(static_cast<std::size_t>(s.batch * s.classes));
    const auto labels = rig_.upload(random_labels(loss));
    const auto counters = rig_.zeroed<std::int64_t>(kStepCounters);
    const auto state = rig_.upload(std::vector<StepState>{state_});
    const LossTarget target{labels.data(), counters.data(), limit, state.data()};
    took_both_ = at_once && rig_.ops().linear_forward_loss(rig_.stream(), shape, input.data(), w.data(),
                                                           b.data(), loss, target, y.data());
    if (!at_once) {
      rig_.ops().linear_forward(rig_.stream(), shape, input.data(), w.data(), b.data(), {}, nullptr, y.data(),
                                nullptr);
      rig_.ops().loss_and_gradient(rig_.stream(), loss, y.data(), target, y.data());
    }
    return {rig_.download(y), rig_.download(counters)};
  }
  static std::vector<double> inputs_of(const LastLayer& s) {
    return random_numbers(static_cast<std::size_t>(s.inputs * s.batch), 32);
  }
  void expect_same(const LastLayer& s, const std::vector<double>& x, double scale, double limit) {
    SCOPED_TRACE("batch " + std::to_string(s.batch) + ", " + std::to_string(s.inputs) + " inputs, " +
                 std::to_string(s.classes) + " classes, limit " + std::to_string(limit));
    const Result expected = run(s, x, false, {}, scale, limit);
    Counters counters;
    const auto gradient = same_in_every_order([&] {
      const Result result = run(s, x, true, {}, scale, limit);
      EXPECT_TRUE(took_both_);
      EXPECT_EQ(result.counters, expected.counters);
      return result.gradient;
    });
    EXPECT_EQ(std::memcmp(gradient.data(), expected.gradient.data(), gradient.size() * sizeof(float)), 0);
  }

  DeviceRig rig_;
  StepState state_;
  bool took_both_ = false;
};

TEST_F(LastLayerTest, HasTheBitsOfTwoLaunches) {
  state_.stop_requested = 1;
  // Net and LeNet; slices of one input and of most; empty ones, and such that end early; one class and most.
  for (const LastLayer& s : {LastLayer{64, 50, 10},
                             {37, 128, 10},
                             {1, 1, 2},
                             {8, 10, 16},
                             {9, 41, 5},
                             {33, 65, 3},
                             {17, 512, 16},
                             {64, 84, 1}}) {
    for (const double limit : {kLossLimit, 0.5}) expect_same(s, inputs_of(s), 1, limit);
  }
}

TEST_F(LastLayerTest, BrokenAndHugeLogitsAreThoseOfTwoLaunches) {
  const LastLayer s{20, 50, 10};
  std::vector<double> x = inputs_of(s);
  x[3] = static_cast<double>(kNan);
  x[20 + 7] = static_cast<double>(kInfinity);
  for (const double scale : {0.0, 1e12, 3e38}) expect_same(s, x, scale, kLossLimit);
}

TEST_F(LastLayerTest, LeavesToTwoLaunchesWhatItDoesNotTake) {
  const LossRule smoothed{.label_share = 0.9F, .spread = 0.01F};
  for (const auto& [s, rule] : std::initializer_list<std::pair<LastLayer, LossRule>>{
           {{8, 50, 17}, {}}, {{8, 513, 10}, {}}, {{100'000, 1, 2}, {}}, {{8, 50, 10}, smoothed}}) {
    const Result result = run(s, inputs_of(s), true, rule);
    EXPECT_FALSE(took_both_);
    EXPECT_EQ(result.counters, Counters(kStepCounters)) << "something was queued";
  }
}

}  // namespace
}  // namespace lockstep::test::linear_loss_test
