// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From fingerprints that differ to the tensor, the bit, the rank and the likely cause.
#include "kernels/cpu/ops.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/tools/prove_replay.hpp"

#include <fmt/ranges.h>

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
  EXPECT_FALSE(find_flipped_bit(0, {kGradientBuffer, 0, before.size(), 64}));
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

/// Ranks 0, 1 ... of node0, node1 ..., each of which holds all tensors.
RecordedRanks ranks_of_nodes(int count) {
  RecordedRanks ranks;
  for (int rank = 0; rank < count; ++rank)
    ranks.stretch.ranks.push_back({.host = "node" + std::to_string(rank), .device = "cpu"});
  return ranks;
}

const std::string kBefore = ", before this step and after the one before it";

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

  std::optional<Discrepancy> diagnose() {
    return diagnose_step(
        {head_, parameters_, {4, 6}}, recorded_,
        {.step = 5, .fingerprints = own_, .apart = apart_here_, .first_replayed = is_first_, .start = "x"},
        ranks_);
  }
  /// "what tensor, bucket, bit: text; cause", and what a replay of all shares would tell.
  std::string said() {
    const auto found = diagnose();
    if (!found) return "nothing";
    EXPECT_EQ(found->step, 5);
    std::string place = found->what + " " + found->parameter;
    if (found->bucket) place += fmt::format(", bucket {}", *found->bucket);
    if (found->flipped)
      place += fmt::format(", [{}] bit {}", fmt::join(found->flipped->index, ", "), found->flipped->bit);
    return fmt::format("{}: {}; {}{}", place, found->text, found->cause,
                       is_of_a_share(*found, recorded_) ? " (a share)" : "");
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

TEST_F(DiagnosisTest, StateComesBeforeGradientsAndRankZeroBeforeTheOthers) {
  const std::uint64_t bit_of_momentum = word_multiplier(kOptimizerBuffer, 3) << 20;
  const std::string sums = "the summed gradient differs from the one here (of b and 1 other); ",
                    momentum =
                        "on a rank other than 0, the optimiser's momentum had bit 20 of element [1, 0] "
                        "flipped; a flipped bit in the memory of that rank" +
                        kBefore,
                    ranks =
                        "a rank other than 0 had other weights, optimiser state or sums than the other "
                        "ranks; an update that was computed wrongly there, or memory that was overwritten";
  const struct {
    std::map<std::size_t, std::uint64_t> changed;  ///< fingerprints, by so much
    std::uint64_t apart;
    std::string words;
  } rows[] = {
      {{}, 0, "nothing"},
      {{{2, word_multiplier(kWeightsBuffer, 4) << 9}, {0, 12345}},
       0,
       "weights a, bucket 2, [1, 1] bit 9: the weights on rank 0 went into it with bit 9 of element [1, 1] "
       "flipped; a flipped bit in the memory of rank 0" +
           kBefore},
      {{{5, 12345}},
       0,
       "optimizer b, bucket 1: the optimiser's momentum went into it with other values than here (in b); the "
       "update of the step before it was computed wrongly, or memory was overwritten"},
      {{{1, std::uint64_t{0} - (word_multiplier(kGradientBuffer, 8) << 50)}},
       0,
       "gradient b, bucket 1, [2] bit 50: the summed gradient had bit 50 of element [2] flipped; a flipped "
       "bit "
       "in the sums of gradients, in a rank's memory or on its way (a share)"},
      {{{1, std::uint64_t{1} << 63}},  // a bit of any element
       0,
       "gradient b, bucket 1, [0] bit 63: the summed gradient had bit 63 of element [0] flipped; a flipped "
       "bit in the sums of gradients, in a rank's memory or on its way (a share)"},
      {{{2, word_multiplier(kWeightsBuffer, 4) << 31}},
       0,
       "weights a, bucket 2, [1, 1] bit 31: the weights on rank 0 went into it with bit 31 of element [1, 1] "
       "flipped; a flipped bit in the memory of rank 0" +
           kBefore},
      {{{2, word_multiplier(kWeightsBuffer, 4) << 32}},  // a word of weights has 32
       0,
       "weights a, bucket 2: the weights went into it with other values than here (in a); the update of the "
       "step before it was computed wrongly, or memory was overwritten"},
      {{{0, 12345}, {1, 999}},  // backward meets b first
       0,
       "gradient b, bucket 1: " + sums +
           "a sample of this step was other data on some rank (a flipped bit, another set), or a processor "
           "computed a forward pass wrongly (a share)"},
      {{{0, 12345}, {1, 999}}, 777, "gradient b, bucket 1: " + sums + ranks},
      {{{0, 12345}, {1, 999}}, bit_of_momentum, "optimizer a, bucket 2, [1, 0] bit 20: " + sums + momentum},
      {{{0, 12345}},
       0,
       "gradient a, bucket 2: the summed gradient differs from the one here (of a); a processor computed the "
       "backward pass wrongly, up to a (a share)"},
      {{}, bit_of_momentum, "optimizer a, bucket 2, [1, 0] bit 20: " + momentum},
      {{}, 777, "ranks : " + ranks}};
  for (const auto& [changed, apart, words] : rows) {
    recorded_.fingerprints = own_;
    for (const auto& [slot, by] : changed) recorded_.fingerprints[slot] += by;
    recorded_.apart = apart;
    EXPECT_EQ(said(), words);
  }
}

TEST_F(DiagnosisTest, OtherStateOfTheFirstStepIsOfTheStart) {
  recorded_.fingerprints[2] += 999;
  recorded_.fingerprints[5] += 12345;
  is_first_ = true;
  EXPECT_EQ(
      said(),
      "weights a, bucket 2: the weights went into it with other values than here (in a and 1 other); this "
      "run did not go on from x, or that was changed afterwards");
  EXPECT_TRUE(diagnose()->first_replayed);
  apart_here_ = 1;
  EXPECT_EQ(said(),
            "here : the ranks that replay it do not agree with each other; the memory or a processor of a "
            "machine here: prove again on others");
}

TEST_F(DiagnosisTest, RankAloneIsNamed) {
  ranks_ = ranks_of_nodes(1);
  recorded_.fingerprints[0] += 12345;
  EXPECT_EQ(named_rank(), 0);
  recorded_.fingerprints[3] += word_multiplier(kWeightsBuffer, 6) << 3;
  EXPECT_EQ(said(),
            "weights b, bucket 1, [0] bit 3: the weights on rank 0 on node0 (cpu) went into it with bit 3 of "
            "element [0] flipped; a flipped bit in the memory of rank 0" +
                kBefore);
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
  EXPECT_EQ(said(),
            "weights b, bucket 1, [0] bit 3: the weights on rank 1 on node1 (cpu) went into it with bit 3 of "
            "element [0] flipped; a flipped bit in the memory of rank 1" +
                kBefore);
  recorded_.fingerprints[2] += 12345;
  EXPECT_EQ(named_rank(), -1) << "no rank holds both";
}

TEST_F(DiagnosisTest, RankWhoseCopyDiffersIsNamedByTheSumsOverRanks) {
  ranks_ = ranks_of_nodes(3);
  const std::uint64_t wrong = word_multiplier(kOptimizerBuffer, 3) << 20;
  recorded_.apart = wrong;
  EXPECT_EQ(named_rank(), -1) << "without the sums";
  ranks_->sums = RankSums{.step = 5, .copies = (1 + 2 + 3) * 600 + 3 * wrong, .sums = 0};
  EXPECT_EQ(
      said(),
      "optimizer a, bucket 2, [1, 0] bit 20: on rank 2 on node2 (cpu), the optimiser's momentum had bit 20 "
      "of element [1, 0] flipped; a flipped bit in the memory of that rank" +
          kBefore);
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
    checkpoint_.weights = weights_ = some_floats(13);
    momentum_ = some_floats(10);
    checkpoint_.optimizer = {{"momentum", momentum_}};
  }
  std::optional<Discrepancy> diagnose_end() const {
    return diagnose_state({head_, parameters_, {}}, checkpoint_, weights_, {momentum_});
  }
  /// "tensor: text"
  std::string said_of_end() const {
    const auto found = diagnose_end();
    return found ? found->parameter + ": " + found->text : "nothing";
  }

  CheckpointState checkpoint_;
  std::vector<float> weights_, momentum_;
};

