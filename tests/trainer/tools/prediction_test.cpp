// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Answers of predict and what is said of them; its inputs.
#include "trainer/tools/prediction.hpp"

#include "common/error.hpp"
#include "common/json_text.hpp"
#include "data/batch_loader.hpp"
#include "data/sets/class_names.hpp"
#include "data/sets/leave_out.hpp"
#include "data/tables/table_conversion.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "trainer/tools/prediction_input.hpp"

namespace lockstep {

namespace {

const ReportStyle kStyle{.class_names = {"cat", "dog", "cow"}, .top = 0, .unicode = false};

Prediction cow() {
  return {.picture = "a.png", .scores = {0.25F, 0, 0.75F}, .done = {"inverted"}};
}

TEST(PredictionReportTest, BarsStandInLabelOrder) {
  EXPECT_EQ(bars_of(cow(), kStyle),
            "a.png: cow  (inverted)\n"
            "           cat  25.00 % ##########\n"
            "           dog   0.00 %\n"
            "           cow  75.00 % ##############################\n");
}

TEST(PredictionReportTest, NoProbabilityReadsAsCertainThatIsNot) {
  const auto line = [](float score) { return line_of({.picture = "a", .scores = {score, 0, 0}}, kStyle); };
  EXPECT_EQ(line(1), "a: cat 100.00 %\n");
  EXPECT_EQ(line(0.99996F), "a: cat 99.99 %\n");
  EXPECT_EQ(line(0.9999F), "a: cat 99.99 %\n");
  EXPECT_EQ(bars_of({.picture = "a", .scores = {0.00004F, 0.0001F, 0}}, kStyle),
            "a: dog\n"
            "           cat   0.01 %\n"
            "           dog   0.01 %\n"
            "           cow   0.00 %\n");
}

TEST(PredictionReportTest, ANameWithALineFeedStaysOnItsLine) {
  Prediction odd = cow();
  odd.picture = "a\nb: dog 99.00 %";
  EXPECT_EQ(line_of(odd, kStyle), "a\\x0ab: dog 99.00 %: cow 75.00 %\n");
  EXPECT_TRUE(bars_of(odd, kStyle).starts_with("a\\x0ab: dog 99.00 %: cow  (inverted)\n"));
  EXPECT_TRUE(PredictionSummary(3).to_text("a\nb", kStyle).starts_with("a\\x0ab: 0 pictures, "));
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

/// Twenty of many classes, the likeliest; names in a column of 12 to 30.
TEST(PredictionReportTest, BarsAreTwentyAtMostAndStandInAColumn) {
  ReportStyle style;
  Prediction prediction{.picture = "a.png", .scores = {}};
  const auto first_and_rows = [&](int classes) {
    style.class_names = numbered_classes(classes);
    prediction.scores.clear();
    for (int c = 0; c < classes; ++c) prediction.scores.push_back(static_cast<float>(c) / 64);
    const std::string text = bars_of(prediction, style);
    return std::pair(text.substr(text.find('\n') + 1, 14), test::count_of("\n", text) - 1);
  };
  EXPECT_EQ(first_and_rows(20), std::pair(fmt::format("{:>14}", 0), 20));
  EXPECT_EQ(first_and_rows(21), std::pair(fmt::format("{:>14}", 20), 20));
  prediction.scores = {1, 0};
  for (const auto& [length, width] : {std::pair(5, 12), {13, 13}, {30, 30}, {31, 30}}) {
    style.class_names = {"cat", std::string(static_cast<std::size_t>(length), 'x')};
    EXPECT_EQ(bars_of(prediction, style).substr(0, static_cast<std::size_t>(width) + 13),
              fmt::format("a.png: cat\n  {:>{}}", "cat", width));
  }
}

TEST(PredictionReportTest, TheOriginalStandsBesideThePicture) {
  Prediction prediction = cow();
  prediction.original = "cows/7.png";
  EXPECT_EQ(line_of(prediction, kStyle), "a.png (cows/7.png): cow 75.00 %\n");
  test::expect_words(json_of(prediction, kStyle), {R"("picture":"a.png","original":"cows/7.png","scores")"});
  prediction.picture = "\x7f.png\x7f";
  test::expect_words(json_of(prediction, kStyle), {R"("picture":"\u007f.png\u007f")"});
}

TEST(PredictionReportTest, WarningsStandWithTheAnswer) {
  Prediction prediction = cow();
  warn_if_unsure(prediction, kStyle);
  EXPECT_EQ(line_of(prediction, kStyle), "a.png: cow 75.00 %  not sure: cow or cat?\n");
  EXPECT_NE(bars_of(prediction, kStyle).find("\n  not sure: cow or cat?\n"), std::string::npos);
}

TEST(PredictionReportTest, AnAnswerIsSureFromNinetyPercentOnAndAnOutputByItsLead) {
  using Warnings = std::vector<std::string>;
  const auto warnings = [](LossKind loss, const std::vector<float>& scores) {
    ReportStyle style = kStyle;
    style.loss = loss;
    Prediction found{.picture = "a.png", .scores = scores};
    warn_if_unsure(found, style);
    return found.warnings;
  };
  const Warnings unsure = {"cow or cat?"};
  EXPECT_EQ(warnings(LossKind::kCrossEntropy, {0.0625F, 0.03125F, 0.90625F}), Warnings());
  EXPECT_EQ(warnings(LossKind::kCrossEntropy, {0.09375F, 0.03125F, 0.875F}), unsure);
  EXPECT_EQ(warnings(LossKind::kCrossEntropy, {kSureProbability, 0.1F, 0}), Warnings());
  EXPECT_EQ(warnings(LossKind::kBinaryCrossEntropy, {0.890625F}), Warnings{"cat or not?"})
      << "there is no other class, and the sample may have none";
  EXPECT_EQ(warnings(LossKind::kBinaryCrossEntropy, {0.90625F}), Warnings());
  EXPECT_EQ(warnings(LossKind::kMeanSquares, {0.4375F}), Warnings{"cat or not?"});
  EXPECT_EQ(warnings(LossKind::kMeanSquares, {0.5F}), Warnings());
  EXPECT_EQ(warnings(LossKind::kCrossEntropy, {0.5F, 0.75F}), Warnings{"dog or cat?"});
  EXPECT_EQ(warnings(LossKind::kMeanSquares, {0.25F, -1, 0.8125F}), Warnings());
  EXPECT_EQ(warnings(LossKind::kMeanSquares, {0.3125F, -1, 0.8125F}), Warnings());
  EXPECT_EQ(warnings(LossKind::kMeanSquares, {0.5F, -1, 0.8125F}), unsure);
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
  const Prediction outputs{.picture = "a.png", .scores = {-0.5F, 0.25F, 1.25F}};
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
  EXPECT_EQ(csv_head(style.loss) + csv_of(outputs, style),
            "picture,class,output,not_sure\n\"a.png\",\"cow\",1.25,\"\"\n");
  style.loss = LossKind::kBinaryCrossEntropy;
  test::expect_words(bars_of(cow(), style), {"\n  of each class by itself (binary_cross_entropy):\n"});
  test::expect_words(json_of(cow(), style), {R"("scores":"sigmoid","class":"cow","probability":0.75)"});
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
  Prediction cat{.picture = "b", .scores = {1, 0, 0}, .warnings = {"why"}};
  summary.add(cat);
  EXPECT_EQ(summary.to_json("set", kStyle),
            R"({"format":1,"file":"set","pictures":3,"not_sure":1,"counts":{"cat":1,"dog":0,"cow":2}})"
            "\n");
  EXPECT_EQ(summary.to_text("set", kStyle),
            "set: 3 pictures, not sure of 1\n"
            "           cat       1  33.33 % #############\n"
            "           dog       0   0.00 %\n"
            "           cow       2  66.67 % ###########################\n");
  PredictionSummary one(3);
  one.add(cat);
  test::expect_words(one.to_text("set", kStyle),
                     {"set: 1 picture, not sure of 1\n", " cat       1 100.00 % "});
  ReportStyle rows = kStyle;
  rows.thing = "row";
  test::expect_words(PredictionSummary(3).to_text("set", rows),
                     {"set: 0 rows, not sure of 0\n", "cat       0   0.00 %\n"});
}

/// One linear layer to two classes, with weights of 1.
SavedModel one_layer(const ImageShape& shape) {
  SavedModel model{.network = Network::parse("layers:\n  - linear: classes\n", "one.yaml", shape, 2),
                   .weights = AlignedBuffer<float>(static_cast<std::size_t>(2 * shape.features() + 2)),
                   .data = {},
                   .checkpoint = "run/checkpoints/step-00000007"};
  model.data.options.mean = {0};
  model.data.options.std = {1};
  std::ranges::fill(model.weights.span(), 1.0F);
  return model;
}

TEST(PredictorTest, RowsAreNormalisedAndKeepTheirOrder) {
  SavedModel model = one_layer({1, 1, 2});
  model.loss = LossKind::kMeanSquares;
  model.data.options.mean = {1};
  model.data.options.std = {2};
  EXPECT_EQ(Predictor(model).predict_rows({3, 5, 1, 1}), (std::vector<std::vector<float>>{{4, 4}, {1, 1}}));
  for (const int count : {1, 16, 17, Predictor::kBatch}) {
    std::vector<float> rows;
    for (int row = 0; row < count; ++row) rows.insert(rows.end(), {1, static_cast<float>(2 * row + 1)});
    const auto scores = Predictor(model).predict_rows(rows);
    ASSERT_EQ(std::ssize(scores), count);
    for (std::size_t row = 0; row < scores.size(); ++row)
      EXPECT_EQ(scores[row], std::vector<float>(2, static_cast<float>(row + 1)));
  }
  test::expect_error<InternalError>(
      [&] { Predictor(model).predict_rows(std::vector<float>(std::size_t{2} * (Predictor::kBatch + 1))); },
      {"samples <= kBatch"});
  test::expect_error<DataError>(
      [&] {
        Predictor(model).predict_rows({1, INFINITY});
      },
      {"a row to predict: value 1 of sample 0 is inf, too far from the mean 1 for the standard deviation 2"});
}

/// Pictures for a network of 2 x 2 pixels, and what was done to them.
class PreparationTest : public ::testing::Test {
 protected:
  using Pixels = std::vector<std::uint8_t>;
  using Done = std::vector<std::string>;

  static Picture picture_of(int width, const Pixels& pixels) {
    return {.name = "p.png", .width = width, .height = 2, .pixels = pixels};
  }
  PreparedPicture prepared(const Picture& picture) const { return Preparation(model_, options_)(picture); }
  void expect_prepared(const Picture& picture, const Pixels& pixels, const Done& done) const {
    const PreparedPicture ready = prepared(picture);
    EXPECT_EQ(ready.picture.pixels, pixels);
    EXPECT_EQ(ready.done, done);
  }

  SavedModel model_ = one_layer({1, 2, 2});
  PreparationOptions options_;
};

TEST_F(PreparationTest, ImagesOfASetAreOnlyInvertedWhereThatIsAskedFor) {
  Picture image = picture_of(2, {0, 1, 2, 255});
  image.from_idx = true;
  for (const char* answer : {"auto", "no"}) {
    options_.invert = answer;
    expect_prepared(image, {0, 1, 2, 255}, {"as in the file"});
  }
  options_.invert = "yes";
  expect_prepared(image, {255, 254, 253, 0}, {"inverted"});
}

TEST_F(PreparationTest, RawPicturesGetTheBackgroundOfTheTrainingImages) {
  const std::string kept = "not inverted: its background is that of the training images";
  options_.raw = true;
  for (const bool light : {false, true}) {
    model_.data.light_background = light;
    options_.invert = "auto";
    expect_prepared(picture_of(2, Pixels(4, 250)), Pixels(4, light ? 250 : 5), {light ? kept : "inverted"});
    expect_prepared(picture_of(2, Pixels(4, 5)), Pixels(4, light ? 250 : 5), {light ? "inverted" : kept});
    options_.invert = "yes";
    expect_prepared(picture_of(2, Pixels(4, 5)), Pixels(4, 250), {"inverted"});
    options_.invert = "no";
    expect_prepared(picture_of(2, Pixels(4, 250)), Pixels(4, 250), {});
  }
}

TEST_F(PreparationTest, AFitIsForPicturesThatAreScaledWhole) {
  options_.fit = PictureFit::kCrop;
  EXPECT_EQ(
      message_of<UsageError>([&] { Preparation(model_, options_); }),
      "--fit: ink is cut out and centred for this run, not scaled whole; add --raw, or leave --fit out");
  options_.raw = true, options_.invert = "no";
  const Picture wide = picture_of(4, {9, 1, 2, 9, 9, 3, 4, 9});
  expect_prepared(wide, {1, 2, 3, 4}, {"cropped"});
  options_.fit = PictureFit::kPad;
  EXPECT_EQ(prepared(wide).done, Done{"padded"});
  options_.fit = PictureFit::kSqueeze;
  EXPECT_EQ(prepared(wide).done, Done{"scaled"});
  options_.raw = false;
  EXPECT_NO_THROW(Preparation(model_, options_));
}

TEST_F(PreparationTest, InkIsCutOutAndLaidOnThePaperOfTheTrainingImages) {
  EXPECT_EQ(prepared(picture_of(2, Pixels(4, 0))).warnings, Done{"there is nothing on it"});
  expect_prepared(picture_of(2, Pixels(4, 0)), Pixels(4, 0), {});
  model_.data.light_background = true;
  expect_prepared(picture_of(2, Pixels(4, 0)), Pixels(4, 255), {"dark on light, like the training images"});
  Picture colour = picture_of(2, Pixels(12, 0));
  colour.channels = 3;
  EXPECT_EQ(message_of<DataError>([&] { prepared(colour); }),
            "p.png: 3 channels a pixel, but the network was trained on images with 1; give it pictures like "
            "those");
}

TEST_F(PreparationTest, PhotosAreInvertedOnRequestAlone) {
  model_ = one_layer({3, 2, 2});
  model_.data.options.set = "pictures";
  Picture photo = picture_of(2, Pixels(12, 250));
  photo.channels = 3;
  expect_prepared(photo, Pixels(12, 250), {});
  options_.invert = "yes";
  expect_prepared(photo, Pixels(12, 5), {"inverted"});
}

TEST(SampleNameTest, IsAHalfOrAFolderWithANumber) {
  const testing::TemporaryDirectory directory;
  const auto read = [](const std::string& text) {
    const auto name = parse_sample_name(text);
    return name ? fmt::format("{} {} {}", name->directory, name_of(name->half), name->index) : "none";
  };
  EXPECT_EQ(read("test[12]"), " test 12");
  EXPECT_EQ(read("train[0]"), " train 0");
  EXPECT_EQ(read("no/such/validation[3]"), "no/such validation 3");
  EXPECT_EQ(read(directory.path() + "[4]"), directory.path() + " test 4");
  for (const char* text : {"test", "test[x]", "test[-1]", "test[1", "test[1]x", "[1]", "no-such-folder[1]"})
    EXPECT_EQ(read(text), "none") << text;
  std::ofstream(directory.path("test[1]")) << "a file of that name";
  EXPECT_EQ(read(directory.path("test[1]")), "none");
}

TEST(SetSamplesTest, SamplesAreImagesOfTheHalfThatIsNamed) {
  SavedModel model = one_layer({1, 28, 28});
  DatasetOptions& options = model.data.options;
  options.set = "synthetic";
  options.train_samples = 5, options.test_samples = 3;
  TrainTestData data = load_dataset(options);
  options.leave_out = std::make_shared<const LeaveOutList>(parse_leave_out("1", "list"));  // not of places
  SetSamples samples(model);
  for (const auto& [half, index] :
       {std::pair(SetHalf::kTest, 2), {SetHalf::kTrain, 4}, {SetHalf::kTest, 0}}) {
    const Picture picture = samples.read({"", half, index}, "its name").picture;
    EXPECT_EQ(picture.name, "its name");
    EXPECT_TRUE(picture.from_idx);
    EXPECT_EQ(picture.shape(), (ImageShape{1, 28, 28}));
    const std::int32_t number = index;
    const ImageRows rows(data.half(half), {&number, 1});
    EXPECT_TRUE(std::ranges::equal(picture.pixels, rows[0])) << index;
  }
  const auto refused = message_of<DataError>([&] { samples.read({"", SetHalf::kTest, 3}, "test[3]"); });
  EXPECT_TRUE(refused.starts_with("test[3]: there is no sample 3 in ")) << refused;
  EXPECT_TRUE(refused.ends_with("; it holds 0 to 2")) << refused;
  options.validation = {.samples = 2};  // held out of the training half
  EXPECT_EQ(message_of<UsageError>([&] {
              samples.read({"", SetHalf::kValidation, 1}, "validation[1]");
            }),
            "validation[1]: the set has no validation half of its own; samples that a run held out "
            "(data.validation) are in the training half: say train[N]");
}

/// Makes a set of a table whose rows are all alike but for their class: `w` and 9. @returns its folder
std::string make_table_set(const testing::TemporaryDirectory& directory, const std::string& name, double w) {
  std::ofstream(directory.path("t.csv")) << fmt::format("w,kind,h\n{0},b,9\n{0},b,9\n{0},a,9\n{0},a,9\n", w);
  TableConversionOptions conversion{.to = directory.path(name), .split = {.test = {.samples = 1}}};
  conversion.table.from = directory.path("t.csv");
  conversion.table.label = "kind";
  convert_table(Env::posix(), conversion);
  return conversion.to;
}

/// The predictor normalises what it is given.
TEST(SetSamplesTest, RowsOfATableAreAsTheyWere) {
  const testing::TemporaryDirectory directory;
  SavedModel model = one_layer({2, 1, 1});
  model.data.options.set = "table";
  model.data.options.root = make_table_set(directory, "set", 2.5);
  model.data.options.mean = {3};
  model.data.options.std = {2};
  EXPECT_EQ(SetSamples(model).read({"", SetHalf::kTest, 1}, "test[1]").row, (std::vector<float>{2.5F, 9}));
}

TEST(SetSamplesTest, SamplesAreOfTheFolderThatIsNamedOrElseOfTheRuns) {
  const testing::TemporaryDirectory directory;
  SavedModel model = one_layer({2, 1, 1});
  model.data.options.set = "table";
  model.data.options.directory = make_table_set(directory, "own", 2.5);
  const std::string other = make_table_set(directory, "other", 4.5);
  SetSamples samples(model);
  for (const auto& [folder, w] : {std::pair<std::string, float>("", 2.5F), {other, 4.5F}, {"", 2.5F}})
    EXPECT_EQ(samples.read({folder, SetHalf::kTest, 0}, folder + "[0]").row, (std::vector<float>{w, 9}))
        << folder;
}

/// Finite weights that are so large that no output is a number.
TEST(PredictorTest, OutputsThatAreNoNumbersAreAnError) {
  SavedModel model = one_layer({1, 1, 2});
  Picture picture;
  picture.width = 2;
  picture.height = 1;
  picture.pixels = {255, 255};
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
