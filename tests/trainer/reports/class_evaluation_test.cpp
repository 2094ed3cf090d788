// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Counts and surest mistakes are those of a plain loop, for any number of ranks and threads.
#include "trainer/reports/class_evaluation.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "models/network.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/reports/run_folder.hpp"

namespace lockstep {
namespace {

constexpr int kClasses = 3;
const std::vector<std::string> kNames = {"cat", "dog", "cow"};

/// The features are the logits. Class i % 3 leads by i % 7, and every fifth label is the class after it.
Dataset every_fifth_is_wrong(std::int64_t samples) {
  Dataset set;
  set.name = "made test";
  set.shape = {kClasses, 1, 1};
  set.classes = kClasses;
  set.features = AlignedBuffer<float>(static_cast<std::size_t>(kClasses * samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    set.features.data()[kClasses * i + i % kClasses] = static_cast<float>(i % 7 + 1);
    set.labels.push_back(static_cast<std::int32_t>((i + (i % 5 == 0 ? 1 : 0)) % kClasses));
  }
  return set;
}

/// Its outputs are its inputs.
SavedModel unit_model(LossKind loss) {
  SavedModel model{.network = Network::parse("layers:\n  - flatten\n  - linear: classes\n", "three.yaml",
                                             {kClasses, 1, 1}, kClasses),
                   .weights = AlignedBuffer<float>(kClasses * (kClasses + 1)),
                   .data = {},
                   .loss = loss,
                   .grain = 4,
                   .checkpoint = ""};
  for (const std::size_t diagonal : {0, 4, 8}) model.weights[diagonal] = 1;
  return model;
}

struct Sharing {
  int ranks = 1, threads = 1, asked_rank = 0;
};

ClassEvaluation found_in(const Dataset& set, const Sharing& sharing = {},
                         LossKind loss = LossKind::kCrossEntropy) {
  const SavedModel model = unit_model(loss);
  ClassEvaluation found;
  run_thread_ranks(sharing.ranks, [&](Communicator& comm) {
    const auto all = over_all(
        comm, evaluate_classes(model, set, sharing.threads, {.rank = comm.rank(), .ranks = comm.size()}));
    if (comm.rank() == sharing.asked_rank) found = all;
  });
  return found;
}

TEST(ClassEvaluationTest, CountsAreThoseOfAPlainLoop) {
  const Dataset set = every_fifth_is_wrong(203);
  const ClassEvaluation found = found_in(set);
  std::vector<std::int64_t> expected(kClasses * (kClasses + 1));
  for (std::size_t i = 0; i < set.labels.size(); ++i)
    ++expected[static_cast<std::size_t>(set.labels[i]) * (kClasses + 1) + i % kClasses];
  EXPECT_EQ(found.counts, expected);
  EXPECT_EQ(found.samples(), 203);
  EXPECT_EQ(found.correct(), 203 - 41);
  EXPECT_EQ(found.most_taken_for(1), 0);
  const auto right = static_cast<double>(expected[kClasses + 2]);
  EXPECT_DOUBLE_EQ(*found.recall(1), right / static_cast<double>(found.samples(1)));
  EXPECT_DOUBLE_EQ(*found.precision(1), right / static_cast<double>(found.answers(1)));
}

TEST(ClassEvaluationTest, TheFirstAmongEqualOutputsIsTheAnswer) {
  Dataset set = every_fifth_is_wrong(3);
  std::ranges::copy(std::array<float, 9>{2, 2, 1, 1, 2, 2, 3, 3, 3}, set.features.data());
  set.labels = {0, 2, 0};
  const ClassEvaluation found = found_in(set);
  EXPECT_EQ(found.counts, (std::vector<std::int64_t>{2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}));
}

/// Five cats: one is taken for a dog, one for a cow. Three dogs: one has no answer. There is no cow.
TEST(ClassEvaluationTest, TablesHaveTheNumbersOfACalculationByHand) {
  const ClassEvaluation found{.classes = kClasses, .counts = {3, 1, 1, 0, 0, 2, 0, 1, 0, 0, 0, 0}};
  EXPECT_EQ(found.most_taken_for(0), 1) << "the first among equals";
  test::expect_words(
      testing::single_spaced(classes_text(found, kNames)),
      {"\n class samples right precision recall F1 most often mistaken for\n"
       " cat 5 3 100.00 % 60.00 % 75.00 % dog (1)\n"
       " dog 3 2 66.67 % 66.67 % 66.67 % -\n"
       " cow 0 0 0.00 % - 0.00 % -\n"
       " without an answer, since outputs are NaN: 1\n",
       "\n class cat dog cow\n cat 3 1 1\n dog . 2 .\n cow . . .\nno mistake has finite outputs to show\n"});
  const auto json = classes_json(found, kNames);
  EXPECT_EQ(json["classes"][0], nlohmann::ordered_json::parse(
                                    R"({"name": "cat", "samples": 5, "correct": 3, "precision": 1.0,
                                        "recall": 0.6, "f1": 0.75})"));
  EXPECT_EQ(json["confusion"], nlohmann::ordered_json::parse("[[3, 1, 1], [0, 2, 0], [0, 0, 0]]"));
  EXPECT_EQ(json["without_answer"], 1);
  const ClassEvaluation nothing{.classes = 1, .counts = {0, 0}};
  EXPECT_EQ(classes_text(nothing, {"abcdefghijk"}), R"(classes:
  class        samples  right  precision  recall  F1  most often mistaken for
  abcdefghijk        0      0          -       -   -                        -
answers, a row for each class of the data:
  class        abcdefghij
  abcdefghijk           .
no mistakes
)");
  EXPECT_TRUE(classes_json(nothing, kNames)["classes"][0]["recall"].is_null());
}

TEST(ClassEvaluationTest, OnlyTheFirstMistakesAndNoWideMatrixAreText) {
  for (const int classes : {20, 21}) {
    ClassEvaluation found{.classes = classes, .counts = {}};
    found.counts.resize(static_cast<std::size_t>(classes * (classes + 1)));
    for (std::int64_t i = 1; i <= 11; ++i)
      found.mistakes.push_back({.sample = 100 * i, .label = 1, .answer = 0, .scores = {0.5F}});
    const std::string text =
        classes_text(found, std::vector<std::string>(static_cast<std::size_t>(classes), "name"));
    EXPECT_EQ(text.find("answers, a row for each class") != text.npos, classes == 20);
    EXPECT_NE(text.find("  sample 1000: name mistaken for name, 50.00 % sure\n"), text.npos) << text;
    EXPECT_EQ(text.find("sample 1100"), text.npos) << text;
  }
}

TEST(ClassEvaluationTest, TheSurestMistakesComeFirstAndNoMoreThanASquareOfThem) {
  Dataset set = every_fifth_is_wrong(1001);
  const ClassEvaluation found = found_in(set);
  ASSERT_EQ(found.mistakes.size(), 36U);
  // The lead is 7 in samples 6, 13, 20, ...; of these, every fifth is wrong: 20, 55, ..., 1000.
  for (std::size_t i = 0; i < found.mistakes.size(); ++i)
    EXPECT_EQ(found.mistakes[i].sample % 35 == 20, i < 29) << i;
  for (std::size_t i = 1; i < found.mistakes.size(); ++i) {
    const Mistake &before = found.mistakes[i - 1], &one = found.mistakes[i];
    EXPECT_GE(std::pair(before.sureness(), one.sample), std::pair(one.sureness(), before.sample)) << i;
  }
  const Mistake& first = found.mistakes.front();
  EXPECT_EQ(first.answer, first.sample % kClasses);
  EXPECT_EQ(first.label, (first.sample + 1) % kClasses);
  EXPECT_NEAR(first.sureness(), std::exp(7) / (std::exp(7) + 2), 1e-6);
  for (std::size_t i = 0; i < set.features.size(); ++i)  // no two are as sure
    set.features[i] *= 1 + 1e-4F * static_cast<float>(i);
  EXPECT_EQ(found_in(set, {3, 1, 0}).mistakes.size(), 36U);
}

TEST(ClassEvaluationTest, NoRanksShareShows) {
  for (const std::int64_t samples : {1001, 7, 3}) {
    const Dataset set = every_fifth_is_wrong(samples);
    const ClassEvaluation alone = found_in(set);
    for (const Sharing& sharing : {Sharing{1, 3, 0}, {2, 1, 1}, {3, 2, 0}, {5, 1, 4}}) {
      SCOPED_TRACE(fmt::format("{} samples, {} ranks", samples, sharing.ranks));
      const ClassEvaluation found = found_in(set, sharing);
      EXPECT_EQ(found.counts, alone.counts);
      EXPECT_EQ(classes_json(found, kNames), classes_json(alone, kNames));
    }
  }
}

/// The features are the outputs; where they are negative, the surest mistakes are those nearest to 0.
TEST(ClassEvaluationTest, OutputsAndSigmoidsAreCalledSo) {
  Dataset set = every_fifth_is_wrong(101);
  for (float& feature : set.features.span()) feature -= 100;
  const ClassEvaluation outputs = found_in(set, {}, LossKind::kMeanSquares);
  const ClassEvaluation shared = found_in(set, {3, 2, 1}, LossKind::kMeanSquares);
  const auto json = classes_json(outputs, kNames);
  EXPECT_EQ(json, classes_json(shared, kNames));
  EXPECT_EQ(json["scores"], "outputs");
  EXPECT_EQ(json["mistakes"][0]["outputs"][outputs.mistakes[0].answer], -93);
  EXPECT_FALSE(json["mistakes"][0].contains("probabilities"));
  EXPECT_NE(classes_text(outputs, kNames).find(", output -93.000\n"), std::string::npos);
  for (float& feature : set.features.span()) feature += 100;
  const ClassEvaluation sigmoids = found_in(set, {}, LossKind::kBinaryCrossEntropy);
  EXPECT_EQ(sigmoids.counts, outputs.counts);
  EXPECT_EQ(classes_json(sigmoids, kNames)["scores"], "sigmoid");
  EXPECT_NEAR(sigmoids.mistakes.front().sureness(), 1 / (1 + std::exp(-7)), 1e-6);
}

TEST(ClassEvaluationTest, OutputsThatAreNaNAreNoAnswer) {
  Dataset set = every_fifth_is_wrong(8);
  set.features.data()[3 * 2] = std::numeric_limits<float>::quiet_NaN();
  const ClassEvaluation found = found_in(set);
  EXPECT_EQ(found.answers(kClasses), 1);
  EXPECT_EQ(found.samples(), 8);
}

/// Six training samples in the files; two are held out and one is left out. Of three test samples one is left
/// out; the lists name the pictures of both halves.
TEST(ClassEvaluationTest, MistakesAreNamedByTheirPlaceInTheFile) {
  const testing::RunFolders folders;
  TrainTestData data;
  data.directory = folders.root();
  data.train.labels.resize(3), data.validation.labels.resize(2), data.test.labels.resize(2);
  data.train.places = {1, 4, 5}, data.validation.places = {0, 3}, data.test.places = {0, 2};
  data.files = {.fingerprints = {}, .train = 6, .test = 3};
  folders.write("train-names.jsonl", "\"a\"\n\"b\"\n\"c\"\n\"d\"\n\"e\"\n\"f\"\n");
  folders.write("test-names.jsonl", "\"x\"\n\"y\"\n\"z\"\n");
  const auto located = [&](const Dataset& part) {
    ClassEvaluation found;
    found.mistakes.resize(1);
    found.mistakes[0].sample = 1;
    EXPECT_EQ(locate_mistakes(found, data, part), "");
    return fmt::format("{} {}", found.mistakes[0].sample, found.mistakes[0].picture);
  };
  EXPECT_EQ(located(data.train), "4 e");
  EXPECT_EQ(located(data.validation), "3 d");
  EXPECT_EQ(located(data.test), "2 z");
}

TEST(ClassEvaluationTest, ItIsLeftWhereThereIsNoTime) {
  const SavedModel model = unit_model(LossKind::kCrossEntropy);
  const Dataset set = every_fifth_is_wrong(100);
  EXPECT_FALSE(evaluate_classes(model, set, 1).interrupted);
  EXPECT_TRUE(evaluate_classes(model, set, 1, {}, [] { return true; }).interrupted);
}

/// A million classes have 10^12 counts for each thread; the network is not asked.
TEST(ClassEvaluationTest, CountsThatDoNotFitAreRefusedInASentence) {
  const SavedModel model = unit_model(LossKind::kCrossEntropy);
  Dataset set = every_fifth_is_wrong(5);
  set.classes = 1'000'000;
  test::expect_error<MemoryError>([&] { evaluate_classes(model, set, 1); },
                                  {"counting answers to each of 1,000,000 classes", "leave the classes out"});
}

}  // namespace
}  // namespace lockstep
