// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A terminal shows a run under way: the bar, its speed and time left, and the curve of accuracies.
#include "trainer/run/progress.hpp"

#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

// The curve of test accuracy: its rows at any width.

TEST(AccuracyCurveTest, ARowFitsAnyUsualWidthAndTheMarkStandsWhereTheAccuracyIs) {
  for (const int columns : {40, 80, 200}) {
    const int width = std::min(columns, 72);
    for (const double accuracy : {0.0, 0.1, 0.5, 0.97125, 1.0}) {
      const std::string row = curve_row(7, accuracy, columns, false);
      EXPECT_LE(display_width(row), width) << row;
      EXPECT_EQ(display_width(curve_row(7, accuracy, columns, true)), display_width(row));
      const std::size_t begin = row.find('|') + 1, end = row.rfind('|');
      const double place = static_cast<double>(row.find('*') - begin) / static_cast<double>(end - begin - 1);
      EXPECT_NEAR(place, accuracy, 0.5 / static_cast<double>(end - begin - 1) + 1e-9) << row;
    }
    EXPECT_EQ(curve_scale(columns).find('0'), curve_row(7, 0.5, columns, false).find('|'));
  }
  EXPECT_EQ(curve_scale(20), "     0----------1  test accuracy") << "no narrower";
}

/// The last step has two samples.
StepSeries series_of(std::int64_t steps, std::int64_t samples, double loss) {
  StepSeries series;
  series.steps = steps;
  series.samples = samples;
  series.last.samples = 2;
  series.last.loss_units.limbs[0] = static_cast<std::int64_t>(2 * loss * kLossScale);
  return series;
}

