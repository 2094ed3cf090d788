// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a proof is made of: ranges, intervals, bits found from fingerprints, diagnoses.
#include "common/error.hpp"
#include "kernels/cpu/fingerprint.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "trainer/prove/diagnosis.hpp"
#include "trainer/prove/flipped_bit.hpp"
#include "trainer/prove/interval.hpp"
#include "trainer/prove/proof_result.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

std::vector<float> some_floats(std::size_t size) {
  std::vector<float> floats(size);
  for (std::size_t i = 0; i < size; ++i) floats[i] = 0.5F - 0.001F * static_cast<float>(i);
  return floats;
}

TEST(FingerprintTest, IsTheSumOfWordsTimesMultipliersAndOfItsParts) {
  const auto floats = some_floats(5000);
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < floats.size(); ++i)
    expected += std::bit_cast<std::uint32_t>(floats[i]) * word_multiplier(kWeightsBuffer, 77 + i);
  EXPECT_EQ(cpu::fingerprint(kWeightsBuffer, 77, floats), expected);
  const std::span<const float> all(floats);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{947}, std::size_t{948}, std::size_t{3001}}) {
    EXPECT_EQ(cpu::fingerprint(kWeightsBuffer, 77, all.first(cut)) +
                  cpu::fingerprint(kWeightsBuffer, 77 + cut, all.subspan(cut)),
              expected)
        << cut;
  }
  std::vector<std::int64_t> sums(3000);
  std::iota(sums.begin(), sums.end(), -1500);
  std::uint64_t of_sums = 0;
  for (std::size_t i = 0; i < sums.size(); ++i)
    of_sums += static_cast<std::uint64_t>(sums[i]) * word_multiplier(kGradientBuffer, i);
  EXPECT_EQ(cpu::fingerprint(kGradientBuffer, 0, sums), of_sums);
}

TEST(FlippedBitTest, EveryBitIsFound) {
  const auto before = some_floats(3000);
  for (std::size_t word = 0; word < before.size(); word += 331) {
    for (int bit = 0; bit < 32; ++bit) {
      auto after = before;
      after[word] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(before[word]) ^ (1U << bit));
      const std::uint64_t difference =
          cpu::fingerprint(kOptimizerBuffer, 40, after) - cpu::fingerprint(kOptimizerBuffer, 40, before);
      EXPECT_EQ(find_flipped_bit(difference, {kOptimizerBuffer, 40, before.size(), 32}),
                (WordBit{word, bit}));
    }
  }
}

TEST(FlippedBitTest, TwoBitsAreNotOne) {
  const auto before = some_floats(3000);
  auto after = before;
  after[7] = 3;
  after[2100] = 4;
  const std::uint64_t difference =
      cpu::fingerprint(kWeightsBuffer, 0, after) - cpu::fingerprint(kWeightsBuffer, 0, before);
  EXPECT_FALSE(find_flipped_bit(difference, {kWeightsBuffer, 0, before.size(), 32}));
}

TEST(StepRangeTest, ParsesWhatTheHelpSays) {
  EXPECT_EQ(parse_steps("7"), (StepRange{7, 7}));
  EXPECT_EQ(parse_steps("1..100"), (StepRange{1, 100}));
  EXPECT_EQ(parse_steps("400.."), (StepRange{400, 0}));
  EXPECT_EQ(parse_steps("..100"), (StepRange{0, 100}));
  for (const char* wrong : {"", "..", "0", "x", "5..3", "-1", "1...3", "1..x", "99999999999999999999"})
    EXPECT_THROW(parse_steps(wrong), UsageError) << wrong;
}

TEST(StepRangeTest, RangesAreMergedSubtractedAndNamed) {
  const auto a = merged({{5, 9}, {1, 3}, {4, 4}, {12, 11}, {20, 30}});
  EXPECT_EQ(a, (std::vector<StepRange>{{1, 9}, {20, 30}}));
  EXPECT_EQ(without(a, {{3, 4}, {9, 25}}), (std::vector<StepRange>{{1, 2}, {5, 8}, {26, 30}}));
  EXPECT_EQ(describe(without(a, {{3, 4}, {9, 25}})), "steps 1 to 2, 5 to 8 and 26 to 30");
  EXPECT_EQ(without({{1, 5}}, {{2, 3}}), (std::vector<StepRange>{{1, 1}, {4, 5}}));
  EXPECT_EQ(without({{1, 5}}, {{1, 5}}), std::vector<StepRange>{});
}

TEST(ProofResultTest, ExitCodeSaysWhetherAllIsProvedAndWhatIsMissing) {
  ProofResult result{.asked = {{1, 10}}, .proved = {{1, 4}, {5, 12}}, .findings = {}, .not_proved = {}};
  EXPECT_EQ(result.exit_code(), 0);
  result.proved.back() = {6, 12};
  EXPECT_EQ(result.exit_code(), 66);
  result.lacks_arithmetic = true;
  EXPECT_EQ(result.exit_code(), 69);
  result.findings.emplace_back();
  EXPECT_EQ(result.exit_code(), 1);
}

TEST(IntervalTest, EachStepIsReplayedFromTheNearestStart) {
  const std::vector<StartPoint> starts = {{0, ""}, {40, "c40"}, {80, "c80"}};
  const auto intervals = plan_intervals(starts, {{1, 95}}, {{30, 60}});
  ASSERT_EQ(intervals.size(), 2U);
  EXPECT_EQ(intervals[0].steps(), (StepRange{1, 40}));
  EXPECT_EQ(intervals[0].end, "c40");
  EXPECT_EQ(intervals[1].steps(), (StepRange{41, 60}));
  EXPECT_EQ(intervals[1].end, "");
}

