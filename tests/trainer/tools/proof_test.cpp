// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Parts of a proof: ranges, intervals, bits found from fingerprints, diagnoses, claims.
#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/tools/prove_claims.hpp"
#include "trainer/tools/prove_replay.hpp"
#include "trainer/tools/prove_result.hpp"

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

TEST(StepRangeTest, SamplesHaveTheirSizeAndWhatIsAlwaysAmongThem) {
  std::vector<StepRange> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto sample = sample_steps({11, 60}, 5, seed, {60, 52, 7});
    EXPECT_EQ(count_steps(sample), 5) << seed;
    EXPECT_TRUE(without({{52, 52}, {60, 60}}, sample).empty()) << seed << ": " << describe(sample);
    EXPECT_TRUE(without(sample, {{11, 60}}).empty()) << seed << ": " << describe(sample);
    seen.insert(seen.end(), sample.begin(), sample.end());
  }
  EXPECT_EQ(merged(seen), (std::vector<StepRange>{{11, 60}})) << "each step has its turn";
  EXPECT_EQ(sample_steps({1, 9}, 1, 3, {9, 6}), (std::vector<StepRange>{{6, 6}, {9, 9}}));
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
    head_ = {.trained = {{"a", {6}}, {"b", {4}}}, .kept = {}, .buffers = {"momentum"}, .facts = {}};
    recorded_ = {.step = 5, .arithmetic = 1, .apart = 0, .fingerprints = std::vector<std::uint64_t>(6, 100)};
    own_ = recorded_.fingerprints;
  }

  /// Verdict on a checkpoint of step 5 in which some bits of b's first elements are not those of `weights`.
  std::string said_of_checkpoint(std::size_t elements, float there) {
    const std::vector<float> weights(10, 1.0F);
    CheckpointState checkpoint;
    checkpoint.facts.step = 5;
    checkpoint.weights = weights;
    for (std::size_t i = 0; i < elements; ++i) checkpoint.weights[6 + i] = there;
    const auto found = diagnose_state({head_, parameters_, {}}, checkpoint, weights, {});
    return found ? found->text : "nothing";
  }

  std::optional<Discrepancy> diagnose() {
    return diagnose_step(
        {head_, parameters_, {4, 6}}, recorded_,
        {.step = 5, .fingerprints = own_, .apart = 0, .first_replayed = false, .start = "x"});
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
  recorded_.fingerprints[0] += 12345;                                    // a change that follows from it
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

/// Behind the parameters lie running statistics, which no gradient moves.
class RunningStatisticsTest : public DiagnosisTest {
 protected:
  RunningStatisticsTest() {
    parameters_.kept = {{.name = "bn.running_mean", .shape = {3}, .offset = 10, .size = 3}};
    parameters_.kept_size = 3;
    head_.kept = {{"bn.running_mean", {3}}};
    recorded_.fingerprints.assign(7, 100);
    own_ = recorded_.fingerprints;
    checkpoint_.facts.step = 5;
    checkpoint_.weights = some_floats(13);
    checkpoint_.optimizer = {{"momentum", some_floats(10)}};
    weights_ = checkpoint_.weights;
    momentum_ = checkpoint_.optimizer.front().values;
  }
  std::optional<Discrepancy> diagnose_end() const {
    return diagnose_state({head_, parameters_, {}}, checkpoint_, weights_, {momentum_});
  }

  CheckpointState checkpoint_;
  std::vector<float> weights_, momentum_;
};

TEST_F(RunningStatisticsTest, FlippedBitInAStepIsNamed) {
  recorded_.fingerprints[4] += word_multiplier(kWeightsBuffer, 11) << 7;
  const auto found = diagnose();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->parameter, "bn.running_mean");
  EXPECT_EQ(found->flipped, (FlippedBit{{1}, 7}));
}

TEST_F(RunningStatisticsTest, EqualStateAtTheEndIsNoDiscrepancy) {
  EXPECT_FALSE(diagnose_end());
}

TEST_F(RunningStatisticsTest, EachTensorOfTheCheckpointAtTheEndIsCompared) {
  const std::pair<std::size_t, const char*> places[] = {{5, "a"}, {9, "b"}, {12, "bn.running_mean"}};
  for (const auto& [word, name] : places) {
    weights_[word] += 1;
    const auto found = diagnose_end();
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->what, "checkpoint");
    EXPECT_EQ(found->parameter, name);
    weights_ = checkpoint_.weights;
  }
  momentum_[3] += 1;
  const auto found = diagnose_end();
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("the optimiser's momentum"), std::string::npos) << found->text;
}

TEST(BucketOfTest, TheEndOfTheArenaLeavesFirst) {
  const std::vector<std::size_t> two = {21580, 260}, one = {10}, too_many = {9, 9};
  EXPECT_EQ(bucket_of(two, 300, 21840), 1);
  EXPECT_EQ(bucket_of(two, 259, 21840), 2);
  EXPECT_EQ(bucket_of(one, 0, 10), 1);
  EXPECT_FALSE(bucket_of({}, 0, 10));
  EXPECT_FALSE(bucket_of(too_many, 0, 10));
}

