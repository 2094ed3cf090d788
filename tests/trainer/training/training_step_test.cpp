// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Result of a step, and the message of one that fails.
#include "trainer/training/training_step.hpp"

#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/progress.hpp"
#include "trainer/training/step_observer.hpp"

namespace lockstep {
namespace {

using Outcome = StepTrial::Outcome;
using Refused = std::vector<TensorRefusals>;

StepTotals totals(std::int64_t refused) {
  StepTotals totals;
  totals.samples = 128;
  totals.refused = refused;
  return totals;
}

class StepTrialTest : public ::testing::Test {
 protected:
  Outcome decide(StepTrial& trial, const Refused& refusals, std::int64_t losses = 0) {
    std::int64_t all = losses;
    for (const auto& tensor : refusals) all += tensor.too_large + tensor.not_finite;
    return trial.decide(totals(all), refusals, [this] {
      ++asked_;
      return largest_;
    });
  }

  GradientUnits units_{std::vector<std::size_t>{4, 2}, 2};
  std::vector<double> largest_ = {0x1p40, 0x1p40};
  int asked_ = 0;
};

TEST_F(StepTrialTest, StepThatFitsIsTaken) {
  StepTrial first(units_, 0), third(units_, 3);
  EXPECT_EQ(decide(first, {{}, {}}), Outcome::kTake);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(decide(third, {{}, {}}), Outcome::kTake);
  EXPECT_EQ(asked_, 1) << "not at this step";
}

TEST_F(StepTrialTest, TooLargeIsRepeatedAndThenNeverRefined) {
  largest_ = {0x1p40, 1};
  StepTrial trial(units_, 0);
  EXPECT_EQ(decide(trial, {{}, {.too_large = 3}}), Outcome::kRepeat);
  EXPECT_EQ(units_.exponents()[1], -24);
  EXPECT_EQ(decide(trial, {{}, {}}), Outcome::kTake);
  EXPECT_EQ(units_.exponents()[1], -24);
}

TEST_F(StepTrialTest, RaisedTensorLeavesTheOthersToBeRefinedWhenThatIsDue) {
  largest_ = {1, 1};
  StepTrial due(units_, 0);
  EXPECT_EQ(decide(due, {{}, {.too_large = 3}}), Outcome::kRepeat);
  EXPECT_EQ(decide(due, {{}, {}}), Outcome::kRepeat);
  EXPECT_EQ(units_.exponents()[0], -80);
  EXPECT_EQ(units_.exponents()[1], -24);
  StepTrial not_due(units_, 3);
  EXPECT_EQ(decide(not_due, {{}, {.too_large = 3}}), Outcome::kRepeat);
  EXPECT_EQ(decide(not_due, {{}, {}}), Outcome::kTake);
}

/// The step as an engine computes it: rounded to the units as they are, until the trial takes it.
std::vector<std::int64_t> sums_taken(GradientUnits& units, const std::vector<float>& terms,
                                     std::int64_t step) {
  StepTrial trial(units, step);
  for (int times = 1; times < 50; ++times) {
    std::vector<std::int64_t> sums(terms.size());
    Refused refusals(units.tensors());
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const ExactFormat& format = units.format(units.tensor_at(i));
      const bool fits = std::abs(terms[i]) < format.limit;
      if (fits) sums[i] = std::llrint(double{terms[i]} * format.scale);
      if (!fits) ++refusals[units.tensor_at(i)].too_large;
    }
    std::int64_t refused = 0;
    for (const TensorRefusals& tensor : refusals) refused += tensor.too_large;
    const auto outcome = trial.decide(totals(refused), refusals, [&] {
      std::vector<double> largest(units.tensors());
      for (std::size_t i = 0; i < sums.size(); ++i) {
        double& of_tensor = largest[units.tensor_at(i)];
        of_tensor = std::max(of_tensor, std::abs(static_cast<double>(sums[i])));
      }
      return largest;
    });
    if (outcome == Outcome::kTake) return sums;
  }
  ADD_FAILURE() << "the step has no end";
  return std::vector<std::int64_t>(terms.size());
}

/// The second tensor's terms are beyond 2^17 units of 2^-40, the first one's below half of such a unit.
TEST_F(StepTrialTest, SmallGradientsKeepTheirBitsInAStepThatRaisesAnotherTensor) {
  const std::vector<float> terms = {1.2345678e-13F, -3.3333333e-14F, 9.8765432e-14F, 1e-14F, 1e9F, 7.5e30F};
  const auto sums = sums_taken(units_, terms, 0);
  for (std::size_t i = 0; i < 4; ++i) {
    const double kept = from_exact(sums[i], units_.exponents()[0]);
    EXPECT_NEAR(kept / double{terms[i]}, 1, 0x1p-24) << terms[i] << " became " << kept;
  }
  const double largest = from_exact(sums[5], units_.exponents()[1]);
  EXPECT_NEAR(largest / double{terms[5]}, 1, 0x1p-24) << largest;
}

/// Terms that nearly cancel, as those of a bias in front of a batch_norm do. Their sum wants a unit for which
/// they are too large.
struct NearlyCancelling {
  GradientUnits units{std::vector<std::size_t>{1}, 2};
  float term = 100, other = -std::nextafter(100.0F, 0.0F);

