// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Parts of a proof: ranges, intervals, bits found from fingerprints, diagnoses, claims.
#include "common/error.hpp"
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
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
  EXPECT_EQ(parse_steps("5..5"), (StepRange{5, 5}));
  EXPECT_EQ(
      message_of<UsageError>([] { parse_steps("5..3"); }),
      "--steps: '5..3' is not a range of steps, which are counted from 1; for example 7, 1..100, 400.. or "
      "..100");
}

TEST(StepRangeTest, RangesAreMergedSubtractedAndNamed) {
  const auto a = merged({{5, 9}, {1, 3}, {4, 4}, {12, 11}, {20, 30}});
  EXPECT_EQ(a, (std::vector<StepRange>{{1, 9}, {20, 30}}));
  EXPECT_EQ(without(a, {{3, 4}, {9, 25}}), (std::vector<StepRange>{{1, 2}, {5, 8}, {26, 30}}));
  EXPECT_EQ(describe(without(a, {{3, 4}, {9, 25}})), "steps 1 to 2, 5 to 8 and 26 to 30");
  EXPECT_EQ(without({{1, 5}}, {{2, 3}}), (std::vector<StepRange>{{1, 1}, {4, 5}}));
  EXPECT_EQ(without({{1, 5}}, {{1, 5}}), std::vector<StepRange>{});
  EXPECT_EQ(without({{5, 5}}, {{1, 4}, {6, 9}}), (std::vector<StepRange>{{5, 5}}));
  EXPECT_EQ(without({{1, 3}, {7, 9}}, {{3, 7}}), (std::vector<StepRange>{{1, 2}, {8, 9}}));
  EXPECT_EQ(merged({{1, 9}, {2, 3}, {11, 12}}), (std::vector<StepRange>{{1, 9}, {11, 12}}));
  EXPECT_EQ(describe(std::vector<StepRange>{}), "none");
  EXPECT_EQ(describe(std::vector<StepRange>{{1000, 1000}}), "step 1,000");
  EXPECT_EQ(describe(std::vector<StepRange>{{1, 2000}}), "steps 1 to 2,000");
  EXPECT_EQ(count_steps({{2, 1}, {3, 3}, {5, 9}}), 6);
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

/// A finding with all that there can be.
Discrepancy flipped_weight() {
  return {.step = 1500,
          .what = "weights",
          .parameter = "conv1.weight",
          .bucket = 2,
          .flipped = FlippedBit{{1, 0}, 9},
          .text = "bit 9 flipped",
          .cause = "memory",
          .first_replayed = true,
          .rank = WrongRank{3, {.host = "node1", .device = "GPU 0", .uuid = "GPU-a"}}};
}

TEST(ProofResultTest, TextHasFindingsAndOpenStepsBeforeTheVerdict) {
  ProofResult result{.asked = {{1, 10}}, .proved = {{1, 4}, {9, 12}}, .findings = {}, .not_proved = {}};
  const ProofCircumstances circumstances{.run = "runs/a", .device = "cpu", .ranks = 2, .seconds = 1.5};
  result.replayed = 1200;
  result.not_proved = {{{5, 8}, "not in the trail"}};
  const std::string open = "not proved: steps 5 to 8: not in the trail\nproved: steps 1 to 4 and 9 to 12\n";
  const std::string work = ", 6 of 10 steps proved; 1,200 replayed on cpu, 2 ranks, in 1.5 s\n";
  EXPECT_EQ(to_text(result, circumstances), open + "runs/a: not proved" + work);
  result.findings = {flipped_weight(), {.step = 2, .what = "job", .text = "another job"}};
  EXPECT_EQ(to_text(result, circumstances),
            "refuted at step 1,500, bucket 2, conv1.weight: bit 9 flipped\n  likely cause: memory\n"
            "refuted at step 2: another job\n" +
                open + "runs/a: refuted" + work);
}

TEST(ProofResultTest, JsonHasEveryFactOfAFinding) {
  ProofResult result{.asked = {{1, 10}}, .proved = {{1, 4}}, .findings = {}, .not_proved = {}};
  result.replayed = 7;
  result.not_proved = {{{5, 8}, "why"}};
  result.findings = {flipped_weight(), {.step = 2, .what = "job", .text = "another", .cause = "changed"}};
  const auto report = report_json(result, {.run = "runs/a", .device = "cpu", .ranks = 2, .seconds = 1.5});
  EXPECT_EQ(report, nlohmann::ordered_json::parse(R"({"format": 1, "run": "runs/a", "verdict": "refuted",
    "steps_asked": 10, "steps_proved": 4, "steps_replayed": 7, "proved": [{"from": 1, "to": 4}],
    "refuted": [{"step": 1500, "what": "weights", "parameter": "conv1.weight", "bucket": 2, "element": [1, 0],
                 "bit": 9, "rank": 3, "host": "node1", "device": "GPU 0", "uuid": "GPU-a",
                 "text": "bit 9 flipped", "cause": "memory"},
                {"step": 2, "what": "job", "text": "another", "cause": "changed"}],
    "not_proved": [{"from": 5, "to": 8, "why": "why"}], "device": "cpu", "ranks": 2, "seconds": 1.5})"));
  const ProofResult sent = nlohmann::json(result).get<ProofResult>();
  EXPECT_EQ(report_json(sent, {.run = "runs/a", .device = "cpu", .ranks = 2, .seconds = 1.5}), report);
  EXPECT_TRUE(sent.findings[0].first_replayed);
}

TEST(ProofResultTest, ResultsOfRanksAreAddedUpInTheOrderOfSteps) {
  ProofResult all{.asked = {{1, 5}}, .proved = {{1, 2}}, .findings = {}, .not_proved = {}};
  all.replayed = 2;
  refute(all, 9, "trail", "text", "cause");
  all.not_proved = {{{4, 5}, "b"}};
  ProofResult more{.asked = {{6, 9}}, .proved = {{3, 3}}, .findings = {}, .not_proved = {}};
  more.replayed = 5;
  more.lacks_arithmetic = true;
  refute(more, 3, "job", "other", "why");
  more.not_proved = {{{1, 3}, "a"}};
  add(all, more);
  EXPECT_EQ(all.asked, (std::vector<StepRange>{{1, 9}}));
  EXPECT_EQ(all.proved, (std::vector<StepRange>{{1, 3}}));
  EXPECT_EQ(all.replayed, 7);
  EXPECT_TRUE(all.lacks_arithmetic);
  ASSERT_EQ(all.findings.size() + all.not_proved.size(), 4U);
  EXPECT_EQ(all.findings[0].what + all.findings[0].text + all.findings[0].cause, "jobotherwhy");
  EXPECT_EQ(all.findings[1].step, 9);
  EXPECT_EQ(all.not_proved[0].why + all.not_proved[1].why, "ab");
  add(all, {});
  EXPECT_TRUE(all.lacks_arithmetic);
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

/// "1 to 40, c40; 41 to 60, ; ": first and last steps, and the checkpoint at the end.
std::string planned(const std::vector<StartPoint>& starts, const std::vector<StepRange>& reachable,
                    const std::vector<StepRange>& wanted) {
  std::string text;
  for (const Interval& interval : plan_intervals(starts, reachable, wanted))
    text += fmt::format("{} to {}, {}; ", interval.steps().first, interval.last, interval.end);
  return text;
}

TEST(IntervalTest, EachStepIsReplayedFromTheNearestStart) {
  EXPECT_EQ(planned({{0, ""}, {40, "c40"}, {80, "c80"}}, {{1, 95}}, {{30, 60}}),
            "1 to 40, c40; 41 to 60, ; ");
}

TEST(IntervalTest, NothingIsReplayedAcrossStepsOfAnotherArithmetic) {
  const std::vector<StartPoint> starts = {{0, ""}, {40, "c40"}};
  EXPECT_EQ(planned(starts, {{1, 50}, {70, 90}}, {{1, 90}}), "1 to 40, c40; 41 to 50, ; ");
  EXPECT_EQ(planned({{0, ""}, {60, "c60"}}, {{1, 50}, {70, 90}}, {{1, 90}}), "1 to 50, ; ");
  EXPECT_EQ(planned(starts, {{1, 50}}, {{51, 60}}), "");
}

TEST(IntervalTest, WorkIsSharedOutEvenly) {
  const auto intervals = plan_intervals({{0, ""}, {10, "a"}, {20, "b"}, {50, "c"}}, {{1, 60}}, {{1, 60}});
  const auto worker_of = share_intervals(intervals, 2);
  EXPECT_NE(worker_of[2], worker_of[0]);
  EXPECT_EQ(worker_of[0], worker_of[1]);
  EXPECT_EQ(worker_of[0], worker_of[3]);
  EXPECT_EQ(share_intervals(intervals, 3), (std::vector<std::size_t>{1, 2, 0, 1}));
}

/// Ranks 0, 1 ... of node0, node1 ..., each of which holds all tensors.
RecordedRanks ranks_of_nodes(int count) {
  RecordedRanks ranks;
  for (int rank = 0; rank < count; ++rank)
    ranks.stretch.ranks.push_back({.host = "node" + std::to_string(rank), .device = "cpu"});
  return ranks;
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
        {.step = 5, .fingerprints = own_, .apart = apart_here_, .first_replayed = is_first_, .start = "x"},
        ranks_);
  }
  /// "what tensor: text; cause"
  std::string said() {
    const auto found = diagnose();
    if (!found) return "nothing";
    return fmt::format("{} {}: {}; {}", found->what, found->parameter, found->text, found->cause);
  }
  /// Number of the rank that is named; -1: none.
  int named_rank() {
    const auto found = diagnose();
    return found && found->rank ? found->rank->number : -1;
  }

  ParameterLayout parameters_;
  TrailHead head_;
  TrailRecord recorded_;
  std::vector<std::uint64_t> own_;
  std::uint64_t apart_here_ = 0;
  bool is_first_ = false;
  std::optional<RecordedRanks> ranks_;
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

TEST_F(DiagnosisTest, FlippedWeightIsNamedWithElementBitAndBucket) {
  EXPECT_EQ(said(), "nothing");
  recorded_.fingerprints[2] += word_multiplier(kWeightsBuffer, 4) << 9;  // a[1, 1]
  recorded_.fingerprints[0] += 12345;                                    // a change that follows from it
  const auto found = diagnose();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 5);
  EXPECT_EQ(found->bucket, 2);
  EXPECT_EQ(found->flipped, (FlippedBit{{1, 1}, 9}));
  EXPECT_EQ(
      said(),
      "weights a: the weights on rank 0 went into it with bit 9 of element [1, 1] flipped; a flipped bit "
      "in the memory of rank 0, before this step and after the one before it");
}