TEST(IntervalTest, NothingIsReplayedAcrossStepsOfAnotherArithmetic) {
  const std::vector<StartPoint> starts = {{0, ""}, {40, "c40"}};
  const auto intervals = plan_intervals(starts, {{1, 50}, {70, 90}}, {{1, 90}});
  ASSERT_EQ(intervals.size(), 2U);
  EXPECT_EQ(intervals[1].steps(), (StepRange{41, 50}));
}

TEST(IntervalTest, WorkIsSharedOutEvenly) {
  const auto intervals = plan_intervals({{0, ""}, {10, "a"}, {20, "b"}, {50, "c"}}, {{1, 60}}, {{1, 60}});
  const auto worker_of = share_intervals(intervals, 2);
  EXPECT_NE(worker_of[2], worker_of[0]);
  EXPECT_EQ(worker_of[0], worker_of[1]);
  EXPECT_EQ(worker_of[0], worker_of[3]);
}

class DiagnosisTest : public ::testing::Test {
 protected:
  DiagnosisTest() {
    parameters_.parameters = {{.name = "a", .shape = {2, 3}, .offset = 0, .size = 6},
                              {.name = "b", .shape = {4}, .offset = 6, .size = 4}};
    parameters_.size = 10;
    head_ = {.trained = {{"a", 6}, {"b", 4}}, .kept = {}, .buffers = {"momentum"}, .facts = {}};
    recorded_ = {.step = 5, .arithmetic = 1, .apart = 0, .fingerprints = std::vector<std::uint64_t>(6, 100)};
    own_ = recorded_.fingerprints;
  }

  /// Of a checkpoint of step 5 in which some bits of b's first elements are not those of `weights`.
  std::string said_of_checkpoint(std::size_t elements, float there) {
    const std::vector<float> weights(10, 1.0F);
    CheckpointState checkpoint;
    checkpoint.facts.step = 5;
    checkpoint.weights = weights;
    for (std::size_t i = 0; i < elements; ++i) checkpoint.weights[6 + i] = there;
    const auto found = diagnose_state({head_, parameters_, ""}, checkpoint, weights, {});
    return found ? found->text : "nothing";
  }

  std::optional<Discrepancy> diagnose() {
    return diagnose_step(
        {head_, parameters_,
         "2 buckets: 4 + 6 parameters, predicted 3 us exposed" /* as older versions wrote it */},
        recorded_, {.step = 5, .fingerprints = own_, .apart = 0, .first_replayed = false, .start = "x"});
  }

  ParameterLayout parameters_;
  TrailHead head_;
  TrailRecord recorded_;
  std::vector<std::uint64_t> own_;
};

TEST_F(DiagnosisTest, ADamagedCheckpointIsDescribedInGoodGrammar) {
  EXPECT_EQ(said_of_checkpoint(0, 0), "nothing");
  EXPECT_EQ(said_of_checkpoint(1, -1.0F),
            "in its checkpoint, bit 31 of element [0] of the weights is flipped");
  EXPECT_EQ(said_of_checkpoint(1, 5.3F),
            "in its checkpoint, 1 element of the weights is not what the step left");
  EXPECT_EQ(said_of_checkpoint(2, 5.3F),
            "in its checkpoint, 2 elements of the weights are not what the step left");
}

TEST_F(DiagnosisTest, EqualRowsAreNoDiscrepancy) {
  EXPECT_FALSE(diagnose());
}

TEST_F(DiagnosisTest, FlippedWeightIsNamedWithElementBitAndBucket) {
  recorded_.fingerprints[2] += word_multiplier(kWeightsBuffer, 4) << 9;  // a[1, 1]
  recorded_.fingerprints[0] += 12345;                                    // what follows from it
  const auto found = diagnose();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "weights");
  EXPECT_EQ(found->parameter, "a");
  EXPECT_EQ(found->bucket, 2);
  EXPECT_EQ(found->flipped, (FlippedBit{{1, 1}, 9}));
}

TEST_F(DiagnosisTest, FlippedSumIsNamed) {
  recorded_.fingerprints[1] -= word_multiplier(kGradientBuffer, 8) << 50;  // b[2]
  const auto found = diagnose();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "gradient");
  EXPECT_EQ(found->bucket, 1);
  EXPECT_EQ(found->flipped, (FlippedBit{{2}, 50}));
}

TEST_F(DiagnosisTest, OtherDataShowInAllGradients) {
  recorded_.fingerprints[0] += 12345;
  recorded_.fingerprints[1] += 999;
  const auto found = diagnose();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->parameter, "b") << "backward meets it first";
  EXPECT_NE(found->cause.find("other data"), std::string::npos) << found->cause;
}

TEST_F(DiagnosisTest, AnotherRankIsTheOneWhereRankZeroIsRight) {
  recorded_.apart = word_multiplier(kOptimizerBuffer, 3) << 20;
  const auto found = diagnose();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "optimizer");
  EXPECT_EQ(found->flipped, (FlippedBit{{1, 0}, 20}));
  EXPECT_NE(found->text.find("on a rank other than 0"), std::string::npos);
}

TEST(BucketOfTest, ByThePlansOwnWords) {
  EXPECT_EQ(bucket_of("2 buckets: 21,580 + 260 parameters", 300, 21840), 1);
  EXPECT_EQ(bucket_of("2 buckets: 21,580 + 260 parameters", 259, 21840), 2);
  EXPECT_EQ(bucket_of("1 bucket: 10 parameters", 0, 10), 1);
  EXPECT_FALSE(bucket_of("", 0, 10));
  EXPECT_FALSE(bucket_of("2 buckets: 9 + 9 parameters", 0, 10));
}

}  // namespace
}  // namespace lockstep
