// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The last fully connected layer, its loss and the gradient of its input in one launch. The bits and
/// counters of three, whatever the numbers are, and nothing of what it does not take.
#include "common/error.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::test::linear_loss_test {
namespace {

using Counters = std::vector<std::int64_t>;

struct Result {
  std::vector<float> gradients;  ///< the logits', then the input's
  Counters counters;
  bool at_once = false;
};

struct LastLayer {
  int batch, inputs, classes;
};

/// Treatment of the gradient of the input.
enum class DataGradient { kNotWanted, kPlain, kThroughEpilogue };

struct Problem {
  LastLayer layer;
  DataGradient data = DataGradient::kPlain;
  double weight_scale = 1, narrow_limit = 1e6;
  LossRule rule = {};
  std::vector<double> x = random_numbers(static_cast<std::size_t>(layer.inputs * layer.batch), 32);
};

std::string describe(const Problem& p) {
  return fmt::format("batch {}, {} inputs, {} classes, data gradient {}, weights up to {}, limit {}",
                     p.layer.batch, p.layer.inputs, p.layer.classes, static_cast<int>(p.data), p.weight_scale,
                     p.narrow_limit);
}

std::vector<std::int32_t> random_labels(const LastLayer& s) {
  std::mt19937 engine(21);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(s.batch));
  for (std::int32_t& label : labels)
    label = static_cast<std::int32_t>(engine() % static_cast<unsigned>(s.classes));
  return labels;
}

class LinearLossTest : public testing::Test {
 protected:
  enum class Launches { kOne, kThree };

  Result run(const Problem& p, Launches launches) {
    const auto [batch, inputs, classes] = p.layer;
    const LinearShape shape{batch, inputs, classes};
    LossShape loss{batch, batch, classes};
    loss.rule = p.rule;
    auto weights = random_numbers(static_cast<std::size_t>(inputs * classes), 30);
    for (double& w : weights) w *= p.weight_scale;
    const auto w = rig_.upload(weights), x = rig_.upload(p.x);
    const auto b = rig_.upload(random_numbers(static_cast<std::size_t>(classes), 31));
    const auto y = rig_.poisoned<float>(static_cast<std::size_t>(batch * classes));
    const auto labels = rig_.upload(random_labels(p.layer));
    const auto counters = rig_.zeroed<std::int64_t>(kStepCounters);
    const auto state = rig_.upload(std::vector<StepState>{state_});
    const auto mask = rig_.upload(random_masks(p.x.size(), 1, 33));
    const auto dx_memory = rig_.poisoned<float>(p.x.size());
    float* const dx = p.data == DataGradient::kNotWanted ? nullptr : dx_memory.data();
    const EpilogueBackward way_back{
        .channels = inputs, .height = 1, .width = 1, .factors = {2, 0.7F}, .mask = mask.data()};
    const EpilogueBackward* const expand = p.data == DataGradient::kThroughEpilogue ? &way_back : nullptr;
    const LossTarget target{labels.data(), counters.data(), p.narrow_limit, state.data()};
    bool at_once = false;
    if (launches == Launches::kOne) {
      at_once = rig_.ops().linear_loss(rig_.stream(), shape, x.data(), w.data(), b.data(), loss, target,
                                       y.data(), expand, dx);
    } else {
      rig_.ops().linear_forward(rig_.stream(), shape, x.data(), w.data(), b.data(), {}, nullptr, y.data(),
                                nullptr);
      rig_.ops().loss_and_gradient(rig_.stream(), loss, y.data(), target, y.data());
      if (dx != nullptr)
        rig_.ops().linear_backward_data(rig_.stream(), shape, y.data(), w.data(), expand, dx);
    }
    std::vector<float> gradients = rig_.download(y);
    const std::vector<float> of_input = rig_.download(dx_memory);
    if (dx != nullptr) gradients.insert(gradients.end(), of_input.begin(), of_input.end());
    return {gradients, rig_.download(counters), at_once};
  }

