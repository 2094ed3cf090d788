// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep predict` on pictures as people make them, with a network that was trained a few seconds ago on
/// drawn digits.
#include "tests/trainer/prediction/made_pictures.hpp"

#include "common/json_text.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

namespace lockstep::testing {
namespace {

class MadePicturesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TemporaryDirectory>();
    write_text(
        directory_->path("job.yaml"),
        "model: net\ndata: {set: synthetic, global_batch: 128}\n"
        "train: {epochs: 6, optimizer: {lr: 0.02, momentum: 0.9}}\nparallel: {grain: 64}\nrun: {dir: " +
            run_dir() + "}\n");
    trained_ = lockstep("train " + directory_->path("job.yaml"));
    for (const MadePicture& picture : made_pictures())
      write_bytes(directory_->path(picture.name), picture.file);
  }
  static void TearDownTestSuite() { directory_.reset(); }

  void SetUp() override { ASSERT_EQ(trained_.exit_code, 0) << trained_.everything(); }

  static std::string run_dir() { return directory_->path("run"); }
  static Outcome predict(const std::string& arguments) {
    return lockstep("predict " + run_dir() + " " + arguments);
  }

  static std::unique_ptr<TemporaryDirectory> directory_;
  static Outcome trained_;
};
std::unique_ptr<TemporaryDirectory> MadePicturesTest::directory_;
Outcome MadePicturesTest::trained_;

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(parse_json(line));
  return lines;
}

TEST_F(MadePicturesTest, EachGetsTheRightDigitOrAWarning) {
  std::string files;
  const auto pictures = made_pictures();
  for (const MadePicture& picture : pictures) files += directory_->path(picture.name) + " ";
  const Outcome outcome = predict(files + "--json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.everything();
  EXPECT_EQ(outcome.err, "");
  const auto lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), pictures.size());
  int right = 0, digits = 0;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const bool warned = !lines[i].at("warnings").empty();
    const bool is_right = pictures[i].digit && lines[i].at("class") == std::to_string(*pictures[i].digit);
    EXPECT_TRUE(warned || is_right) << "silently wrong: " << lines[i];
    if (!pictures[i].digit) continue;
    ++digits;
    if (is_right && !warned) ++right;
    if (!is_right || warned) std::cout << "doubted: " << lines[i] << "\n";
  }
  EXPECT_GE(digits, 27);
  EXPECT_GE(right, digits - 2);  // a warning for everything would be no help
}

TEST_F(MadePicturesTest, RawPicturesAreOnlyScaled) {
  const Outcome outcome = predict(directory_->path("off_centre.png") + " --json --raw");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.everything();
  EXPECT_EQ(lines_of(outcome.out).at(0).at("done"), (std::vector<std::string>{"inverted", "scaled"}));
}

TEST_F(MadePicturesTest, TopShowsTheLikeliestFirst) {
  const Outcome bars = predict(directory_->path("plain.png") + " --top 2");
  std::istringstream lines(bars.out);
  std::string first, second;
  std::getline(lines, first) && std::getline(lines, second);
  EXPECT_NE(first.find("plain.png: 3  (inverted, cut out and centred)"), std::string::npos)
      << bars.everything();
  EXPECT_NE(second.find(" 3 "), std::string::npos) << bars.out;
  EXPECT_EQ(std::count(bars.out.begin(), bars.out.end(), '\n'), 3) << bars.out;
  const auto json = lines_of(predict(directory_->path("plain.png") + " --top 3 --json").out).at(0);
  ASSERT_EQ(json.at("top").size(), 3U);
  EXPECT_EQ(json.at("top")[0].at("class"), "3");
  EXPECT_GE(json.at("top")[1].at("probability"), json.at("top")[2].at("probability"));
  EXPECT_EQ(predict(directory_->path("plain.png") + " --top 0").exit_code, 2);
}

/// An IDX file of three drawn digits that fill their images differently, and one light image.
Bytes idx_of_digits() {
  Bytes file = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 28, 0, 0, 0, 28};
  for (const int digit : {3, 7, 0}) {
    Picture image = sheet(28, 28, 0);
    draw_digit(image, digit, 13.5, 13.5, 17, 255, 1.3);
    file.insert(file.end(), image.pixels.begin(), image.pixels.end());
  }
  file.resize(file.size() + 784, 255);
  return file;
}

TEST_F(MadePicturesTest, AWholeSetGetsALineForEachImageOrASummary) {
  write_bytes(directory_->path("set.idx"), idx_of_digits());
  const Outcome lines = predict(directory_->path("set.idx"));
  ASSERT_EQ(lines.exit_code, 0) << lines.everything();
  EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 4) << lines.out;
  EXPECT_NE(lines.out.find("set.idx[0]: 3 "), std::string::npos) << lines.out;
  const Outcome summary = predict(directory_->path("set.idx") + " --summary");
  EXPECT_NE(summary.out.find("set.idx: 4 pictures"), std::string::npos) << summary.out;
  EXPECT_EQ(std::count(summary.out.begin(), summary.out.end(), '\n'), 11) << summary.out;
  const auto json = lines_of(predict(directory_->path("set.idx") + " --summary --json").out).at(0);
  EXPECT_EQ(json.at("pictures"), 4);
  int counted = 0;
  for (const auto& count : json.at("counts")) counted += count.get<int>();
  EXPECT_EQ(counted, 4);
}

TEST_F(MadePicturesTest, ImagesOfASetAreTakenAsTheyAre) {
  write_bytes(directory_->path("set.idx"), idx_of_digits());
  for (const auto& line : lines_of(predict(directory_->path("set.idx") + " --json").out))
    EXPECT_EQ(line.at("done"), nlohmann::json::array({"as in the file"})) << line;
}

TEST_F(MadePicturesTest, BarsAreAsciiWhereTheLocaleIs) {
  const std::string command = mpirun_command(1, "predict " + run_dir() + " " + directory_->path("plain.png"));
  for (const char* locale : {"C", "POSIX"}) {
    const Outcome outcome = run_shell("LC_ALL=" + std::string(locale) + " " + command);
    for (const char c : outcome.out) ASSERT_LT(static_cast<unsigned char>(c), 128) << outcome.out;
    EXPECT_NE(outcome.out.find("####"), std::string::npos) << outcome.everything();
  }
  EXPECT_NE(run_shell("LC_ALL=C.UTF-8 " + command).out.find("██"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::testing
