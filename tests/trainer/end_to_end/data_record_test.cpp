// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A run knows its data again. Evaluation and resume use its own set, and refuse what only has the same name.
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

#include <regex>

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kImages = "/train-images-idx3-ubyte";

/// Training on a small image set in OWN while another one of the same name lies where $LOCKSTEP_DATA points
/// to.
class DataRecordTest : public ::testing::Test {
 protected:
  DataRecordTest() {
    test::write_image_set(own(), 40, 10);
    test::write_image_set(directory_.path("lockstep-data/mnist"), 40, 10);
    write_text(directory_.path("lockstep-data/mnist/t10k-images-idx3-ubyte"),
               read_text(own() + "/t10k-images-idx3-ubyte").replace(40, 3, "xyz"));
    write_text(directory_.path("job.yaml"),
               "model: linear\n"
               "data: {set: mnist, global_batch: 16, root: " +
                   own() +
                   "}\n"
                   "train: {epochs: 2, optimizer: {lr: 0.3, momentum: 0}}\n"
                   "parallel: {device: cpu, grain: 4, backend: thread}\n"
                   "run: {dir: " +
                   run() + ", checkpoint_every_steps: 2}\n");
  }

  std::string own() const { return directory_.path("own"); }
  std::string other() const { return directory_.path("lockstep-data"); }
  std::string run() const { return directory_.path("run"); }
  Outcome command(const std::string& arguments) const {
    return run_shell("LOCKSTEP_DATA=" + other() + " $LOCKSTEP_PROGRAM " + arguments);
  }
  Outcome train(const std::string& overrides = "") const {
    return command("train " + directory_.path("job.yaml") + " " + overrides);
  }
  void train_well(const std::string& overrides = "") const { ended_well(train(overrides)); }
  void flip_byte(const std::string& file, std::size_t offset) const {
    std::string bytes = read_text(own() + file);
    bytes[offset] ^= 1;
    write_text(own() + file, bytes);
  }
  /// Rewrites the manifest of every checkpoint, sealed as it should be.
  void edit_manifests(const std::function<void(CheckpointFacts&)>& edit) const {
    for (const auto& entry : fs::directory_iterator(run() + "/checkpoints")) {
      const std::string path = entry.path() / kManifestFile;
      Manifest manifest = read_manifest(read_text(path), path);
      edit(manifest.facts);
      write_text(path, write_manifest(manifest));
    }
  }
  TemporaryDirectory directory_;
};

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
  }
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

class ConvertTest : public OwnDataTest {
 protected:
  ConvertTest() {
    for (const char* name : {"ants", "bees"})
      for (int i = 0; i < 5; ++i)
        write_text(test_path(fmt::format("{}/{}.ppm", name, i)),
                   "P6 6 4 255\n" + std::string(72, static_cast<char>(40 * i + *name)));
  }
  std::string test_path(const std::string& name) const {
    const fs::path path = directory_.path("pictures/" + name);
    fs::create_directories(path.parent_path());
    return path.string();
  }
  Outcome convert(const std::string& options) const {
    return command("convert " + directory_.path("pictures") + " " + directory_.path("set") + " " + options);
  }
};

TEST_F(ConvertTest, PicturesBecomeASetThatIsTrainedOn) {
  expect_says(
      convert("--size 8x5 --colour --test-count 2"), 0,
      {"2 classes (ants, bees), 6 images to train on, 4 to test with, 3 x 5 x 8 (channels x rows x columns)",
       "data: {set: shards, root: "});
  train_well("data.set=shards data.global_batch=4 data.root=" + directory_.path("set"));
  expect_says(command("predict " + run() + " " + test_path("bees/3.ppm")), 0,
              {"3.ppm: ", "(scaled)", "ants", "bees"});
  expect_says(convert(""), 2, {"is there already; --force replaces the set"});
  expect_says(convert("--force"), 0, {"8 images to train on, 2 to test with, 1 x 4 x 6 (channels"});
  expect_says(convert("--force --json"), 0, {R"("classes":["ants","bees"],"train_samples":8,)"});
}

TEST_F(ConvertTest, PicturesAreKnownByTheirNamesAfterwards) {
  ended_well(convert("--colour --test-count 2"));
  const std::string images = "'test[0]'";
  train_well("data.set=shards train.max_steps=1 data.global_batch=4 data.root=" + directory_.path("set"));
  expect_says(command("predict " + run() + " " + images), 0, {"test[0] (ants/"});
  expect_says(command("predict " + run() + " " + images + " --json"), 0, {R"([0]","original":"ants/)"});
  expect_says(command("eval " + run() + " --classes"), 0, {".ppm): ", " mistaken for "});
  expect_says(command("eval " + run() + " --classes --json"), 0, {R"("name":")"});
  expect_says(command("report " + run() + " --format json"), 0, {".ppm\""});
  train_well("data.set=shards data.validation=2 data.root=" + directory_.path("set") + " run.resume=never");
  const Outcome held_out = command("eval " + run() + " --validation --classes");
  EXPECT_EQ(held_out.err, "") << held_out.everything();
  write_text(directory_.path("set/test-names.jsonl"), "damaged\n");
  for (const std::string& reader : {"predict " + run() + " " + images, "eval " + run() + " --classes"}) {
    const auto told = ended_well(command(reader));
    expect_words(told.err, {"test-names.jsonl: line 1 is not a name; "});
    EXPECT_EQ(told.out.find(".ppm"), std::string::npos) << told.everything();
  }
}

TEST_F(ConvertTest, WhatPicturesLoseIsSaidAndDamagedOnesAreAllNamed) {
  write_text(test_path("ants/0.ppm"), "P6 6 4 255\n" + std::string(71, 'a') + "b");
  expect_says(convert("--size 4 --fit crop --threads 2"), 0,
              {"10 pictures of other proportions than 4 x 4 were cropped: their middle is kept",
               "1 colour picture became grey: --colour keeps it"});
  write_text(test_path("ants/cut.jpg"), "");
  write_text(test_path("bees/page.png"), "<html>");
  write_text(test_path("bees/notes.txt"), "");
  expect_says(
      convert("--force"), 65,
      {"2 pictures cannot be read, the first of them ", "cut.jpg: is empty", "page.png: neither PNG, JPEG"});
  const Outcome skipped = convert("--force --skip-damaged");
  expect_says(skipped, 0, {"8 images to train on, 2 to test with", "data: {set: shards, root: "});
  expect_words(skipped.err, {"left out: 1 .txt file; the first is ",
                             "left out 2 pictures that cannot be read, named above"});
  train_well("data.set=shards data.global_batch=4 data.root=" + directory_.path("set"));
  expect_says(command("predict " + run() + " --fit pad " + test_path("bees/3.ppm")), 0,
              {"3.ppm: ", "padded"});
}

TEST_F(ConvertTest, WrongOptionsAreUsageErrors) {
  for (const char* options :
       {"--size 0", "--size 8x", "--size 5000", "--size 8x8x8", "--test-share 0", "--test-share 1",
        "--test-share x", "--test-count 0", "--test-count 1 --test-share 0.5", "--grey --colour", "--seed -1",
        "--fit crop", "--size 8 --fit stretch", "--threads 0", "--nosuch"}) {
    expect_says(convert(options), 2);
    EXPECT_FALSE(fs::exists(directory_.path("set"))) << options;
  }
  expect_says(command("convert " + directory_.path("nothing") + " " + directory_.path("set")), 66,
              {"no such folder"});
  expect_says(command("convert " + directory_.path("pictures") + " /proc/set"), 74, {"/proc/set"});
}

}  // namespace
}  // namespace lockstep::testing