  Refused refusals() const { return {{.too_large = term < units.format(0).limit ? 0 : 1}}; }
  /// @returns how often the step is computed
  int settle(const ForeseenRefusals& foreseen) {
    StepTrial trial(units, 0);
    for (int times = 1; times < 50; ++times) {
      const Refused refused = refusals();
      const auto largest = [&] {
        const double scale = units.format(0).scale;
        return std::vector<double>{std::abs(std::rint(term * scale) + std::rint(other * scale))};
      };
      if (trial.decide(totals(refused[0].too_large), refused, largest, foreseen) == Outcome::kTake)
        return times;
    }
    return 0;
  }
};

TEST_F(StepTrialTest, TermsThatAreKnownSpareATrialAndTheUnitsEndAsTheSame) {
  NearlyCancelling tried, known;
  EXPECT_EQ(tried.settle({}), 3);
  EXPECT_EQ(known.settle([&] { return known.refusals(); }), 2);
  EXPECT_EQ(tried.units.exponents()[0], kExactExponent - 1);
  EXPECT_EQ(known.units.exponents()[0], kExactExponent - 1);
}

/// Its first tensor's sums are small, until its unit is.
class SmallSums final : public StepWork {
 public:
  explicit SmallSums(bool can_sum) : can_sum_(can_sum) {}

  StepSums reduce() override { return ++computed, StepSums{totals(0)}; }
  void take(const StepTotals& /*totals*/) override {}
  bool has_units() const override { return true; }
  std::vector<double> largest_sums() override {
    return {units.exponents()[0] == -40 ? 0x1p10 : 0x1p40, 0x1p40};
  }
  bool sum_again() override { return ++summed, can_sum_; }

  const StepPosition& position() const override { return position_; }
  SumFingerprints own_share() override { return {}; }
  bool has_room_for(std::size_t /*grains*/) override { return false; }
  SumFingerprints gradients_of(const std::vector<Grain>& /*grains*/) override { return {}; }

  GradientUnits units{std::vector<std::size_t>{4, 2}, 2};
  int computed = 0, summed = 0;

 private:
  StepPosition position_{.epoch = 0, .step_in_epoch = 4, .global_step = 4};
  bool can_sum_;
};

/// Counts the steps that it sees, and notes a unit of each.
class UnitsSeen final : public StepObserver {
 public:
  explicit UnitsSeen(const GradientUnits& units) : units_(units) {}
  void before_update(ReducedStep& step) override {
    EXPECT_EQ(step.position().global_step, 4);
    seen.push_back(units_.exponents()[0]);
  }
  std::vector<std::int16_t> seen;

