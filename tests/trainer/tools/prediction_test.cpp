// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Answers of predict: what is said of them, and that they are right for pictures that are made.
#include "trainer/tools/prediction.hpp"

#include "common/error.hpp"
#include "common/json_text.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"
#include "tests/trainer/tools/made_pictures.hpp"

#include <iostream>

namespace lockstep {

namespace {

const ReportStyle kStyle{.class_names = {"cat", "dog", "cow"}, .top = 0, .unicode = false};

Prediction cow() {
  return {.picture = "a.png", .scores = {0.25F, 0, 0.75F}, .done = {"inverted"}, .warnings = {}};
}

TEST(PredictionReportTest, BarsStandInLabelOrder) {
  EXPECT_EQ(bars_of(cow(), kStyle),
            "a.png: cow  (inverted)\n"
            "           cat  25.00 % ##########\n"
            "           dog   0.00 %\n"
            "           cow  75.00 % ##############################\n");
}

TEST(PredictionReportTest, TheTopClassesStandLikeliestFirst) {
  ReportStyle style = kStyle;
  style.top = 2;
  style.unicode = true;
  EXPECT_EQ(bars_of(cow(), style),
            "a.png: cow  (inverted)\n"
            "           cow  75.00 % ██████████████████████████████\n"
            "           cat  25.00 % ██████████\n");
  EXPECT_EQ(line_of(cow(), style), "a.png: cow 75.00 % cat 25.00 %\n");
}

TEST(PredictionReportTest, WarningsStandWithTheAnswer) {
  Prediction prediction = cow();
  warn_if_unsure(prediction, kStyle);
  EXPECT_EQ(line_of(prediction, kStyle), "a.png: cow 75.00 %  not sure: cow or cat?\n");
  EXPECT_NE(bars_of(prediction, kStyle).find("\n  not sure: cow or cat?\n"), std::string::npos);
}

TEST(PredictionReportTest, AnAnswerIsSureFromNinetyPercentOn) {
  Prediction found{.picture = "a.png", .scores = {0.0625F, 0.03125F, 0.90625F}, .done = {}, .warnings = {}};
  warn_if_unsure(found, kStyle);
  EXPECT_TRUE(found.warnings.empty());
  found.scores = {0.09375F, 0.03125F, 0.875F};
  warn_if_unsure(found, kStyle);
  EXPECT_EQ(found.warnings, std::vector<std::string>{"cow or cat?"});
}

TEST(PredictionReportTest, JsonIsOneObjectALine) {
  EXPECT_EQ(
      json_of(cow(), kStyle),
      R"({"format":1,"picture":"a.png","scores":"softmax","class":"cow","probability":0.75,"top":[{"class":"cow","probability":0.75},)"
      R"({"class":"cat","probability":0.25},{"class":"dog","probability":0.0}],"done":["inverted"],"warnings":[]})"
      "\n");
  Prediction odd = cow();
  odd.picture = "new\nline\xff";
  EXPECT_EQ(json_of(odd, kStyle).find('\n'), json_of(odd, kStyle).size() - 1);
}

/// After train.loss: mse, and binary_cross_entropy.
TEST(PredictionReportTest, ScoresAreCalledWhatTheLossMakesThem) {
  ReportStyle style = kStyle;
  style.loss = LossKind::kMeanSquares;
  const Prediction outputs{.picture = "a.png", .scores = {-0.5F, 0.25F, 1.25F}, .done = {}, .warnings = {}};
  EXPECT_EQ(bars_of(outputs, style),
            "a.png: cow\n"
            "  outputs, no probabilities: 1 is the class, 0 another (mse):\n"
            "           cat   -0.500\n"
            "           dog    0.250 ##########\n"
            "           cow    1.250 ########################################\n");
  EXPECT_EQ(line_of(outputs, style), "a.png: cow 1.250\n");
  EXPECT_EQ(
      json_of(outputs, style),
      R"({"format":1,"picture":"a.png","scores":"outputs","class":"cow","output":1.25,"top":[{"class":"cow","output":1.25},)"
      R"({"class":"dog","output":0.25},{"class":"cat","output":-0.5}],"done":[],"warnings":[]})"
      "\n");
  EXPECT_EQ(csv_head(style) + csv_of(outputs, style),
            "picture,class,output,not_sure\n\"a.png\",\"cow\",1.25,\"\"\n");
  style.loss = LossKind::kBinaryCrossEntropy;
  test::expect_words(bars_of(cow(), style), {"\n  of each class by itself (binary_cross_entropy):\n"});
  test::expect_words(json_of(cow(), style), {R"("scores":"sigmoid","class":"cow","probability":0.75)"});
}

TEST(PredictionReportTest, AnOutputIsSureByItsLead) {
  ReportStyle style = kStyle;
  style.loss = LossKind::kMeanSquares;
  Prediction found{.picture = "a.png", .scores = {0.25F, -1, 0.8125F}, .done = {}, .warnings = {}};
  warn_if_unsure(found, style);
  EXPECT_TRUE(found.warnings.empty());
  found.scores[0] = 0.5F;
  warn_if_unsure(found, style);
  EXPECT_EQ(found.warnings, std::vector<std::string>{"cow or cat?"});
}

TEST(PredictionReportTest, CsvQuotesWhatItDoesNotKnow) {
  Prediction odd = cow();
  odd.picture = "a,\"b\"\n.png";
  odd.warnings = {"cow or cat?"};
  EXPECT_EQ(csv_of(odd, kStyle), "\"a,\"\"b\"\"\\x0a.png\",\"cow\",0.75,\"cow or cat?\"\n");
  odd.picture = "=1+1.png";
  EXPECT_TRUE(csv_of(odd, kStyle).starts_with("\"'=1+1.png\",")) << "a spreadsheet computed it";
}

TEST(PredictionReportTest, ASummaryCountsClassesAndDoubts) {
  PredictionSummary summary(3);
  summary.add(cow());
  summary.add(cow());
  Prediction cat{.picture = "b", .scores = {1, 0, 0}, .done = {}, .warnings = {"why"}};
  summary.add(cat);
  EXPECT_EQ(summary.to_json("set", kStyle),
            R"({"format":1,"file":"set","pictures":3,"not_sure":1,"counts":{"cat":1,"dog":0,"cow":2}})"
            "\n");
  EXPECT_NE(summary.to_text("set", kStyle).find("set: 3 pictures, not sure of 1\n"), std::string::npos);
  EXPECT_NE(summary.to_text("set", kStyle).find("cow       2  66.67 %"), std::string::npos)
      << summary.to_text("set", kStyle);
}

/// Finite weights that are so large that no output is a number.
TEST(PredictorTest, OutputsThatAreNoNumbersAreAnError) {
  SavedModel model{.network = Network::parse("layers:\n  - linear: classes\n", "one.yaml", {1, 1, 2}, 2),
                   .weights = AlignedBuffer<float>(6),
                   .data = {},
                   .checkpoint = "run/checkpoints/step-00000007"};
  model.data.options.mean = {0};
  model.data.options.std = {1};
  Picture picture;
  picture.width = 2;
  picture.height = 1;
  picture.pixels = {255, 255};
  std::ranges::fill(model.weights.span(), 1.0F);
  EXPECT_EQ(Predictor(model).predict(std::array{picture}).front(), (std::vector<float>{0.5F, 0.5F}));
  model.loss = LossKind::kMeanSquares;
  EXPECT_EQ(Predictor(model).predict(std::array{picture}).front(), (std::vector<float>{3, 3}));
  model.loss = LossKind::kBinaryCrossEntropy;
  EXPECT_NEAR(Predictor(model).predict(std::array{picture}).front()[1], 1 / (1 + std::exp(-3.0)), 1e-6);
  model.loss = LossKind::kCrossEntropy;
  std::ranges::fill(model.weights.span(), 3e38F);
  test::expect_error<InternalError>([&] { Predictor(model).predict(std::array{picture}); },
                                    {"step-00000007: the network's outputs for a picture are NaN"});
}

}  // namespace

}  // namespace lockstep

