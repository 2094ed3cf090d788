// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A run knows its data again. Evaluation and resume use its own set, and refuse what only has the same name.
#include "tests/trainer/end_to_end/data_record.hpp"

#include <regex>

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kImages = "/train-images-idx3-ubyte";

/// "12.34 %" as eval prints the accuracy in metrics.jsonl.
std::string last_accuracy(const std::string& run_dir) {
  char text[32];
  std::snprintf(text, sizeof text, "accuracy %.2f %%",
                100 * read_metrics(run_dir).back()["test_accuracy"].get<double>());
  return text;
}

TEST_F(DataRecordTest, EvaluationUsesTheRunsOwnSetWhateverElseHasItsName) {
  train_well();
  expect_says(command("eval " + run()), 0, {last_accuracy(run()), own() + " (what it was trained on)"});
  expect_says(command("inspect " + run()), 0, {"directory: " + own(), "train_samples_sha256: "});
  fs::copy(own(), other() + "/kmnist");
  expect_says(command("eval " + run() + " --set kmnist"), 0,
              {" of 10)", "(not the set that it was trained on"});
}

/// A run that took a part of its set.
TEST_F(DataRecordTest, OtherSetsAreTakenWhole) {
  train_well("data.train_samples=30 data.test_samples=6 data.validation=4");
  fs::copy(own(), other() + "/kmnist");
  const std::string eval = "eval " + run() + " --set kmnist";
  expect_says(command(eval), 0,
              {" of 10)", "data: " + other() + "/kmnist (not the set that it was trained on"});
  expect_says(command(eval + " --train"), 0, {" of 40)"});
  expect_says(command("predict " + run() + " 'test[9]'"), 0, {"test[9]: "});
}

TEST_F(DataRecordTest, RanksEvaluateOneCheckpointOnOneSet) {
  train_well();
  train_well("train.seed=7 run.dir=" + directory_.path("seven"));
  const auto eval = [&](const std::string& on_rank_1) {
    return run_shell("LOCKSTEP_DATA=" + other() + " mpirun --bind-to none -np 1 $LOCKSTEP_PROGRAM eval " +
                     run() + " : -np 1 $LOCKSTEP_PROGRAM eval " + on_rank_1);
  };
  expect_says(eval(directory_.path("seven")), 65, {"the sha256 of the weights is "});
  expect_says(eval(run() + " --data " + other()), 65, {"the digest of mnist test samples is "});
  expect_says(eval(run() + " --train"), 2, {"--train is not given on rank 0, but given on rank 1"});
}

TEST_F(DataRecordTest, EvaluationRefusesOneByteOfDifferenceInAnyFile) {
  train_well();
  for (const auto& [file, what] : {std::pair{kImages, "mnist train samples (sha256 "},
                                   {"/train-labels-idx1-ubyte", "mnist train labels (sha256 "},
                                   {"/t10k-images-idx3-ubyte", "mnist test samples (sha256 "},
                                   {"/t10k-labels-idx1-ubyte", "mnist test labels (sha256 "}}) {
    flip_byte(file, 16);
    const Outcome refused = command("eval " + run());
    expect_says(refused, 65, {what, own(), "--data"});
    EXPECT_TRUE(
        std::regex_search(refused.err, std::regex("[(]sha256 [0-9a-f]{16} then, [0-9a-f]{16} now[)]")))
        << refused.err;
    flip_byte(file, 16);
  }
  expect_says(command("eval " + run()), 0, {"what it was trained on"});
}

TEST_F(DataRecordTest, ToldToEvaluateOnOtherDataItDoesAndSaysSo) {
  train_well();
  for (const std::string option : {"--data ", "--root "})
    expect_says(command("eval " + run() + " " + option + other()), 0,
                {"not what it was trained on: mnist test samples", "lockstep-data"});
  fs::remove_all(own());
  expect_says(command("eval " + run()), 65, {own(), "lockstep-data/mnist", "mnist test samples", "--data"});
  expect_says(command("report " + run() + " --format json"), 0, {"are not its own: mnist test samples"});
}

TEST_F(DataRecordTest, TheSameDataMayMoveAndBePackedOtherwise) {
  train_well();
  fs::rename(own(), directory_.path("moved"));
  const std::string images = read_text(directory_.path("moved") + kImages);
  test::write_file(directory_.path("moved") + kImages + ".gz", test::gzip({images.begin(), images.end()}));
  fs::remove(directory_.path("moved") + kImages);
  expect_says(command("eval " + run() + " --data " + directory_.path("moved")), 0,
              {"(what it was trained on)"});
  expect_says(train("train.epochs=3 data.root=" + directory_.path("moved")), 0, {"going on from step 6"});
}

TEST_F(DataRecordTest, ResumeRefusesOtherDataAndTouchesNothing) {
  train_well();
  expect_says(train("train.epochs=3 data.root=" + other()), 65,
              {"mnist test samples (sha256 ", own(), "lockstep-data/mnist", "run.resume=never"});
  flip_byte(kImages, 20);
  expect_says(train("train.epochs=3"), 65, {"mnist train samples"});
  flip_byte(kImages, 20);
  EXPECT_EQ(read_metrics(run()).back()["step"], 6);
  expect_says(train("train.epochs=3"), 0, {"going on from step 6"});
}

TEST_F(DataRecordTest, ResumeWithAutoLooksFirstWhereTheRunHadItsData) {
  train_well("train.max_steps=3");
  expect_says(train("data.root=auto"), 0, {"going on from step 3", own()});
  const std::string digest = command("hash " + run()).last_line();
  fs::remove_all(run());
  train_well();
  EXPECT_EQ(command("hash " + run()).last_line(), digest);
}