 private:
  const GradientUnits& units_;
};

TEST_F(StepTrialTest, AStepWhoseSumsCanBeMadeAgainIsComputedOnce) {
  for (const bool can_sum : {true, false}) {
    SmallSums work(can_sum);
    UnitsSeen observer(work.units);
    StepSeries series;
    take_step(work, work.units, observer, nullptr, series);
    EXPECT_EQ(observer.seen, std::vector<std::int16_t>{-70}) << "once, in the units that move the weights";
    EXPECT_EQ(series.steps, 1);
    EXPECT_EQ(work.units.exponents()[0], -70);
    EXPECT_EQ(work.computed, can_sum ? 1 : 2);
    EXPECT_EQ(work.summed, 1);
  }
}

TEST_F(StepTrialTest, TooSmallIsRepeated) {
  largest_ = {0x1p10, 0x1p40};
  StepTrial trial(units_, 4);
  EXPECT_EQ(decide(trial, {{}, {}}), Outcome::kRepeat);
  EXPECT_EQ(units_.exponents()[0], -70);
  EXPECT_EQ(units_.exponents()[1], -40);
}

TEST_F(StepTrialTest, WhatIsNotFiniteFailsAndChangesNoUnit) {
  StepTrial trial(units_, 0);
  EXPECT_EQ(decide(trial, {{.too_large = 9, .not_finite = 2}, {}}, 5), Outcome::kFail);
  EXPECT_EQ(trial.failure().losses, 5);
  EXPECT_EQ(trial.failure().terms, 2);
  EXPECT_EQ(trial.failure().tensor, 0U);
  EXPECT_EQ(units_.exponents()[0], -40);
  StepTrial losses(units_, 0);
  EXPECT_EQ(decide(losses, {{}, {}}, 1), Outcome::kFail);
  EXPECT_EQ(losses.failure().tensor, StepFailure::kNoTensor);
  StepTrial term(units_, 0);
  EXPECT_EQ(decide(term, {{}, {.not_finite = 1}}), Outcome::kFail);
  EXPECT_EQ(term.failure().losses, 0);
  EXPECT_EQ(term.failure().tensor, 1U);
}

TEST(StepFailureTest, NamesStepTensorSizeAndWhatHelps) {
  ParameterLayout layout;
  layout.parameters = {{"conv1.weight", {2}, 0, 2, 1}, {"conv1.bias", {1}, 2, 1, 1}};
  layout.size = 3;
  const std::vector<float> weights = {1, -2.5e20F, 3};
  const std::string largest = "NaN or infinite; the largest weight before it is 2.5e+20, in conv1.weight. ";
  spell_advice_as(kJobSpelling);
  EXPECT_EQ(describe_failure({.losses = 1, .terms = 1, .tensor = 1}, 128, 12, layout, weights),
            "step 12: the loss of 1 of 128 samples and the gradient of conv1.bias are " + largest +
                "Try this: lower train.optimizer.lr, raise data.std if inputs are large, or use a smaller "
                "data.global_batch. This step changed nothing");
  EXPECT_EQ(describe_failure({.losses = 1}, 128, 1, layout, weights),
            "step 1: the loss of 1 of 128 samples is " + largest +
                "Try this: look at data.mean and data.std (larger inputs need a larger std) and at "
                "train.initial_weights. This step changed nothing");
  spell_advice_as({});
  test::expect_words(describe_failure({.losses = 1}, 128, 1, layout, weights),
                     {"look at the samples' mean and std (larger", "at the initial weights. This"});
  const auto begin_of = [&](const std::vector<float>& numbers) {
    const std::string text = describe_failure({.terms = 7, .tensor = 0}, 128, 2, layout, numbers);
    return text.substr(0, text.find(". Try"));
  };
  const std::string gradient = "step 2: the gradient of conv1.weight is NaN or infinite; ";
  EXPECT_EQ(begin_of({1, std::nanf(""), 3}), gradient + "conv1.weight has a weight of nan");
  EXPECT_EQ(begin_of({1, -3, 3}), gradient + "the largest weight before it is 3, in conv1.weight");
  EXPECT_EQ(begin_of({0, 0, 0}), gradient + "the largest weight before it is 0, in conv1.weight");
}

}  // namespace
}  // namespace lockstep
