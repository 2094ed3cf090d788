// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Classes are the same where they have the same name: in evaluation, resume, proof and weights to start from.
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <regex>

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::idx_header;
using test::operator+;  // NOLINT(misc-unused-using-decls): clang-tidy does not see operators

/// Images of 4 x 4 in which the row that is lit tells the label.
void write_half(const std::string& start, const Bytes& labels, const std::vector<int>& lit_row_of) {
  const auto count = static_cast<std::uint32_t>(labels.size());
  Bytes images;
  for (const std::uint8_t label : labels)
    for (int pixel = 0; pixel < 16; ++pixel) images.push_back(pixel / 4 == lit_row_of[label] ? 250 : 5);
  test::write_file(start + "-images-idx3-ubyte", idx_header({count, 4, 4}) + images);
  test::write_file(start + "-labels-idx1-ubyte", idx_header({count}) + labels);
}

class ClassNamesTest : public JobTest {
 protected:
  ClassNamesTest() { write_set("own", {0, 1, 2}, "cat\ndog\neagle\n"); }

  /// @param lit_row_of  [label]
  void write_set(const std::string& name, const std::vector<int>& lit_row_of,
                 const std::string& names) const {
    Bytes labels;
    for (int i = 0; i < 24; ++i) labels.push_back(static_cast<std::uint8_t>(i % std::ssize(lit_row_of)));
    write_half(path(name) + "/train", labels, lit_row_of);
    write_half(path(name) + "/t10k", labels, lit_row_of);
    write_names(name, names);
  }
  /// @param names  "": the set has none
  void write_names(const std::string& name, const std::string& names) const {
    if (names.empty())
      fs::remove(path(name) + "/classes.txt");
    else
      write_text(path(name) + "/classes.txt", names);
  }
  Outcome train(const std::string& run, const std::string& more = "") const {
    write_job("model: linear\ndata: {set: idx, global_batch: 8, root: " + path("own") +
              "}\ntrain: {epochs: 8, optimizer: {lr: 0.5}}\n"
              "parallel: {device: cpu, grain: 4, backend: thread}\n");
    return JobTest::train(run, more);
  }
  void train_well(const std::string& run, const std::string& more = "") const {
    expect_says(train(run, more), 0, {"accuracy 100.00 %"});
  }
};

TEST_F(ClassNamesTest, OtherSetsAreJudgedByName) {
  struct Other {
    std::vector<int> lit_row_of;
    std::string names;
    int exit_code;
    std::vector<std::string> says;
  };
  const Other others[] = {
      {{2, 1}, "eagle\ndog\n", 0, {"accuracy 100.00 % (24 of 24)", "by name, no samples of cat"}},
      {{1, 3, 0}, "dog\nowl\ncat\n", 2, {"does not know owl, only cat, dog, eagle", path("other")}},
      {{0, 1, 2}, "", 0, {"accuracy 100.00 %", "go by number, since one side has no names"}},
      {{0, 1, 2, 3}, "", 2, {"idx test has 4 classes, and " + path("run"), " was trained on 3"}},
      {{2, 0, 1},
       "eagle\ncat\ndog\n",
       0,
       {"accuracy 100.00 % (24 of 24)", "the name of class 0 (cat then, eagle now)", "matched by name"}}};
  train_well("run");
  const std::string judge = fmt::format("eval {} --data {}", path("run"), path("other"));
  for (const Other& other : others) {
    write_set("other", other.lit_row_of, other.names);
    expect_says(lockstep(judge + " --classes"), other.exit_code, other.says);
  }
  expect_says(lockstep_on_ranks(3, judge), 0, {"accuracy 100.00 % (24 of 24)", "matched by name"});
}

TEST_F(ClassNamesTest, ChangedNamesAreAChangedSet) {
  train_well("run");
  write_names("own", "dog\ncat\neagle\n");
  const std::string words = "the name of class 0 (cat then, dog now)";
  expect_says(train("run", "train.epochs=9"), 65, {words, "run.resume=never"});
  expect_says(lockstep("eval " + path("run")), 65, {words});
  expect_says(lockstep("prove " + path("run")), 65, {words});
  write_names("own", "cat\ndog\neagle\n");
  expect_says(train("run", "train.epochs=9"), 0, {"going on from step 24"});
}

/// Once: from the next checkpoint on they are the run's.
TEST_F(ClassNamesTest, RunWithoutNamesTakesThoseOfTheSetAndSaysSo) {
  write_names("own", "");
  train_well("run");
  write_names("own", "cat\ndog\neagle\n");
  expect_says(
      train("run", "train.epochs=9"), 0,
      {"its classes had no names, and have those of " + path("own") + " from here on: cat, dog, eagle"});
  const Outcome again = train("run", "train.epochs=10");
  expect_says(again, 0, {"going on from step 27"});
  EXPECT_EQ(again.out.find("had no names"), again.out.npos);
  write_names("own", "cat\nowl\neagle\n");
  expect_says(train("run", "train.epochs=11"), 65, {"the name of class 1 (dog then, owl now)"});
}

TEST_F(ClassNamesTest, WeightsToStartFromAnswerForTheSameNames) {
  train_well("first");
  write_set("own", {1, 2, 0}, "dog\neagle\ncat\n");
  const std::string start = "train.epochs=1 train.optimizer.lr=1e-9 train.initial_weights=" + path("first");
  expect_says(train("second", start), 0, {"rows are put in the order of the set's classes, by name"});
  expect_says(lockstep("eval " + path("second")), 0, {"accuracy 100.00 % (24 of 24)"});
  expect_says(lockstep("prove " + path("second")), 0);
  write_names("own", "dog\nowl\ncat\n");
  expect_says(train("third", start), 0,
              {"note: they answer for cat, dog, eagle, and the set's classes are dog, owl, cat"});
}

TEST_F(ClassNamesTest, MixedImagesAreLabelledByName) {
  write_job("model: linear\ndata: {set: idx, global_batch: 8, root: " + path("own") +
            ", augment: [{mixup: {}}]}\n");
  const Outcome shown = succeed("validate " + path("job.yaml") + " --pictures " + path("batch.png"));
  const std::regex label(R"(row 1, column 1: (\d\.\d\d (cat|dog|eagle) \+ \d\.\d\d )?(cat|dog|eagle)\n)");
  EXPECT_TRUE(std::regex_search(shown.out, label)) << shown.out;
  expect_words(shown.out,
               {": 8 of 8 images of the first batch, as they are trained on\n", "\n  row 1, column 2: "});
}

TEST_F(ClassNamesTest, NumbersForOtherClassesOrChannelsAreRefusedBeforeTraining) {
  write_job("model: linear\ndata: {set: idx, root: " + path("own") + "}\n");
  const std::string validate = "validate " + path("job.yaml");
  expect_says(lockstep(validate + " 'train.class_weights=[1, 2]'"), 2,
              {"train.class_weights: 2 numbers for the 3 classes of idx; give one for each"});
  expect_says(lockstep(validate + " 'data.std=[1, 2]'"), 2,
              {"data.std: 2 numbers, but the images of idx have 1 channel; give one, or one for each"});
  succeed(validate + " 'train.class_weights=[1, 2, 3]' 'data.std=[2]'");
}

TEST_F(ClassNamesTest, ClassWithoutTrainingSamplesIsNamedAtTheStart) {
  write_names("own", "cat\ndog\neagle\nowl\nbee\n");
  train_well("run");
  expect_says(train("again"), 0,
              {"no training sample is of 2 of the 5 classes, which will not be learnt: owl, bee"});
}

}  // namespace
}  // namespace lockstep::testing