TEST_F(DataRecordTest, WhatIsMadeInMemoryIsMadeAgainAsTheRunHadIt) {
  for (const std::string set : {"synthetic", "random"}) {
    const std::string run_dir = directory_.path(set);
    train_well("data.set=" + set +
               " train.seed=99 data.train_samples=300 data.test_samples=77 run.dir=" + run_dir);
    expect_says(command("eval " + run_dir), 0,
                {last_accuracy(run_dir), "of 77)", "(what it was trained on)"});
    expect_says(command("eval " + run_dir + " --train"), 0, {"of 300)"});
    expect_says(command("eval " + run_dir + " --data " + own()), 2,
                {set + " is made in memory, no directory holds it"});
  }
  expect_says(command("predict " + directory_.path("random") + " " + own() + "/t10k-images-idx3-ubyte"), 2,
              {" a sample, not on pictures"});
}

/// Negatives: the background of every image is light.
TEST_F(DataRecordTest, PredictionKnowsTheBackgroundOfTheTrainingImages) {
  for (const std::string file : {kImages, "/t10k-images-idx3-ubyte"}) {
    std::string bytes = read_text(own() + file);
    for (std::size_t i = 16; i < bytes.size(); ++i) bytes[i] = static_cast<char>(bytes[i] | '\xc0');
    write_text(own() + file, bytes);
  }
  train_well();
  write_text(directory_.path("light.pgm"), "P5 28 28 255\n" + std::string(784, '\xf0'));
  expect_says(command("predict " + run() + " --raw " + directory_.path("light.pgm")), 0,
              {"not inverted: its background is that of the training images)"});
  expect_says(command("predict " + run() + " --invert yes " + own() + "/t10k-images-idx3-ubyte[0]"), 0,
              {"(inverted)"});
}

/// A set of a user's own: three classes of colour pictures, 5 x 4.
class OwnDataTest : public DataRecordTest {
 protected:
  OwnDataTest() {
    using test::idx_file;
    fs::remove_all(own());
    test::write_file(own() + "/train-images-idx4-ubyte", idx_file({40, 4, 5, 3}, 7));
    test::write_file(own() + "/train-labels-idx1-ubyte", idx_file({40}, 1, 3));
    test::write_file(own() + "/t10k-images-idx4-ubyte", idx_file({10, 4, 5, 3}, 3));
    test::write_file(own() + "/t10k-labels-idx1-ubyte", idx_file({10}, 1, 3));
    write_text(own() + "/classes.txt", "cat\nbig dog\neel\n");
  }
  void train_own(const std::string& overrides = "") const { train_well("data.set=idx " + overrides); }
};

TEST_F(OwnDataTest, ItIsTrainedOnJudgedAndPredictedWithItsNames) {
  train_own();
  expect_says(command("eval " + run()), 0, {last_accuracy(run()), own() + " (what it was trained on)"});
  expect_says(command("predict " + run() + " '" + own() + "/t10k-images-idx4-ubyte[3]'"), 0,
              {"t10k-images-idx4-ubyte[3]: ", "\n           cat", "\n       big dog", "\n           eel"});
  EXPECT_EQ(
      std::ranges::count(command("predict " + run() + " " + own() + "/t10k-images-idx4-ubyte").out, '\n'), 10)
      << "a line for each of several pictures";
  expect_says(command("inspect " + run()), 0, {"class_names: cat, big dog, eel"});
  write_text(directory_.path("red.ppm"), "P6 5 4 255\n" + std::string(60, '\x7f'));
  write_text(directory_.path("grey.pgm"), "P5 10 8 255\n" + std::string(80, '\x7f'));
  fs::rename(own(), directory_.path("away"));  // the names are the run's own
  expect_says(command("predict " + run() + " " + directory_.path("red.ppm") + " --json"), 0,
              {R"("class":"big dog")"});
  expect_says(command("predict " + run() + " " + directory_.path("grey.pgm")), 0,
              {"(scaled)", "\n           cat", "\n       big dog"});
  expect_says(command("eval " + run()), 66,
              {"is not on this machine; looked in " + own(), "lockstep convert"});
  expect_says(command("eval " + run() + " --data " + directory_.path("away")), 0,
              {"(what it was trained on)"});
}

TEST_F(OwnDataTest, ValuesThatCannotBeAreDamage) {
  train_own("train.max_steps=3");
  const std::string good = directory_.path("good");
  fs::copy(run(), good, fs::copy_options::recursive);
  for (const auto change : std::initializer_list<void (*)(CheckpointFacts&)>{
           [](auto& facts) { facts.model["set"] = "mnits"; },
           [](auto& facts) { facts.model["mean"] = "nan"; },
           [](auto& facts) { facts.model["std"] = "[0.1, 1, 1"; },
           [](auto& facts) { facts.job["parallel.grain"] = "0"; },
           [](auto& facts) { facts.data["class_names"] = "cat\n\x1b[2J\neel"; },
           [](auto& facts) { facts.data["class_names"] = "cat\n\neel"; }}) {
    edit_manifests(change);
    expect_says(command("eval " + run()), 65, {"the manifest"});
    fs::remove_all(run());
    fs::copy(good, run(), fs::copy_options::recursive);
  }
  edit_manifests([](CheckpointFacts& facts) { facts.data.clear(); });
  for (const Outcome& refused : {command("eval " + run()), train("data.set=idx")})
    expect_says(refused, 65, {"the manifest does not say data.train_samples_sha256"});
}

}  // namespace
}  // namespace lockstep::testing