namespace lockstep::testing {

// `lockstep predict` on people's pictures, with a network that was trained a few seconds ago on drawn
// digits.

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

TEST_F(MadePicturesTest, RawPicturesAreOnlyScaled) {
  const auto outcome = ended_well(predict(directory_->path("off_centre.png") + " --json --raw"));
  EXPECT_EQ(lines_of(outcome.out).at(0).at("done"), (std::vector<std::string>{"inverted", "scaled"}));
}

TEST_F(MadePicturesTest, TopShowsTheLikeliestFirst) {
  const Outcome bars = predict(directory_->path("plain.png") + " --top 2");
  std::istringstream lines(bars.out);
  std::string first, second;
  std::getline(lines, first) && std::getline(lines, second);
  test::expect_words(first, {"plain.png: 3  (inverted, cut out and centred)"});
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
  const auto lines = ended_well(predict(directory_->path("set.idx")));
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

/// Sorted, links to folders left alone, a damaged one named while the others are answered.
TEST_F(MadePicturesTest, AFolderGetsALineForEachPictureInIt) {
  namespace fs = std::filesystem;
  const fs::path folder = directory_->path("folder");
  fs::create_directories(folder / "b");
  fs::copy(directory_->path("plain.png"), folder / "b" / "two.png");
  fs::copy(directory_->path("plain.png"), folder / "one.png");
  fs::create_directory_symlink(folder, folder / "b" / "round");
  write_text((folder / "notes.txt").string(), "no picture");
  const std::string plain =
      lines_of(predict(directory_->path("plain.png") + " --json").out).at(0).at("class");
  const auto answers = lines_of(predict(folder.string() + " --json").out);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].at("picture"), (folder / "b" / "two.png").string());
  EXPECT_EQ(answers[1].at("picture"), (folder / "one.png").string());
  for (const auto& answer : answers) EXPECT_EQ(answer.at("class"), plain);

  write_text((folder / "a.png").string(), "damaged");
  const Outcome outcome = predict(folder.string() + " --csv");
  EXPECT_EQ(outcome.exit_code, 65) << outcome.everything();
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 3) << outcome.out;
  EXPECT_EQ(outcome.out.substr(0, 35), "picture,class,probability,not_sure\n");
  EXPECT_NE(outcome.err.find("a.png"), std::string::npos) << outcome.err;
  EXPECT_NE(predict(folder.string() + " --summary").out.find("folder: 2 pictures"), std::string::npos);
  fs::create_directory(directory_->path("empty"));
  EXPECT_EQ(predict(directory_->path("empty")).exit_code, 66);
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