TEST_F(DiagnosisTest, OtherStateIsOfTheStepBeforeOrOfTheStart) {
  recorded_.fingerprints[5] += 12345;
  EXPECT_EQ(
      said(),
      "optimizer b: the optimiser's momentum went into it with other values than here (in b); the update "
      "of the step before it was computed wrongly, or memory was overwritten");
  recorded_.fingerprints[2] += 999;
  is_first_ = true;
  EXPECT_EQ(
      said(),
      "weights a: the weights went into it with other values than here (in a and 1 other); this run did "
      "not go on from x, or that was changed afterwards");
  EXPECT_TRUE(diagnose()->first_replayed);
  apart_here_ = 1;
  EXPECT_EQ(said(),
            "here : the ranks that replay it do not agree with each other; the memory or a processor of a "
            "machine here: prove again on others");
}

TEST_F(DiagnosisTest, FlippedSumIsNamed) {
  recorded_.fingerprints[1] -= word_multiplier(kGradientBuffer, 8) << 50;  // b[2]
  const auto found = diagnose();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bucket, 1);
  EXPECT_EQ(found->flipped, (FlippedBit{{2}, 50}));
  EXPECT_EQ(said(),
            "gradient b: the summed gradient had bit 50 of element [2] flipped; a flipped bit in the sums of "
            "gradients, in a rank's memory or on its way");
}

