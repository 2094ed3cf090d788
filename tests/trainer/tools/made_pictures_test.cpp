// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep predict` on thirty-odd pictures as people make them, with a network just trained on drawn digits.
#include "common/json_text.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <png.h>

#include <iostream>

namespace lockstep::testing {
namespace {

struct MadePicture {
  std::string name;  ///< file name
  std::optional<int>
      digit;  ///< nothing where no digit, or more than one, is on it: a warning is the only right answer
  Bytes file;
};

struct Drawing {
  int width = 200, height = 200, paper = 255, ink = 0;
  double x = 100, y = 100, size = 130, radius = 8;
};

Picture drawn(int digit, const Drawing& drawing) {
  Picture picture = sheet(drawing.width, drawing.height, drawing.paper);
  draw_digit(picture, digit, drawing.x, drawing.y, drawing.size, drawing.ink, drawing.radius);
  return picture;
}

/// Darker towards the bottom right, as paper under a lamp is.
Picture under_a_lamp(Picture picture) {
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) {
    const auto x = static_cast<int>(i) % picture.width, y = static_cast<int>(i) / picture.width;
    picture.pixels[i] = static_cast<std::uint8_t>(
        std::max(0, picture.pixels[i] - 60 * (x + y) / (picture.width + picture.height)));
  }
  return picture;
}

Picture with_noise(Picture picture, int amplitude) {
  std::uint32_t random = 7;
  for (auto& pixel : picture.pixels) {
    random = random * 1664525U + 1013904223U;
    const int noise = static_cast<int>(random >> 24U) * amplitude / 128 - amplitude;
    pixel = static_cast<std::uint8_t>(std::clamp(pixel + noise, 0, 255));
  }
  return picture;
}

Bytes pgm(const Picture& picture) {
  const std::string header =
      "P5 " + std::to_string(picture.width) + " " + std::to_string(picture.height) + " 255\n";
  Bytes file(header.begin(), header.end());
  file.insert(file.end(), picture.pixels.begin(), picture.pixels.end());
  return file;
}

/// Blue on yellow.
Bytes coloured(const Picture& picture) {
  Bytes pixels;
  for (const std::uint8_t grey : picture.pixels)
    pixels.insert(pixels.end(), {grey, grey, static_cast<std::uint8_t>(255 - grey)});
  return encode_png(static_cast<std::uint32_t>(picture.width), static_cast<std::uint32_t>(picture.height),
                    PNG_FORMAT_RGB, pixels);
}

/// A picture taken with the camera on its side: what is up lies to the left.
Bytes taken_sideways(const Picture& picture) {
  Picture turned = sheet(picture.height, picture.width, 0);
  for (int y = 0; y < turned.height; ++y) {
    for (int x = 0; x < turned.width; ++x)
      turned.pixels[static_cast<std::size_t>(y * turned.width + x)] =
          picture.pixels[static_cast<std::size_t>((picture.height - 1 - x) * picture.width + y)];
  }
  return encode_jpeg(turned, {.orientation = 8});
}

/// @param first  of the digit on the left
Picture two_digits(int a, int b, double distance, const Drawing& first) {
  Picture picture = drawn(a, first);
  draw_digit(picture, b, first.x + distance, first.y, first.size, first.ink, first.radius);
  return picture;
}

std::vector<MadePicture> digits() {
  const Drawing inverted{.paper = 0, .ink = 255}, off_centre{.width = 500, .height = 300, .x = 420, .y = 90},
      small{.width = 800, .height = 600, .x = 90, .y = 500, .size = 48, .radius = 3},
      large{.width = 2400, .height = 2400, .x = 1200, .y = 1200, .size = 2000, .radius = 130},
      faint{.paper = 140, .ink = 128}, grey{.paper = 90, .ink = 190}, thin{.radius = 2.5},
      thick{.radius = 14}, tiny{.width = 24, .height = 24, .x = 12, .y = 12, .size = 15, .radius = 1},
      corner{.x = 60, .y = 80, .size = 90, .radius = 6};
  return {{"plain.png", 3, encode_png(drawn(3, {}))},
          {"inverted.png", 2, encode_png(drawn(2, inverted))},
          {"inverted.jpg", 5, encode_jpeg(drawn(5, inverted))},
          {"transparent.png", 4, encode_png_ink_only(drawn(4, {}), 0)},
          {"transparent_light.png", 6, encode_png_ink_only(drawn(6, {}), 255)},
          {"palette.png", 7, encode_png_palette(drawn(7, {}))},
          {"colours.png", 8, coloured(drawn(8, {}))},
          {"16bit.png", 9, encode_png_16(drawn(9, {}))},
          {"16bit_faint.png", 2, encode_png_16(drawn(2, faint))},
          {"interlaced.png", 0, encode_png_interlaced(drawn(0, {}))},
          {"off_centre.png", 3, encode_png(drawn(3, off_centre))},
          {"corner.jpg", 7, encode_jpeg(drawn(7, corner))},
          {"small.png", 4, encode_png(drawn(4, small))},
          {"small.jpg", 8, encode_jpeg(drawn(8, small))},
          {"tiny.png", 0, encode_png(drawn(0, tiny))},
          {"large.png", 6, encode_png(drawn(6, large))},
          {"large.jpg", 1, encode_jpeg(drawn(1, large))},
          {"faint.png", 5, encode_png(drawn(5, faint))},
          {"faint.jpg", 3, encode_jpeg(drawn(3, faint), {.quality = 95})},
          {"grey.pgm", 9, pgm(drawn(9, grey))},
          {"thin.png", 2, encode_png(drawn(2, thin))},
          {"thick.png", 4, encode_png(drawn(4, thick))},
          {"photo.jpg", 8,
           encode_jpeg(with_noise(under_a_lamp(drawn(8, {.paper = 220, .ink = 60})), 12), {.quality = 70})},
          {"noisy.png", 5, encode_png(with_noise(drawn(5, {.paper = 200, .ink = 60}), 25))},
          {"progressive.jpg", 9, encode_jpeg(drawn(9, {}), {.quality = 40, .progressive = true})},
          {"four_inks.jpg", 1, encode_jpeg(drawn(1, {}), {.four_inks = true})},
          {"sideways.jpg", 7, taken_sideways(drawn(7, {}))}};
}

std::vector<MadePicture> doubtful() {
  const Picture blank = sheet(100, 100, 255);
  const Drawing wide{.width = 300, .size = 100},
      small{.width = 900, .height = 900, .x = 500, .y = 400, .size = 60, .radius = 4};
  return {{"blank.png", {}, encode_png(blank)},
          {"blank_black.jpg", {}, encode_jpeg(sheet(64, 64, 0))},
          {"blank_transparent.png", {}, encode_png_ink_only(blank, 0)},
          {"blank_shaded.jpg", {}, encode_jpeg(under_a_lamp(sheet(200, 200, 230)))},
          {"only_noise.png", {}, encode_png(with_noise(sheet(120, 120, 128), 100))},
          {"two_apart.png", {}, encode_png(two_digits(4, 2, 105, wide))},
          {"two_close.png", {}, encode_png(two_digits(1, 7, 90, wide))},
          {"two_small.jpg", {}, encode_jpeg(two_digits(6, 8, 60, small))},
          {"cut_off.png", {}, encode_png(drawn(8, {.x = 5}))}};
}

std::vector<MadePicture> made_pictures() {
  std::vector<MadePicture> all = digits();
  for (MadePicture& picture : doubtful()) all.push_back(std::move(picture));
  return all;
}

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
  const auto outcome = ended_well(predict(files + "--json"));
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

TEST_F(MadePicturesTest, OptionsChooseThePreparationAndHowManyClassesAreShown) {
  const std::string plain = directory_->path("plain.png");
  EXPECT_EQ(lines_of(predict(directory_->path("off_centre.png") + " --json --raw").out).at(0).at("done"),
            (std::vector<std::string>{"inverted", "scaled"}));
  const Outcome bars = ended_well(predict(plain + " --top 2"));
  expect_words(bars.out, {fmt::format("plain.png: 3  (inverted, cut out and centred)\n{:>14} ", 3)});
  EXPECT_EQ(count_of("\n", bars.out), 3) << bars.out;
  EXPECT_EQ(lines_of(predict(plain + " --top 3 --json").out).at(0).at("top").size(), 3U);
  EXPECT_EQ(predict(plain + " --top 0").exit_code, 2);
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

TEST_F(MadePicturesTest, ImagesOfASetAreTakenAsTheyAreWithALineForEachOrASummary) {
  write_bytes(directory_->path("set.idx"), idx_of_digits());
  const auto lines = ended_well(predict(directory_->path("set.idx")));
  EXPECT_EQ(count_of("\n", lines.out), 4) << lines.out;
  expect_words(lines.out, {"set.idx[0]: 3 "});
  for (const auto& line : lines_of(predict(directory_->path("set.idx") + " --json").out))
    EXPECT_EQ(line.at("done"), nlohmann::json::array({"as in the file"})) << line;
  const Outcome summary = predict(directory_->path("set.idx") + " --summary");
  expect_words(summary.out, {"set.idx: 4 pictures"});
  EXPECT_EQ(count_of("\n", summary.out), 11) << summary.out;
  EXPECT_EQ(lines_of(predict(directory_->path("set.idx") + " --summary --json").out).at(0).at("pictures"), 4);
}

/// Sorted, links to folders left alone, a damaged one named while the others are answered.
TEST_F(MadePicturesTest, AFolderGetsALineForEachPictureInIt) {
  namespace fs = std::filesystem;
  const fs::path folder = directory_->path("folder");
  fs::create_directories(folder / "b");
  fs::copy(directory_->path("plain.png"), folder / "b" / "two.png");
  fs::copy(directory_->path("plain.png"), folder / "one.png");
  fs::create_directory_symlink(folder, folder / "b" / "round");
  write_text((folder / "notes.txt").string(), "no picture");
  const auto answers = lines_of(predict(folder.string() + " --json").out);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].at("picture"), (folder / "b" / "two.png").string());
  EXPECT_EQ(answers[1].at("picture"), (folder / "one.png").string());
  for (const auto& answer : answers) EXPECT_EQ(answer.at("class"), "3");

  write_text((folder / "a.png").string(), "damaged");
  const Outcome outcome = predict(folder.string() + " --csv");
  EXPECT_EQ(outcome.exit_code, 65) << outcome.everything();
  EXPECT_EQ(count_of("\n", outcome.out), 3) << outcome.out;
  EXPECT_TRUE(outcome.out.starts_with("picture,class,probability,not_sure\n")) << outcome.out;
  expect_words(outcome.err, {"a.png"});
  expect_words(predict(folder.string() + " --summary").out, {"folder: 2 pictures"});
  fs::create_directory(directory_->path("empty"));
  EXPECT_EQ(predict(directory_->path("empty")).exit_code, 66);
}

TEST_F(MadePicturesTest, BarsAreAsciiWhereTheLocaleIs) {
  const std::string command = mpirun_command(1, "predict " + run_dir() + " " + directory_->path("plain.png"));
  const Outcome outcome = run_shell("LC_ALL=C " + command);
  for (const char c : outcome.out) ASSERT_LT(static_cast<unsigned char>(c), 128) << outcome.out;
  expect_words(outcome.out, {"####"});
  expect_words(run_shell("LC_ALL=C.UTF-8 " + command).out, {"██"});
}

}  // namespace
}  // namespace lockstep::testing