  void expect_same(const Problem& p) {
    SCOPED_TRACE(describe(p));
    const Result expected = run(p, Launches::kThree);
    const auto gradients = same_in_every_order([&] {
      const Result result = run(p, Launches::kOne);
      EXPECT_TRUE(result.at_once);
      EXPECT_EQ(result.counters, expected.counters);
      return result.gradients;
    });
    EXPECT_EQ(bits_of(gradients), bits_of(expected.gradients));
  }

  DeviceRig rig_;
  StepState state_;
};

/// Net and LeNet; slices of one input, of most, and such that end early or are empty. One class, and most.
constexpr LastLayer kLayers[] = {{64, 50, 10}, {37, 128, 10}, {1, 1, 2},     {8, 10, 16},
                                 {9, 41, 5},   {33, 65, 3},   {17, 512, 16}, {64, 84, 1}};

TEST_F(LinearLossTest, HasTheBitsOfThreeLaunches) {
  state_.stop_requested = 1;
  for (const LastLayer& layer : kLayers)
    for (const auto data : {DataGradient::kNotWanted, DataGradient::kPlain, DataGradient::kThroughEpilogue})
      expect_same({.layer = layer, .data = data});
  expect_same({.layer = kLayers[0], .narrow_limit = 0.5});
}

TEST_F(LinearLossTest, HugeAndBrokenLogitsAreThoseOfThreeLaunches) {
  for (const double scale : {0.0, 1e12, 3e38}) {
    Problem p{.layer = {20, 50, 10}, .data = DataGradient::kThroughEpilogue, .weight_scale = scale};
    p.x[3] = NAN;
    p.x[20 + 7] = INFINITY;
    expect_same(p);
  }
}

TEST_F(LinearLossTest, NarrowerSumsAreRefused) {
  const double least = narrow_loss_limit(kMostLossTerms);
  EXPECT_NO_THROW(run({.layer = {8, 50, 10}, .narrow_limit = least}, Launches::kOne));
  EXPECT_THROW(run({.layer = {8, 50, 10}, .narrow_limit = least / 2}, Launches::kOne), InternalError);
}

TEST_F(LinearLossTest, ShapesThatDoNotGoTogetherAreABug) {
  const LinearShape layer{8, 50, 10};
  const auto numbers = rig_.zeroed<float>(500);
  const LossTarget target{.narrow_limit = narrow_loss_limit(kMostLossTerms)};
  const auto queue = [&](const LossShape& loss, const EpilogueBackward* expand) {
    rig_.ops().linear_loss(rig_.stream(), layer, numbers.data(), numbers.data(), numbers.data(), loss, target,
                           numbers.data(), expand, nullptr);
  };
  for (const LossShape& other : {LossShape{7, 8, 10}, {8, 7, 10}, {8, 8, 9}})
    expect_error<InternalError>([&] { queue(other, nullptr); }, {"loss.batch == shape.batch"});
  const EpilogueBackward pooled{50, 2, 2, 2, {}};
  expect_error<InternalError>([&] { queue({8, 8, 10}, &pooled); }, {"expand->pool == 1"});
}

TEST_F(LinearLossTest, LeavesToOthersWhatItDoesNotTake) {
  const LossRule smoothed{.label_share = 0.9F, .spread = 0.01F};
  for (const Problem& p :
       {Problem{.layer = {8, 50, 17}}, Problem{.layer = {8, 513, 10}}, Problem{.layer = {100'000, 1, 2}},
        Problem{.layer = {8, 50, 10}, .rule = smoothed}}) {
    SCOPED_TRACE(describe(p));
    const Result result = run(p, Launches::kOne);
    EXPECT_FALSE(result.at_once);
    EXPECT_EQ(result.counters, Counters(kStepCounters)) << "something was queued";
  }
}

}  // namespace
}  // namespace lockstep::test::linear_loss_test