TEST_F(DiagnosisTest, OtherDataShowInAllGradients) {
  recorded_.fingerprints[0] += 12345;
  recorded_.fingerprints[1] += 999;  // backward meets it first
  const auto found = diagnose();
  ASSERT_TRUE(found);
  EXPECT_TRUE(is_of_a_share(*found, recorded_));
  const std::string text = "the summed gradient differs from the one here (of b and 1 other); ";
  EXPECT_EQ(said(),
            "gradient b: " + text +
                "a sample of this step was other data on some rank (a flipped bit, another set), or a "
                "processor computed a forward pass wrongly");
  recorded_.apart = 777;
  EXPECT_FALSE(is_of_a_share(*found, recorded_));
  EXPECT_EQ(said(),
            "gradient b: " + text +
                "a rank other than 0 had other weights, optimiser state or sums than the other ranks; "
                "an update that was computed wrongly there, or memory that was overwritten");
  recorded_.apart = word_multiplier(kOptimizerBuffer, 3) << 20;
  EXPECT_EQ(said(),
            "optimizer a: " + text +
                "on a rank other than 0, the optimiser's momentum had bit 20 of element [1, 0] flipped; "
                "a flipped bit in the memory of that rank, before this step and after the one before "
                "it");
  EXPECT_EQ(diagnose()->bucket, 2);
  EXPECT_FALSE(is_of_a_share(*diagnose(), recorded_));
}