TEST(ProgressTest, RanksOtherThanTheFirstAreSilent) {
  ::testing::internal::CaptureStdout();
  Progress progress(1);
  progress.say("hello");
  progress.say(std::vector<LineField>{{"hello"}});
  progress.epoch_begins({.epoch = 1, .epochs = 1, .steps_taken = 0, .steps = 10, .steps_left_in_run = 10});
  progress.steps_taken(series_of(1, 64, 2.3));
  wipe_bar();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

/// 4 of 10 steps were taken before a resume; 100 of 160 samples and 2 steps since the last line. Nothing is left of what
/// was told before.
TEST(ProgressTest, SpeedAndEtaAreOfTheStepsSinceTheStart) {
  ::testing::internal::CaptureStdout();
  Progress progress(ProgressBar::Style::kBar);
  progress.epoch_begins({.epoch = 1, .epochs = 3, .steps_taken = 0, .steps = 10, .steps_left_in_run = 10});
  progress.steps_taken(series_of(10, 1000, 2.5));
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  const auto before = Clock::now();
  progress.epoch_begins(
      {.epoch = 2, .epochs = 3, .steps_taken = 4, .steps = 10, .steps_left_in_run = 200'000});
  const auto between = Clock::now();
  progress.steps_taken(series_of(1, 60, 2.5));  // drawn, the first
  std::this_thread::sleep_for(ProgressBar::kInterval);
  const double least = seconds_since(between);
  progress.steps_taken(series_of(2, 100, 1.25));
  const double most = seconds_since(before);
  wipe_bar();
  const std::string out = ::testing::internal::GetCapturedStdout(), line = out.substr(out.rfind("epoch"));
  EXPECT_EQ(line.find("epoch  2/3"), 0U) << out;
  test::expect_words(line, {"  7/10 steps", "loss 1.2500"});
  std::string shown = line.substr(line.find("steps") + 5);
  std::erase(shown, ',');
  const int samples = std::stoi(shown);
  EXPECT_GE(samples + 1, 160 / most) << out;
  EXPECT_LE(samples, 160 / least) << out;
  int hours = 0, minutes = 0, seconds = 0;
  char colon = 0;
  std::istringstream(line.substr(line.find("ETA") + 3)) >> hours >> colon >> minutes >> colon >> seconds;
  const double eta = 3600.0 * hours + 60 * minutes + seconds;  // 199,997 steps, where 3 took the time
  EXPECT_GE(eta + 1, least / 3 * 199'997) << out;
  EXPECT_LE(eta - 1, most / 3 * 199'997) << out;
}

TEST(ProgressTest, FieldsGoByTheirImportance) {
  const auto fields = progress_fields({.epoch = 1,
                                       .epochs = 10,
                                       .step = 120,
                                       .steps = 469,
                                       .samples_per_second = 54321,
                                       .loss = 0.1234,
                                       .eta_seconds = 65});
  EXPECT_EQ(join(fields), "epoch  1/10  120/469 steps  54,321 samples/s  loss 0.1234  ETA 1:05");
  test::expect_words(join(progress_fields({.samples_per_second = 1e300})),
                     {" 1,000,000,000,000,000 samples/s"});
  std::vector<int> importance;
  for (const LineField& field : fields) importance.push_back(field.importance);
  EXPECT_EQ(importance, (std::vector<int>{9, 3, 1, 5, 4}));
}

TEST(ProgressTest, TheBarIsTheShareOfTheEpochThatIsDone) {
  for (const auto& [step, steps, share] : {std::tuple(0, 0, 0.0), {0, 1, 0.0}, {1, 1, 1.0}, {1, 4, 0.25}})
    EXPECT_EQ(progress_fraction({.step = step, .steps = steps}), share) << step << " of " << steps;
}

TEST(ProgressTest, BehindTheLastStepNoTimeIsLeft) {
  ::testing::internal::CaptureStdout();
  Progress progress(ProgressBar::Style::kBar);
  progress.epoch_begins({.epoch = 1, .epochs = 1, .steps_taken = 0, .steps = 3, .steps_left_in_run = 3});
  std::this_thread::sleep_for(
      std::chrono::milliseconds(600));  // as a mean of three steps it would be a second
  progress.steps_taken(series_of(3, 90, 1));
  wipe_bar();
  const std::string out = ::testing::internal::GetCapturedStdout();
  test::expect_words(out, {"3/3 steps", "ETA 0:00"});
}

TEST(DataWatchTest, AWaitIsSaidAfterFiveSecondsThenEveryThirtyAndWhenItIsOver) {
  DataWatch watch(1, "node2", /*silent=*/true);  // that does not look by itself
  const auto said_at = [&](std::optional<double> seconds) {
    ::testing::internal::CaptureStderr();
    watch.look(seconds ? std::optional(ReadUnderWay{"f", *seconds}) : std::nullopt);
    return ::testing::internal::GetCapturedStderr();
  };
  const auto waits = [](int seconds) {
    return fmt::format(
        "lockstep: rank 1 on node2 waits for its data: f has been read for {} s; see the disk, "
        "or the network that it is on\n",
        seconds);
  };
  const std::string over = "lockstep: rank 1 on node2: f could be read again, and the run goes on\n";
  EXPECT_EQ(said_at(4.9), "");
  EXPECT_EQ(said_at(5), waits(5));
  EXPECT_EQ(said_at(34.9), "");
  EXPECT_EQ(said_at(35), waits(35));
  EXPECT_EQ(said_at(35), "") << "not another read";
  EXPECT_EQ(said_at(4), over) << "another read";
  EXPECT_EQ(said_at(6), waits(6));
  EXPECT_EQ(said_at({}), over);
  EXPECT_EQ(said_at({}), "");
}

// The line under a bar: its fields at any width.

std::vector<ProgressStatus> progress_of_all_sizes() {
  return {{.epoch = 1,
           .epochs = 4,
           .step = 1,
           .steps = 7,
           .samples_per_second = 1,
           .loss = 2.3,
           .eta_seconds = 3},
          {.epoch = 3,
           .epochs = 10,
           .step = 120,
           .steps = 469,
           .samples_per_second = 143210,
           .loss = 0.1234,
           .eta_seconds = 65},
          {.epoch = 17,
           .epochs = 1000000000,
           .step = 4294967295,
           .steps = 4294967295,
           .samples_per_second = 98765432,
           .loss = 1e30,
           .eta_seconds = 1e9},
          {.epoch = 1,
           .epochs = 1,
           .step = 0,
           .steps = 0,
           .samples_per_second = std::nan(""),
           .loss = std::nan(""),
           .eta_seconds = 0}};
}

TEST(ProgressLineTest, FitsEveryWidth) {
  for (const ProgressStatus& facts : progress_of_all_sizes()) {
    for (int columns = 39; columns <= 199; ++columns) {
      for (const bool unicode : {false, true}) {
        const auto line = fit_with_bar(progress_fields(facts), progress_fraction(facts), columns, unicode);
        EXPECT_LE(display_width(line), columns) << line;
        EXPECT_EQ(line.find("epoch"), 0U) << line;
      }
      EXPECT_LE(display_width(fit(progress_fields(facts), columns)), columns);
    }
  }
}

TEST(ProgressLineTest, UsesTheRoomThereIs) {
  const ProgressStatus facts = progress_of_all_sizes()[1];
  EXPECT_EQ(fit_with_bar(progress_fields(facts), progress_fraction(facts), 119, false),
            "epoch  3/10  ######..................  120/469 steps  143,210 samples/s  loss 0.1234  ETA 1:05");
  EXPECT_EQ(fit_with_bar(progress_fields(facts), progress_fraction(facts), 79, false),
            "epoch  3/10  ##.......  120/469 steps  143,210 samples/s  loss 0.1234  ETA 1:05");
  EXPECT_EQ(fit_with_bar(progress_fields(facts), progress_fraction(facts), 59, false),
            "epoch  3/10  ##......  120/469 steps  loss 0.1234  ETA 1:05");
  EXPECT_EQ(fit_with_bar(progress_fields(facts), progress_fraction(facts), 39, false),
            "epoch  3/10  loss 0.1234  ETA 1:05");
  EXPECT_EQ(fit(progress_fields(facts), kAnyWidth),
            "epoch  3/10  120/469 steps  143,210 samples/s  loss 0.1234  ETA 1:05");
}

}  // namespace
}  // namespace lockstep
