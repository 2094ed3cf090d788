// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs beside each other.
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/reports/run_folder.hpp"
#include "trainer/checkpoint/trail.hpp"
#include "trainer/reports/runs.hpp"

namespace lockstep {
namespace {

using namespace testing;

class RunComparisonTest : public ::testing::Test {
 protected:
  RunComparisonTest() {
    folders_.run("a", {start_line(), epoch_line(1, 2, 0.5, 0.61), epoch_line(2, 4, 0.25, 0.7)});
    folders_.run("b", {start_line(), epoch_line(1, 2, 0.6, 0.5), epoch_line(2, 4, 0.5, 0.4)}, "0.05");
  }

  RunComparison compare(const std::string& first = "a", const std::string& second = "b") const {
    return compare_runs(Env::posix(), {folders_.path(first), folders_.path(second)});
  }

  /// Steps of a network of two tensors, with momentum. @param odd  the step whose slot is another; 0: none
  void write_trail(const std::string& run, std::int64_t odd = 0, std::size_t slot = 0,
                   std::size_t elements = 6, std::int64_t steps = 4, std::int64_t first = 1) const {
    const TrailHead head{.trained = {{"fc.weight", {elements}}, {"fc.bias", {2}}},
                         .kept = {{"bn.mean", {2}}},
                         .buffers = {"momentum"},
                         .facts = {}};
    std::vector<std::byte> bytes = write_trail_head(head);
    TrailPosition position = trail_start(bytes);
    for (std::int64_t step = first; step <= steps; ++step) {
      TrailRecord record{.step = step, .arithmetic = 2, .apart = 0, .fingerprints = {}};
      for (std::size_t i = 0; i < head.slots(); ++i)
        record.fingerprints.push_back(static_cast<std::uint64_t>(step) * 100 + i);
      if (step == odd) record.fingerprints[slot] += 1;
      const auto written = write_trail_record(head, record, position);
      bytes.insert(bytes.end(), written.begin(), written.end());
    }
    folders_.write(run + "/trail.bin", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  RunFolders folders_;
};

TEST_F(RunComparisonTest, ListsOfMapsDiffer) {
  const std::string usual = "model: net\ntrain: {optimizer: {lr: 0.01}, groups: [";
  folders_.write("a/job.yaml",
                 usual + "{match: fc*, lr_factor: 0.1}, {match: \"a, b\"}]}\ndata: {augment: []}\n");
  folders_.write("b/job.yaml",
                 usual + "]}\ndata: {augment: [{crop: {padding: 4}}, {scale: {factor: [0.5, 1]}}]}\n");
  const RunComparison comparison = compare();
  ASSERT_EQ(comparison.keys.size(), 2U);
  EXPECT_EQ(comparison.keys[0].key, "data.augment");
  EXPECT_EQ(comparison.keys[0].values[0], "[]");
  EXPECT_EQ(comparison.keys[0].values[1], "[{crop: {padding: 4}}, {scale: {factor: [0.5, 1]}}]");
  EXPECT_EQ(comparison.keys[1].key, "train.groups");
  EXPECT_EQ(comparison.keys[1].values[0], "[{match: fc*, lr_factor: 0.1}, {match: \"a, b\"}]");
  test::expect_words(comparison_text(compare("a", "a"), 79),
                     {"their jobs are the same, but for run.dir\n\n"});
}

TEST_F(RunComparisonTest, LongValuesAreClippedOnlyWhereThatHidesNoDifference) {
  const std::string front(50, 'f'), back(50, 'b');
  folders_.write("a/job.yaml", "model: " + front + "-one-" + back + "\n");
  folders_.write("b/job.yaml", "model: " + front + "-two-" + back + "\n");
  const std::string alike = comparison_text(compare(), kAnyWidth);
  test::expect_words(alike, {"-one-", "-two-"});
  folders_.write("b/job.yaml", "model: net\n");
  const std::string clipped = "fff" + std::string(25, 'f') + "..." + std::string(29, 'b') + "  net\n";
  test::expect_words(comparison_text(compare(), kAnyWidth), {"  " + clipped});
  for (const std::size_t length : {2000U, 2001U}) {  // longer ones are clipped here, too
    const std::string end(length - 1003, 'b');
    folders_.write("a/job.yaml", "model: " + std::string(998, 'f') + "-one-" + end + "\n");
    folders_.write("b/job.yaml", "model: " + std::string(998, 'f') + "-two-" + end + "\n");
    EXPECT_EQ(comparison_text(compare(), kAnyWidth).find("-one-") != std::string::npos, length == 2000);
  }
}

TEST_F(RunComparisonTest, LongPathsAreClipped) {
  const std::string run = std::string(220, 'x') + "/" + std::string(220, 'y');
  folders_.run(run, {epoch_line(1, 2, 0.5, 0.61)});
  const std::string text = comparison_text(compare(run, run), kAnyWidth);
  EXPECT_EQ(text.substr(0, text.find('\n')), "A  " + clip_middle(folders_.path(run), 400));
  test::expect_words(single_spaced(text), {"\nranks - -\n"});
}

TEST_F(RunComparisonTest, FirstStepThatDiffersIsNamedWithItsTensor) {
  write_trail("a");
  const struct {
    std::int64_t step;
    std::size_t slot;
    const char* words;
  } cases[] = {{1, 0, "step 1, first in the gradient of fc.weight; from the first step that both have on"},
               {2, 2, "step 2, first in fc.weight; the same bits in 1 step before"},
               {3, 4, "step 3, first in bn.mean; the same bits in 2 steps before"},
               {4, 6, "step 4, first in momentum of fc.bias; the same bits in 3 steps before"}};
  for (const auto& [step, slot, words] : cases) {
    write_trail("b", step, slot);
    test::expect_words(comparison_text(compare(), 200), {fmt::format("\nA and B: they part at {}\n", words)});
    EXPECT_EQ(comparison_json(compare()).at("trails").at(0).at("first_step"), step);
  }
}

TEST_F(RunComparisonTest, TrailsThatCannotBeComparedSayWhy) {
  write_trail("a");
  EXPECT_NE(compare().trails[0].why_not.find("not compared: "), std::string::npos);
  write_trail("b", 0, 0, 6, 0);
  EXPECT_EQ(compare().trails[0].why_not, "not compared: there is no step that both have");
  write_trail("b", 0, 0, 7);
  EXPECT_EQ(compare().trails[0].why_not, "not compared: networks or optimisers have other tensors");
  folders_.write("b/trail.bin", "LSTRAIL no more");
  EXPECT_NE(compare().trails[0].why_not.find("trail.bin"), std::string::npos);
  EXPECT_EQ(compare().trails[0].damaged, 0);
}

/// B's trail was lost with its first two steps.
TEST_F(RunComparisonTest, StepsThatOneTrailHasNotArePassedOver) {
  write_trail("a");
  write_trail("b", 0, 0, 6, 4, 3);
  const std::string alike = "\nA and B: the same bits in all 2 steps that both have\n";
  test::expect_words(comparison_text(compare(), 200), {alike});
  test::expect_words(comparison_text(compare("b", "a"), 200), {alike});
  write_trail("b", 4, 2, 6, 4, 3);
  test::expect_words(
      comparison_text(compare(), 200),
      {"\nA and B: they part at step 4, first in fc.weight; the same bits in 1 step before\n"});
}

/// A fingerprint of the second of four records is another.
TEST_F(RunComparisonTest, DamagedRecordsAreCounted) {
  for (const char* run : {"a", "b"}) write_trail(run);
  const std::string path = folders_.path("b/trail.bin");
  const std::uint64_t second = read_trail(Env::posix(), path, 4).end_of(1) + kTrailRecordFacts;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(second)).put('x');
  file.close();
  EXPECT_EQ(compare().trails[0].compared, 3);
  EXPECT_EQ(compare("b", "a").trails[0].compared, 3);
  test::expect_words(comparison_text(compare(), 200),
                     {"\nA and B: the same bits in all 3 steps that both have; 1 record damaged\n"});
  EXPECT_EQ(comparison_json(compare()).at("trails").at(0).at("records_damaged"), 1);
}

TEST_F(RunComparisonTest, JobsThatCannotBeReadAreNotAlike) {
  folders_.write("a/job.yaml", "model: [\n");
  std::filesystem::remove(folders_.path("b/job.yaml"));
  test::expect_words(
      comparison_text(compare(), 200),
      {"\nthe job of A could not be read: ", "\nthe job of B could not be read: it has no job.yaml\n\n"});
  EXPECT_EQ(comparison_text(compare(), 200).find("their jobs are the same"), std::string::npos);
  folders_.run("c", {start_line()});
  EXPECT_TRUE(compare("c", "b").keys.empty()) << "a job alone differs from none";
}

TEST_F(RunComparisonTest, CurvesNameTheSamplesThatTheyAreOfWhereRunsDiffer) {
  folders_.run("b", {start_line(), R"({"event":"epoch","epoch":1,"step":2,"validation_accuracy":0.5})",
                     R"({"event":"epoch","epoch":2,"step":4,"validation_accuracy":0.75})"});
  const PlotStyle style{.columns = 60, .rows = 6};
  test::expect_words(comparison_curves(compare(), style),
                     {"\ntest (A), validation (B) accuracy, %, by epoch: A B\n"});
  test::expect_words(comparison_curves(compare("b", "b"), style),
                     {"\nvalidation accuracy, %, by epoch: A B\n"});
  folders_.run("none", {start_line()});
  test::expect_words(comparison_curves(compare("b", "none"), style),
                     {"\nvalidation accuracy, %, by epoch: A B\n"});
}

TEST_F(RunComparisonTest, AComparisonIsToldToTheLastWord) {
  folders_.run(
      "a", {start_line(), epoch_line(1, 2, 0.5, 0.61), epoch_line(2, 4, 0.25, 0.7), end_line(4, 0.25, 0.7)});
  folders_.run(
      "b",
      {start_line(3),
       R"({"event":"epoch","epoch":1,"step":2000,"train_loss":0.75,"train_seconds":90,"validation_loss":0.5,)"
       R"("validation_accuracy":0.5,"ema_validation_accuracy":0.625})"},
      "0.05");
  write_trail("a");
  write_trail("b");
  const std::string paths = "A  " + folders_.path("a") + "\nB  " + folders_.path("b") + "\n";
  EXPECT_EQ(comparison_text(compare(), kAnyWidth), paths + R"(
what their jobs say  A     B
train.optimizer.lr   0.01  0.05

what they came to       A                       B
state                   finished                failed
epochs                  2                       1
steps                   4                       2,000
test accuracy, %        70.00                   -
validation accuracy, %  -                       50.00
accuracy of the ema, %  -                       62.50
best accuracy, %        70.00 (test, epoch 2)   50.00 (validation, epoch 1)
test loss               0.2500                  -
lowest loss             0.2500 (test, epoch 2)  0.5000 (validation, epoch 1)
train loss              0.2500                  0.7500
time                    12.5 s                  1:30
ranks                   2                       3
weights sha256          aaaaaaaaaaaaaaaa        -

A and B: the same bits in all 4 steps that both have
)");
  const std::string below = comparison_text(compare(), 30);
  test::expect_words(
      below, {"what their jobs say\ntrain.optimizer.lr\n  A  0.01\n  B  0.05\n\nwhat they came to\n"});
  test::expect_words(comparison_text(compare(), 76), {"\nwhat they came to       A  "});
  test::expect_words(comparison_text(compare(), 75), {"\nwhat they came to\nstate\n"});
  const auto json = comparison_json(compare());
  EXPECT_EQ(json.at("format"), 1);
  EXPECT_EQ(json.at("keys"), (nlohmann::ordered_json{{"train.optimizer.lr", {"0.01", "0.05"}}}));
  EXPECT_EQ(json.at("trails"),
            nlohmann::ordered_json::array({{{"runs", {folders_.path("a"), folders_.path("b")}},
                                            {"steps_compared", 4},
                                            {"records_damaged", 0},
                                            {"first_step", nullptr},
                                            {"tensor", ""},
                                            {"why_not", ""}}}));
  EXPECT_EQ(
      json.at("runs").at(1).at("curve"),
      nlohmann::ordered_json::parse(R"([{"epoch": 1, "step": 2000, "train_loss": 0.75, "test_loss": null,
                "test_accuracy": null, "validation_loss": 0.5, "validation_accuracy": 0.5,
                "ema_accuracy": 0.625, "swa_accuracy": null}])"));
}

TEST_F(RunComparisonTest, LinesStandBelowEachOtherWhereColumnsDoNotFit) {
  for (const int width : {30, 50, 79}) {
    std::istringstream lines(comparison_text(compare(), width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
  }
}

TEST_F(RunComparisonTest, CurvesAreThoseOfTheEpochs) {
  const std::string text = comparison_curves(compare(), {.columns = 60, .rows = 6});
  test::expect_words(text, {"test accuracy, %, by epoch: A B\n", "70 +", "40 +", " 0.6 +", "0.25 +"});
  for (const auto& [row, mark] : {std::pair("70 +", 'A'), {"40 +", 'B'}})
    EXPECT_EQ(text.at(text.find('\n', text.find(row)) - 1), mark) << text;
}

TEST_F(RunComparisonTest, LossesThatLieFarApartAreDrawnLogarithmically) {
  const auto title_of = [&](double high, double low) {
    for (const char* run : {"a", "b"})
      folders_.run(run, {start_line(), epoch_line(1, 2, high, 0.5), epoch_line(2, 4, low, 0.6)});
    const std::string text = comparison_curves(compare(), {.columns = 60, .rows = 6});
    const std::size_t at = text.find("test loss");
    return text.substr(at, text.find(", by epoch: A B\n", at) - at);
  };
  EXPECT_EQ(title_of(30, 1), "test loss");
  EXPECT_EQ(title_of(31, 1), "test loss (logarithmic)");
  EXPECT_EQ(title_of(31, 0), "test loss");
  EXPECT_EQ(title_of(0.5, 0.02), "test loss");
}

TEST_F(RunComparisonTest, AveragesHaveRowsAndCurvesWhereARunHasSome) {
  EXPECT_EQ(comparison_text(compare(), 79).find("swa"), std::string::npos);
  std::vector<std::string> lines = {start_line()};
  for (const int epoch : {1, 2})
    lines.push_back(fmt::format(
        R"({{"event":"epoch","epoch":{0},"step":{0},"test_accuracy":0.5,"swa_test_accuracy":0.8{0}}})",
        epoch));
  folders_.run("b", lines);
  const std::string text = comparison_text(compare(), 79);
  test::expect_words(text, {"accuracy of the swa, %", "82.00", "\nlowest test loss "});
  EXPECT_EQ(text.find("of the ema"), std::string::npos) << text;
  test::expect_words(comparison_curves(compare(), {.columns = 60, .rows = 6}),
                     {"test accuracy of the swa, %, by epoch: A B\n"});
  EXPECT_EQ(comparison_json(compare()).at("runs").at(1).at("curve").at(1).at("swa_accuracy"), 0.82);
}

TEST_F(RunComparisonTest, HostileValuesStayText) {
  folders_.write("b/job.yaml",
                 "model: \"\\u202E" + std::string(10000, 'm') + "\"\ntrain: {optimizer: {lr: 1}}\n");
  const std::string text = comparison_text(compare(), kAnyWidth);
  EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos);
  EXPECT_LT(text.size(), 8000U);
}

TEST_F(RunComparisonTest, FoldersWithoutARunAndOddNumbersAreRefused) {
  folders_.write("other/notes.txt", "");
  EXPECT_THROW(compare("a", "other"), MissingDataError);
  for (const std::size_t count : {1U, 27U})
    EXPECT_EQ(message_of<UsageError>(
                  [&] { compare_runs(Env::posix(), std::vector<std::string>(count, folders_.path("a"))); }),
              fmt::format("compare takes 2 to 26 runs, these are {}; 'lockstep runs' lists them", count));
  EXPECT_EQ(compare_runs(Env::posix(), std::vector<std::string>(26, folders_.path("a") + "/")).runs[25].path,
            folders_.path("a"));
}

}  // namespace
}  // namespace lockstep
