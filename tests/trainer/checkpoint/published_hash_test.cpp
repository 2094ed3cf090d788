// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Digest of a computation: all that decides weights changes it, nothing else does; the shipped table is whole.
#include "trainer/checkpoint/published_hash.hpp"

#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/checkpoint/inspect.hpp"

namespace lockstep {
namespace {

CheckpointFacts facts_of_a_run() {
  CheckpointFacts facts;
  facts.step = 12;
  facts.job = {{"model", "net"},
               {"parallel.determinism", "world"},
               {"train.initial_weights", "\"\""},
               {"train.seed", "7"}};
  facts.model = {{"yaml", "layers: [linear: 10]"}, {"mean", "0.1"}};
  facts.data = {{"train_samples_sha256", "aa"}, {"train_labels_sha256", "bb"}, {"directory", "/here"}};
  facts.world = {{"ranks", "2"}, {"device", "cpu (AVX2)"}, {"kernels", "native"}};
  return facts;
}

std::string row_text(const std::string& computation, const std::string& weights) {
  return "# a comment\n\n" + computation + " 12 " + weights + " the linear job, 3 epochs\n";
}

TEST(PublishedHashTest, WhatDecidesWeightsIsAnotherComputationAndWhereItRunsIsNot) {
  std::set<std::string> digests = {computation_digest(facts_of_a_run())};
  const std::function<void(CheckpointFacts&)> changes[] = {
      [](CheckpointFacts& f) { f.job["train.seed"] = "8"; },
      [](CheckpointFacts& f) { f.job["train.seed "] = "7"; },
      [](CheckpointFacts& f) { f.model["yaml"] += " "; },
      [](CheckpointFacts& f) { f.data["train_samples_sha256"] = "cc"; },
      [](CheckpointFacts& f) { f.data["train_labels_sha256"] = "cc"; },
      [](CheckpointFacts& f) { ++f.arithmetic.version; },
  };
  for (const auto& change : changes) {
    CheckpointFacts facts = facts_of_a_run();
    change(facts);
    EXPECT_TRUE(digests.insert(computation_digest(facts)).second);
  }
  EXPECT_EQ(digests.begin()->size(), 64U);
  CheckpointFacts facts = facts_of_a_run();
  facts.world = {{"ranks", "13"}, {"device", "emulated"}, {"kernels", "native"}};
  facts.data["directory"] = "/there";
  facts.job["model"] = "./my_net.yaml";
  facts.test_accuracy = 0.5;
  EXPECT_EQ(computation_digest(facts), computation_digest(facts_of_a_run()));
}

TEST(PublishedHashTest, InspectShowsTheDigestAndTensorsWithoutElements) {
  CheckpointState state{.facts = facts_of_a_run(), .weights = {}};
  state.facts.parameters = {{"none", {0}}};
  test::expect_words(inspect_checkpoint("p", state),
                     {"\ncomputation    " + computation_digest(state.facts) + "\nbuckets",
                      fmt::format("\n{:27} {:17} no elements\n", "none", "[0]")});
}

TEST(PublishedHashTest, NothingIsSaidWhereNothingIsPromisedOrNotAllIsKnown) {
  const std::function<void(CheckpointFacts&)> changes[] = {
      [](CheckpointFacts& f) { f.arithmetic.version = 1; },
      [](CheckpointFacts& f) { f.arithmetic.since = 5; },
      [](CheckpointFacts& f) { f.job["parallel.determinism"] = "off"; },
      [](CheckpointFacts& f) { f.job.erase("parallel.determinism"); },
      [](CheckpointFacts& f) { f.world["kernels"] = "vendor"; },
      [](CheckpointFacts& f) { f.job["train.initial_weights"] = "weights.safetensors"; },
      [](CheckpointFacts& f) { f.data.erase("train_samples_sha256"); },
      [](CheckpointFacts& f) { f.data.erase("train_labels_sha256"); },
      [](CheckpointFacts& f) { f.average = "ema"; },
  };
  for (const auto& change : changes) {
    CheckpointFacts facts = facts_of_a_run();
    change(facts);
    EXPECT_EQ(computation_digest(facts), "");
    EXPECT_FALSE(find_published({{"", 12, std::string(64, 'a'), "an empty row"}}, facts));
  }
}

TEST(PublishedHashTest, ARowIsFoundByComputationAndStep) {
  CheckpointFacts facts = facts_of_a_run();
  const std::string weights(64, 'e');
  const auto table = read_published_hashes(row_text(computation_digest(facts), weights), "hashes.txt");
  const auto found = find_published(table, facts);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->weights, weights);
  EXPECT_EQ(found->what, "the linear job, 3 epochs");
  facts.step = 13;
  EXPECT_FALSE(find_published(table, facts));
}

TEST(PublishedHashTest, LinesThatAreNoRowsAreNamed) {
  const std::string a(64, 'a'), b(64, 'b');
  for (const std::string& line :
       {a, a + " 12 " + b, a + " 12x " + b + " w", a + " 0 " + b + " w", a + " -3 " + b + " w",
        a.substr(1) + " 12 " + b + " w", a + " 12 " + std::string(64, 'G') + " w",
        a + "  99999999999999999999 " + b + " w", std::string("\0 \xff", 3)}) {
    test::expect_error<DataError>(
        [&] { read_published_hashes("# one\n" + line + "\n", "hashes.txt"); },
        {"hashes.txt:2: no row of published hashes (COMPUTATION STEP WEIGHTS what it "
         "is); bring the file back as it was"});
  }
}

TEST(PublishedHashTest, TheTableThatShipsIsWholeAndSaysEverythingOnce) {
  const auto table = published_hashes();
  ASSERT_FALSE(table.empty());
  std::set<std::string> seen;
  for (const PublishedHash& row : table)
    EXPECT_TRUE(seen.insert(row.computation + std::to_string(row.step)).second) << row.what;
}

TEST(PublishedHashTest, WhatWasNotPublishedIsNotSpokenOf) {
  const auto comparison = compare_with_published(facts_of_a_run(), std::string(64, 'e'));
  EXPECT_FALSE(comparison.same);
  EXPECT_EQ(comparison.line, "");
}

}  // namespace
}  // namespace lockstep