TEST_F(DiagnosisTest, OneWrongGradientIsOfTheBackwardPass) {
  recorded_.fingerprints[0] += 12345;
  EXPECT_EQ(said(),
            "gradient a: the summed gradient differs from the one here (of a); a processor computed the "
            "backward pass wrongly, up to a");
}

TEST_F(DiagnosisTest, RankAloneIsNamed) {
  ranks_ = ranks_of_nodes(1);
  recorded_.fingerprints[0] += 12345;
  EXPECT_EQ(named_rank(), 0);
  recorded_.fingerprints[3] += word_multiplier(kWeightsBuffer, 6) << 3;
  EXPECT_EQ(
      said(),
      "weights b: the weights on rank 0 on node0 (cpu) went into it with bit 3 of element [0] flipped; a "
      "flipped bit in the memory of rank 0, before this step and after the one before it");
  ranks_->stretch.ranks.clear();
  EXPECT_EQ(named_rank(), -1);
}

/// Each of two ranks of a pipeline holds one tensor.
TEST_F(DiagnosisTest, RankOfAPipelineIsNamedByItsState) {
  ranks_ = ranks_of_nodes(2);
  ranks_->stretch.ranks[0].tensors = std::vector<std::int64_t>{0};
  ranks_->stretch.ranks[1].tensors = std::vector<std::int64_t>{1};
  recorded_.fingerprints[1] += 12345;
  EXPECT_EQ(named_rank(), -1) << "another rank may have sent what made the gradient wrong";
  recorded_.fingerprints[3] += word_multiplier(kWeightsBuffer, 6) << 3;
  EXPECT_EQ(
      said(),
      "weights b: the weights on rank 1 on node1 (cpu) went into it with bit 3 of element [0] flipped; a "
      "flipped bit in the memory of rank 1, before this step and after the one before it");
  recorded_.fingerprints[2] += 12345;
  EXPECT_EQ(named_rank(), -1) << "no rank holds both";
}