const std::string kLines = R"({"event":"start","seed":7})"
                           "\n"
                           R"({"event":"step","step":1,"loss":0.5})"
                           "\n"
                           R"({"event":"straggler","step":1})"
                           "\n"
                           R"({"event":"epoch","step":2})"
                           "\n";

TEST(MetricsClaimsTest, LinesAreFoundByTheirStep) {
  const MetricsClaims claims(kLines + R"({"event":"step","st)");
  EXPECT_TRUE(claims.problems().empty()) << "a torn end is no lie";
  EXPECT_EQ(claims.lines().size(), 3U);
  EXPECT_EQ(claims.of_step(0).front().event, "start");
  EXPECT_EQ(claims.of_step(2).front().number, 4);
  EXPECT_EQ(claims.event(claims.of_step(1).front()).at("loss"), 0.5);
  EXPECT_EQ(claims.next_step(0), 1);
  EXPECT_EQ(claims.next_step(2), INT64_MAX);
  EXPECT_EQ(MetricsClaims(R"({"event":"lost","step":9})"
                          "\n")
                .lost_up_to(),
            9);
}

TEST(MetricsClaimsTest, LinesThatNoRunWritesAreProblems) {
  for (const char* line : {"[]", "nonsense", R"({"event":3})", R"({"event":"step","step":1})",
                           R"({"event":"step"})", R"({"event":"end","step":18446744073709551615})"}) {
    const MetricsClaims claims(kLines + line + "\n");
    EXPECT_EQ(claims.problems().size(), 1U) << line;
    EXPECT_EQ(claims.lines().size(), 3U) << line;
  }
}

/// A replay has evaluated nothing and has no loss before the first step.
TEST(MetricsClaimsTest, OnlyTheStartIsOfStep0) {
  for (const char* event : {"step", "loss", "epoch", "end"}) {
    const MetricsClaims claims(fmt::format("{{\"event\":\"{}\",\"step\":0}}\n", event));
    EXPECT_EQ(claims.problems().size(), 1U) << event;
    EXPECT_TRUE(claims.of_step(0).empty()) << event;
  }
}

TEST(ClaimsTest, NumbersThatBothHaveAreCompared) {
  const nlohmann::ordered_json own = {{"loss", 0.1}, {"seconds", 3}, {"test_loss", std::nan("")}};
  EXPECT_TRUE(
      differing_numbers({{"loss", 0.1}, {"seconds", 9}, {"test_loss", nullptr}}, own, {"seconds"}).empty());
  EXPECT_TRUE(differing_numbers({{"more", 1}}, own, {}).empty());
  EXPECT_EQ(differing_numbers({{"loss", std::nextafter(0.1, 1)}}, own, {}),
            std::vector<std::string>{"loss is 0.10000000000000002, and came to 0.1"});
  EXPECT_EQ(differing_numbers({{"test_loss", 1.5}}, own, {}).size(), 1U);
}

TEST(ClaimsTest, EachFactOfAManifestIsCompared) {
  CheckpointFacts facts;
  facts.epoch_loss_units = {{1, 2, 3, 0, 0, 0}};
  facts.unprinted = {3, 192, 0, {{7, 0, 0, 0, 0, 0}}};
  facts.unlogged = {2, 128, 100, {}};
  facts.gradient_units = {{-40, -38}, 2};
  facts.test_accuracy = 0.5;
  facts.parameters = {{"a", {2, 3}}};
  facts.model = {{"yaml", "layers"}};
  EXPECT_TRUE(differing_facts(facts, facts).empty());
  const std::function<void(CheckpointFacts&)> forgeries[] = {
      [](auto& f) { ++f.step; },
      [](auto& f) { ++f.epoch; },
      [](auto& f) { ++f.step_in_epoch; },
      [](auto& f) { ++f.seed; },
      [](auto& f) { ++f.epoch_samples; },
      [](auto& f) { ++f.epoch_correct; },
      [](auto& f) { f.epoch_loss_sum += 1e-9; },
      [](auto& f) { ++f.epoch_loss_units.limbs[5]; },
      [](auto& f) { ++f.unprinted.value().steps; },
      [](auto& f) { ++f.unprinted.value().samples; },
      [](auto& f) { ++f.unprinted.value().loss_units.limbs[0]; },
      [](auto& f) { ++f.unlogged.steps; },
      [](auto& f) { ++f.unlogged.samples; },
      [](auto& f) { ++f.unlogged.correct; },
      [](auto& f) { ++f.gradient_units.exponents[1]; },
      [](auto& f) { ++f.gradient_units.changed_at; },
      [](auto& f) { ++f.arithmetic.version; },
      [](auto& f) { ++f.arithmetic.since; },
      [](auto& f) { f.test_accuracy = 0.6; },
      [](auto& f) {
        f.parameters[0].shape = {3, 2};
      },
      [](auto& f) {
        f.kept = {{"b", {1}}};
      },
      [](auto& f) { f.model["yaml"] = "other"; }};
  for (std::size_t i = 0; i < std::size(forgeries); ++i) {
    CheckpointFacts forged = facts;
    forgeries[i](forged);
    EXPECT_EQ(differing_facts(forged, facts).size(), 1U) << i;
  }
}

}  // namespace
}  // namespace lockstep