TEST_F(RunningStatisticsTest, FlippedBitInAStepIsNamed) {
  recorded_.fingerprints[4] += word_multiplier(kWeightsBuffer, 11) << 7;
  EXPECT_EQ(
      said(),
      "weights bn.running_mean, [1] bit 7: the weights on rank 0 went into it with bit 7 of element [1] "
      "flipped; a flipped bit in the memory of rank 0" +
          kBefore);
}

TEST_F(RunningStatisticsTest, EachTensorOfTheCheckpointAtTheEndIsCompared) {
  EXPECT_EQ(said_of_end(), "nothing");
  for (const auto& [word, name] :
       {std::pair<std::size_t, const char*>{5, "a"}, {9, "b"}, {12, "bn.running_mean"}}) {
    weights_[word] += 5;
    EXPECT_EQ(said_of_end(),
              fmt::format("{}: in its checkpoint, 1 element of the weights is not what the step left", name));
    weights_ = checkpoint_.weights;
  }
  weights_[6] += 5, weights_[7] += 5;
  EXPECT_EQ(said_of_end(), "b: in its checkpoint, 2 elements of the weights are not what the step left");
  weights_ = checkpoint_.weights;
  weights_[6] = -weights_[6];
  EXPECT_EQ(said_of_end(), "b: in its checkpoint, bit 31 of element [0] of the weights is flipped");
  weights_ = checkpoint_.weights;
  momentum_[3] += 1;
  EXPECT_EQ(said_of_end(),
            "a: in its checkpoint, 1 element of the optimiser's momentum is not what the step left");
  const auto found = diagnose_end();
  EXPECT_EQ(fmt::format("{} {}: {}", found->what, found->step, found->cause),
            "checkpoint 5: memory was changed after the step and before it was saved; or the checkpoint was "
            "changed, "
            "with its checksums");
  momentum_ = checkpoint_.optimizer.front().values;
  momentum_[4] = -momentum_[4];
  EXPECT_EQ(diagnose_end()->flipped, (FlippedBit{{1, 1}, 31}));
  checkpoint_.optimizer.clear();
  EXPECT_EQ(said_of_end(), "nothing") << "of buffers that both have";
}

}  // namespace
}  // namespace lockstep