TEST_F(DiagnosisTest, RankWhoseCopyDiffersIsNamedByTheSumsOverRanks) {
  ranks_ = ranks_of_nodes(3);
  const std::uint64_t wrong = word_multiplier(kOptimizerBuffer, 3) << 20;
  recorded_.apart = wrong;
  EXPECT_EQ(
      said(),
      "optimizer a: on a rank other than 0, the optimiser's momentum had bit 20 of element [1, 0] flipped; "
      "a flipped bit in the memory of that rank, before this step and after the one before it")
      << "without the sums";
  EXPECT_EQ(diagnose()->flipped, (FlippedBit{{1, 0}, 20}));
  ranks_->sums = RankSums{.step = 5, .copies = (1 + 2 + 3) * 600 + 3 * wrong, .sums = 0};
  EXPECT_EQ(
      said(),
      "optimizer a: on rank 2 on node2 (cpu), the optimiser's momentum had bit 20 of element [1, 0] "
      "flipped; a flipped bit in the memory of that rank, before this step and after the one before it");
  recorded_.apart = 777;
  ranks_->sums->copies = (1 + 2 + 3) * 600 + 2 * recorded_.apart;
  EXPECT_EQ(
      said(),
      "ranks : rank 1 on node1 (cpu) had other weights, optimiser state or sums than the other ranks; an "
      "update that was computed wrongly there, or memory that was overwritten");
  recorded_.fingerprints[2] += 1000;
  recorded_.apart = 0;
  EXPECT_EQ(named_rank(), -1) << "all copies are alike";
  recorded_.apart = std::uint64_t{0} - 2 * 1000;
  EXPECT_EQ(named_rank(), 0) << "the two others differ from it, and are right";
}

