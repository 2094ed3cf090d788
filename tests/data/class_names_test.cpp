// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Classes matched by name, and labels that get other numbers.
#include "data/sets/class_names.hpp"

#include "common/digest.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "data/set_fingerprints.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::class_names_test {
namespace {

using Names = std::vector<std::string>;

TEST(ClassNamesTest, PlacesAreThoseOfTheKnownNames) {
  const ClassMatch match = match_classes({"cat", "dog", "owl"}, {"owl", "bee", "cat"});
  EXPECT_EQ(match.places, (std::vector<std::int32_t>{2, -1, 0}));
  EXPECT_EQ(match.unknown, Names{"bee"});
  EXPECT_EQ(match.missing, Names{"dog"});
  EXPECT_FALSE(match.is_identity());
  EXPECT_TRUE(match_classes({"cat", "dog"}, {"cat", "dog"}).is_identity());
  EXPECT_FALSE(match_classes({"cat", "dog"}, {"cat"}).is_identity());
  EXPECT_FALSE(match_classes({"cat", "dog"}, {"dog", "cat"}).is_identity());
  EXPECT_FALSE(match_classes({"cat"}, {"cat", "dog"}).is_identity());
}

TEST(ClassNamesTest, NumbersFromZeroOnAreNoNames) {
  EXPECT_TRUE(are_only_numbers({}));
  EXPECT_TRUE(are_only_numbers({"0", "1", "2"}));
  EXPECT_FALSE(are_only_numbers({"1", "2", "3"}));
  EXPECT_FALSE(are_only_numbers({"0", "cat"}));
}

TEST(ClassNamesTest, LabelsOfAllHalvesGetTheNumbersOfTheKnown) {
  TrainTestData data;
  data.class_names = {"owl", "cat"};
  data.train.labels = {0, 1, 1};
  data.test.labels = {1, 0};
  data.validation.labels = {0};
  data.test.file_fingerprint.emplace();
  data.test.quick.samples = "of files on disk";
  const Names known = {"cat", "dog", "owl"};
  renumber_classes(data, known, match_classes(known, data.class_names));
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{2, 0, 0}));
  EXPECT_EQ(data.test.labels, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(data.validation.labels, std::vector<std::int32_t>{2});
  EXPECT_EQ(data.test.classes, 3);
  EXPECT_EQ(data.class_names, known);
  EXPECT_EQ(data.test.quick, (Fingerprint{"of files on disk", quick_fingerprint_of(data.test).labels}));
  EXPECT_FALSE(data.test.file_fingerprint.has_value());
  for (const Names& others : {Names{"owl"}, Names{"owl", "cat", "bee"}})
    EXPECT_THROW(renumber_classes(data, known, match_classes(known, others)), InternalError);
}

TEST(ClassNamesTest, SetsOfLabelsAreRenumberedColumnByColumn) {
  TrainTestData data;
  data.class_names = {"owl", "cat"};
  for (Dataset* half : {&data.train, &data.test}) {
    half->classes = 2;
    half->labels = {1, 0};
    half->label_sets = {1, 0, /**/ 1, 1};
  }
  const Names known = {"cat", "owl"};
  renumber_classes(data, known, match_classes(known, data.class_names));
  EXPECT_EQ(data.train.label_sets, (std::vector<std::uint8_t>{0, 1, /**/ 1, 1}));
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{1, 0}));
  const std::string file = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, /**/ 1, 1, /**/ 0, 1};
  EXPECT_EQ(fingerprint_of(data.train).labels, hex(sha256(std::as_bytes(std::span(file)))));
  const Fingerprint quick = quick_fingerprint_of(data.train);
  data.train.label_sets[0] = 1;
  EXPECT_NE(quick_fingerprint_of(data.train).labels, quick.labels);
}

TEST(ClassNamesTest, OfManyNamesTheFirstAreShown) {
  EXPECT_EQ(first_names({"cat", "dog"}), "cat, dog");
  EXPECT_EQ(first_names(Names(10, "owl")), "owl, owl, owl, owl, owl, owl, owl, owl, owl, owl");
  EXPECT_EQ(first_names(Names(11, "owl")), "owl, owl, owl, owl, owl, owl, owl, owl, owl, owl, ...");
}

}  // namespace
}  // namespace lockstep::class_names_test
