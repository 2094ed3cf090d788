// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep convert: folders of pictures become sets that are trained on.
#include "tests/trainer/end_to_end/data_record.hpp"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

class ConvertTest : public DataRecordTest {
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
  expect_says(convert("--force --json"), 0,
              {R"({"format":1,"directory":")", R"("classes":["ants","bees"],"train_samples":8,)"});
}

TEST_F(ConvertTest, PicturesAreKnownByTheirNamesAfterwards) {
  ended_well(convert("--colour --test-count 2"));
  const std::string images = "'test[0]'";
  train_well("data.set=shards train.max_steps=1 data.global_batch=4 data.root=" + directory_.path("set"));
  expect_says(command("predict " + run() + " " + images), 0, {"test[0] (ants/", "\n          ants "});
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
  const Outcome json = convert("--force --skip-damaged --json");
  expect_says(json, 0,
              {R"("width":6,"height":4,"channels":1,"left_out":1,)",
               R"("reshaped":0,"made_grey":1,"had_16_bits":0,)"});
  EXPECT_EQ(nlohmann::json::parse(json.out)["damaged"].size(), 2U);
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
       {"--size 0", "--size 8x", "--size 5000", "--size 8x8x8", "--test-share x", "--test-count 0",
        "--test-count 1 --test-share 0.5", "--grey --colour", "--seed -1", "--fit crop",
        "--size 8 --fit stretch", "--threads 0", "--nosuch"}) {
    expect_says(convert(options), 2);
    EXPECT_FALSE(fs::exists(directory_.path("set"))) << options;
  }
  expect_says(command("convert " + directory_.path("nothing") + " " + directory_.path("set")), 66,
              {"no such folder"});
  expect_says(command("convert " + directory_.path("pictures") + " /proc/set"), 74, {"/proc/set"});
}

}  // namespace
}  // namespace lockstep::testing