TEST_F(DiagnosisTest, RankWithTheWrongShareIsNamed) {
  recorded_.fingerprints[0] += 5;
  recorded_.fingerprints[1] += 7;
  recorded_.fingerprints[2] += 100;
  EXPECT_EQ(sums_apart(head_, recorded_, own_), 12U);
  Discrepancy finding{.step = 5, .what = "gradient", .cause = "unknown"};
  RecordedRanks ranks = ranks_of_nodes(3);
  name_wrong_share(finding, ranks, 12, 40);
  ranks.sums = RankSums{.step = 5, .copies = 0, .sums = 40 + 7};
  name_wrong_share(finding, ranks, 12, 40);
  EXPECT_EQ(finding.cause, "unknown");
  EXPECT_FALSE(finding.rank);
  ranks.sums->sums = 40 + 2 * 12;
  name_wrong_share(finding, ranks, 12, 40);
  EXPECT_EQ(
      finding.cause,
      "rank 1 on node1 (cpu) computed wrong sums from the right weights: from other training samples, or "
      "its processor erred");
  ASSERT_TRUE(finding.rank);
  EXPECT_EQ(finding.rank->number, 1);
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

TEST_F(RunningStatisticsTest, EachTensorOfTheCheckpointAtTheEndIsCompared) {
  EXPECT_FALSE(diagnose_end());
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
  EXPECT_EQ(found->step, 5);
  EXPECT_EQ(found->text,
            "in its checkpoint, 1 element of the optimiser's momentum is not what the step left");
  EXPECT_EQ(
      found->cause,
      "memory was changed after the step and before it was saved; or the checkpoint was changed, with its "
      "checksums");
  momentum_ = checkpoint_.optimizer.front().values;
  momentum_[4] = -momentum_[4];
  EXPECT_EQ(diagnose_end()->flipped, (FlippedBit{{1, 1}, 31}));
}

TEST(BucketOfTest, TheEndOfTheArenaLeavesFirst) {
  const std::vector<std::size_t> two = {21580, 260}, one = {10}, too_many = {9, 9};
  EXPECT_EQ(bucket_of(two, 300, 21840), 1);
  EXPECT_EQ(bucket_of(two, 259, 21840), 2);
  EXPECT_EQ(bucket_of(two, 260, 21840), 1);
  EXPECT_FALSE(bucket_of(two, 21840, 21840));
  EXPECT_EQ(bucket_of(one, 0, 10), 1);
  EXPECT_FALSE(bucket_of(std::vector<std::size_t>{4}, 5, 10)) << "in none that is known";
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
  EXPECT_TRUE(claims.of_step(3).empty());
  EXPECT_EQ(claims.next_step(-1), 0);
  EXPECT_EQ(claims.next_step(0), 1);
  EXPECT_EQ(claims.next_step(2), INT64_MAX);
  const MetricsClaims lost(
      "{\"event\":\"lost\",\"step\":9}\n{\"event\":\"lost\",\"step\":5}\n{\"event\":\"straggler\",\"step\":"
      "12}\n");
  EXPECT_EQ(lost.lost_up_to(), 9);
  EXPECT_TRUE(lost.problems().empty());
}

TEST(MetricsClaimsTest, LinesThatNoRunWritesAreProblems) {
  const std::string no_event = "is not an event", after = " after those of step 2";
  for (const auto& [line, why] :
       {std::pair<const char*, std::string>("[]", no_event),
        {"nonsense", no_event},
        {R"({"event":3})", no_event},
        {R"({"event":"step","step":1})", "has step 1" + after},
        {R"({"event":"step"})", "has step null" + after},
        {R"({"event":"end","step":18446744073709551615})", "has step 18446744073709551615" + after},
        {R"({"event":"start"})", "has step 0" + after}}) {
    const MetricsClaims claims(kLines + line + "\n");
    ASSERT_EQ(claims.problems().size(), 1U) << line;
    EXPECT_EQ(claims.problems()[0].text, "line 5 of metrics.jsonl " + why);
    EXPECT_EQ(claims.problems()[0].step, 2) << line;
    EXPECT_EQ(claims.lines().size(), 3U) << line;
  }
}

TEST(MetricsClaimsTest, ARunWithoutTheFileClaimsNothing) {
  const testing::TemporaryDirectory directory;
  EXPECT_TRUE(read_claims(Env::posix(), directory.path()).text().empty());
  std::ofstream(directory.path("metrics.jsonl")) << kLines;
  EXPECT_EQ(read_claims(Env::posix(), directory.path()).lines().size(), 3U);
}

/// A replay has evaluated nothing and has no loss before the first step.
TEST(MetricsClaimsTest, OnlyTheStartIsOfStep0) {
  for (const char* event : {"step", "loss", "epoch", "end"}) {
    const MetricsClaims claims(fmt::format("{{\"event\":\"{}\",\"step\":0}}\n", event));
    ASSERT_EQ(claims.problems().size(), 1U) << event;
    EXPECT_EQ(claims.problems()[0].text, "line 1 of metrics.jsonl tells of step 0, and steps count from 1");
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
  EXPECT_EQ(differing_numbers({{"test_loss", 1.5}}, own, {}),
            std::vector<std::string>{"test_loss is 1.5, and came to null"});
  for (const std::size_t size : {78, 79}) {  // with its quotes 80 and 81
    const std::string text(size, 'x'), shown = "\"" + text + (size == 78 ? "\"" : "...");
    EXPECT_EQ(differing_numbers({{"loss", text}}, own, {}),
              std::vector<std::string>{"loss is " + shown + ", and came to 0.1"});
  }
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
      [](auto& f) { f.patience.value().best = 0.5; },
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
  CheckpointFacts same = facts;  // equal sums, with a digit that was not carried
  for (WideSum* sum : {&same.epoch_loss_units, &same.unprinted.value().loss_units})
    sum->limbs[0] += std::int64_t{1} << 32, --sum->limbs[1];
  EXPECT_TRUE(differing_facts(same, facts).empty());
  same.replayed = 7, same.bucket_plan = "other", same.world = {{"ranks", "9"}};
  EXPECT_TRUE(differing_facts(same, facts).empty()) << "for people";
}

}  // namespace
}  // namespace lockstep
