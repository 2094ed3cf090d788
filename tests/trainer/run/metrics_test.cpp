// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// metrics.jsonl holds whole lines only, whatever the disk does, and is on disk before a checkpoint that notes it.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/run/progress.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_writer.hpp"
#include "trainer/run/training_run.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace {

std::mutex synced_mutex;
std::vector<std::string> synced_names;  ///< last components of the files, in the order of their syncs

int note_sync(int fd, long call) {
  std::error_code ignored;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored);
  {
    const std::lock_guard lock(synced_mutex);
    synced_names.push_back(path.filename());
  }
  return static_cast<int>(syscall(call, fd));
}

}  // namespace

// In place of the C library's, for the whole of this program.
extern "C" int fsync(int fd) {
  return note_sync(fd, SYS_fsync);
}
extern "C" int fdatasync(int fd) {
  return note_sync(fd, SYS_fdatasync);
}

namespace lockstep {
namespace {

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() : path_(::testing::TempDir() + "metrics-XXXXXX") { close(mkstemp(path_.data())); }
  ~MetricsTest() override { unlink(path_.c_str()); }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string path_;
};

TEST_F(MetricsTest, AppendsOneLineForEachEvent) {
  MetricsWriter metrics(Env::posix(), path_);
  metrics.write({{"step", 1}});
  metrics.write({{"step", 2}});
  metrics.sync();
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(MetricsTest, WhatAFullDiskCutShortIsTakenBackAndWrittenLater) {
  MetricsWriter metrics(Env::posix(), path_);
  metrics.write({{"step", 1}});
  {
    const SmallDisk disk(15);
    EXPECT_THROW(metrics.write({{"step", 2}}), IoError);
    EXPECT_THROW(metrics.write({{"step", 3}}), IoError);
    EXPECT_THROW(metrics.sync(), IoError) << "a checkpoint must not count on these lines";
    EXPECT_FALSE(metrics.is_complete());
    EXPECT_EQ(text(), "{\"step\":1}\n");
  }
  metrics.write({{"step", 4}});
  EXPECT_TRUE(metrics.is_complete());
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"step\":4}\n");
}

TEST_F(MetricsTest, PositionIsThatOfAllLinesHoweverOftenTheRunBegan) {
  {
    MetricsWriter first(Env::posix(), path_);
    first.write({{"step", 1}});
    EXPECT_EQ(first.position().lines, 1);
  }
  MetricsWriter second(Env::posix(), path_);
  second.write({{"step", 2}});
  const std::string all = text();
  EXPECT_EQ(second.position(), (CheckpointMetrics{2, hex(sha256(std::as_bytes(std::span(all))))}));
}

/// A strategy that only tells how long it took.
class TimedStrategy final : public ParallelStrategy {
 public:
  TimedStrategy() : ParallelStrategy({}, {}, {.samples = 1, .global_batch = 1}, 1) {}

  void spend(const StepTimes& times) { times_ = times; }

  StepSeries run(const StepPosition&, std::int64_t, bool) override { throw InternalError("run"); }
  Evaluation evaluate(EvaluatedPart, const LeaveEvaluation&) override { throw InternalError("evaluate"); }
  TrainedState whole_state() override { throw InternalError("whole_state"); }
  void distribute() override {}
  void collect() override {}
  void visit_own_state(const StateVisit&) override { throw InternalError("visit_own_state"); }
  StrategyDescription describe() const override { return {}; }
};

/// Three ranks, after 100 seconds in earlier epochs. In this one they are busy for 2, 3 and 7 seconds, and wait 6, 5 and 1.
TEST(EpochClockTest, TimesOfRanksAreThoseOfTheirEpoch) {
  constexpr std::array kBusy = {2.0, 3.0, 7.0};
  run_thread_ranks(3, [&](Communicator& comm) {
    TimedStrategy strategy;
    strategy.spend({.total = 100, .exposed = 20});
    EpochClock clock;
    clock.start(strategy);
    strategy.spend({.total = 108, .exposed = 20 + 8 - at(kBusy, comm.rank())});
    const auto ranks = clock.all_ranks(strategy, nullptr, comm);
    ASSERT_EQ(ranks.size(), 3U);
    nlohmann::ordered_json event;
    clock.add_to(event, ranks);
    EXPECT_EQ(event["rank_busy_seconds"], nlohmann::ordered_json({2.0, 3.0, 7.0}));
    EXPECT_EQ(event["rank_exposed_seconds"], nlohmann::ordered_json({6.0, 5.0, 1.0}));
    EXPECT_DOUBLE_EQ(event["exposed_seconds"], 4);
    EXPECT_EQ(event["slowest_rank"], 2);
    EXPECT_DOUBLE_EQ(event["rank_skew"], 7.0 / 4 - 1);
    EXPECT_FALSE(event.contains("step_seconds_p50"));
    clock.add(3, 6);  // three steps of 2 seconds, and one of 8
    clock.add(1, 8);
    clock.add_to(event, ranks);
    EXPECT_EQ(event["step_seconds_p50"], 2);
    EXPECT_EQ(event["step_seconds_p99"], 8);
    clock.start(strategy);
    EXPECT_EQ(clock.all_ranks(strategy, nullptr, comm).front().busy_seconds, 0) << "another epoch";
    EXPECT_EQ(clock.percentile(0.5), 0);
  });
}

/// A run's directory and what a training run does with it.
class SavingTest : public ::testing::Test {
 protected:
  SavingTest() {
    job_.run.dir = directory_.path() + "/run";
    job_.run.resume = "auto";
    run_ = std::make_unique<RunDirectory>(Env::posix(), job_);
  }
  std::string metrics() const {
    std::ifstream file(job_.run.dir + "/metrics.jsonl");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryDirectory directory_;
  Job job_;
  void open(std::int64_t step, const CheckpointFacts& facts = {}) {
    files_ = std::move(*run_).open(step, true, facts);
  }

  std::unique_ptr<RunDirectory> run_;
  std::unique_ptr<RunWriter> files_;
};

TEST_F(SavingTest, MetricsAndTrailAreSyncedBeforeTheCheckpointThatNotesThem) {
  const TrailHead head{.trained = {{"a", {1}}}, .kept = {}, .buffers = {}, .facts = {}};
  open(0);
  files_->open_trail(head, {}, std::nullopt);
  files_->write({{"event", "step"}, {"step", 1}});
  const std::vector<TrailRecord> records = {{.step = 1, .arithmetic = 2, .apart = 0, .fingerprints = {7, 7}}};
  files_->write_trail(records, {});
  synced_names.clear();
  files_->save(make_state(1));
  files_->finish();
  const auto at = [](const std::string& name) { return std::ranges::find(synced_names, name); };
  ASSERT_NE(at("manifest.json"), synced_names.end());
  EXPECT_LT(at("metrics.jsonl"), at("model.safetensors"));
  EXPECT_LT(at("trail.bin"), at("model.safetensors"));
  EXPECT_LT(at("model.safetensors"), at("manifest.json"));
  const auto facts = load_manifest(Env::posix(), job_.run.dir + "/checkpoints/step-00000001").facts;
  const std::string all = metrics();
  EXPECT_EQ(facts.metrics, (CheckpointMetrics{1, hex(sha256(std::as_bytes(std::span(all))))}));
  EXPECT_EQ(facts.trail->records, 1);
}

TEST_F(SavingTest, TheBestOfAnEarlierStartIsStillTheBest) {
  CheckpointState best = make_state(1);
  best.facts.test_accuracy = 0.75;
  save_checkpoint(Env::posix(), job_.run.dir, best);
  save_checkpoint(Env::posix(), job_.run.dir, make_state(2));
  open(2);
  EXPECT_FALSE(files_->would_be_best(0.75));
  EXPECT_TRUE(files_->would_be_best(0.76));
}

TEST_F(SavingTest, DoubtIsSaidAndRecordedWhereACheckpointMayBeAffected) {
  const auto doubt = [&](std::int64_t sure) {
    return files_->note_doubt({.sure_step = sure, .found_step = 9, .what = "rank 1 erred"});
  };
  const std::string record = job_.run.dir + "/doubt.json";
  open(0);
  EXPECT_EQ(doubt(0), "Nothing was saved before: the same command begins anew");
  for (const int step : {2, 4}) save_checkpoint(Env::posix(), job_.run.dir, make_state(step));
  EXPECT_EQ(doubt(4), "The same command goes on from the checkpoint of step 4");
  EXPECT_FALSE(std::filesystem::exists(record));
  EXPECT_EQ(doubt(3),
            "Checkpoints after step 3 may be affected: the same command goes on from that of step 2");
  EXPECT_EQ(read_doubt(Env::posix(), job_.run.dir)->sure_step, 3);
  EXPECT_EQ(
      doubt(1),
      "Checkpoints after step 1 may be affected: no other is left, and the same command refuses to go on; "
      "begin anew with run.resume=never");
  std::filesystem::rename(job_.run.dir, job_.run.dir + "-moved");
  EXPECT_EQ(doubt(1), "Nothing was saved before: the same command begins anew");
}

/// A line that does not fit is told once, and follows when there is room.
TEST_F(SavingTest, LinesThatCannotBeWrittenAreKeptWhereTheJobSaysSo) {
  open(0);
  const std::string much(8192, 'x');
  for (const auto action : {OnSaveError::kContinue, OnSaveError::kStop}) {
    job_.run.on_save_error = action;
    ::testing::internal::CaptureStderr();
    {
      const SmallDisk disk(4096);
      for (int time = 0; time < 2; ++time) {
        if (action == OnSaveError::kStop) {
          EXPECT_THROW(files_->write({{"event", "step"}, {"much", much}}), IoError);
        } else {
          EXPECT_NO_THROW(files_->write({{"event", "step"}, {"much", much}}));
        }
      }
    }
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(said, '\n'), action == OnSaveError::kContinue ? 1 : 0) << said;
    EXPECT_EQ(said.ends_with("; kept in memory for later (run.on_save_error: continue)\n"),
              action == OnSaveError::kContinue)
        << said;
    files_->write({{"event", "step"}});
  }
  const std::string text = metrics();
  EXPECT_EQ(std::ranges::count(text, '\n'), 6);
}

TEST_F(SavingTest, ALogHasTheTimeBeforeEachLine) {
  open(3);
  files_->log("one\ntwo");
  std::ifstream status(job_.run.dir + "/status.json");
  EXPECT_EQ(nlohmann::json::parse(status),
            nlohmann::json::parse(R"({"version": 1, "state": "running", "step": 3, "exclude_hosts": []})"));
  files_.reset();
  std::ifstream file(job_.run.dir + "/log/rank-0.log");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ASSERT_EQ(std::ranges::count(text, '\n'), 1) << text;
  EXPECT_EQ(
      text.substr(0, 1) + text.substr(5, 1) + text.substr(11, 1) + text.substr(20, 1) + text.substr(24, 5),
      "[- .] one")
      << text;
}

TEST_F(SavingTest, ARunThatBeginsAnewLeavesNoRanksOfTheOneBefore) {
  const std::string ranks = job_.run.dir + "/" + kRankFile;
  std::ofstream(ranks) << "of another run";
  open(0);  // that one was interrupted before it saved
  EXPECT_FALSE(std::filesystem::exists(ranks));

  save_checkpoint(Env::posix(), job_.run.dir, make_state(1));
  std::ofstream(ranks) << "of another run";
  files_.reset();
  job_.run.resume = "never";
  run_ = std::make_unique<RunDirectory>(Env::posix(), job_);
  open(0);
  EXPECT_FALSE(std::filesystem::exists(ranks));
  std::ifstream aside(job_.run.dir + "/previous-1/" + kRankFile);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(aside), {}), "of another run");
}

/// Four steps an epoch; the second checkpoint is the end, which needs no third.
TEST_F(SavingTest, AStateIsSavedOnce) {
  run_.reset();
  const Job job = parse_job(
      "model: mlp\n"
      "data: {set: synthetic, train_samples: 64, test_samples: 16, global_batch: 16}\n"
      "train: {epochs: 2}\n"
      "parallel: {device: cpu, grain: 8}\n"
      "run: {checkpoint_every_steps: 4, dir: " +
          directory_.path("trained") + "}\n",
      "test.yaml", {});
  synced_names.clear();
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(train(job), 0);
  test::expect_words(::testing::internal::GetCapturedStdout(), {"weights sha256 "});
  EXPECT_EQ(std::ranges::count(synced_names, "manifest.json"), 2);
  EXPECT_EQ(list_checkpoints(Env::posix(), job.run.dir).front().step, 8);
}

TEST_F(SavingTest, LostMetricsLeaveAnEvent) {
  CheckpointFacts facts;
  facts.metrics = CheckpointMetrics{30, std::string(64, 'a')};
  open(12, facts);
  auto lost = nlohmann::json::parse(metrics());
  const std::string time = lost.at("time");  // "2026-11-23T16:07:41.123Z"
  EXPECT_TRUE(time.size() == 24 && time[10] == 'T' && time.ends_with('Z')) << time;
  lost.erase("time");
  EXPECT_EQ(lost, nlohmann::json::parse(R"({"event":"lost","step":12,"lines_noted":30})"));
}

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

/// 4 of 10 steps were taken before a resume; 100 of 160 samples and 2 steps since the last line.
TEST(ProgressTest, SpeedAndEtaAreOfTheStepsSinceTheStart) {
  ::testing::internal::CaptureStdout();
  Progress progress(ProgressBar::Style::kBar);
  const auto before = Clock::now();
  progress.epoch_begins(
      {.epoch = 2, .epochs = 3, .steps_taken = 4, .steps = 10, .steps_left_in_run = 200'000});
  const auto between = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  progress.steps_taken(series_of(1, 60, 2.5));  // drawn, the first
  std::this_thread::sleep_for(ProgressBar::kInterval);
  const double least = seconds_since(between);
  progress.steps_taken(series_of(2, 100, 1.25));
  const double most = seconds_since(before);
  wipe_bar();
  const std::string out = ::testing::internal::GetCapturedStdout(), line = out.substr(out.rfind("epoch"));
  EXPECT_EQ(line.find("epoch  2/3"), 0U) << out;
  test::expect_words(line, {"  7/10 steps", "loss 1.2500"});
  const int samples = std::stoi(line.substr(line.find("steps") + 5));
  EXPECT_GE(samples + 1, 160 / most) << out;
  EXPECT_LE(samples, 160 / least) << out;
  int hours = 0, minutes = 0, seconds = 0;
  char colon = 0;
  std::istringstream(line.substr(line.find("ETA") + 3)) >> hours >> colon >> minutes >> colon >> seconds;
  const double eta = 3600.0 * hours + 60 * minutes + seconds;  // 199,997 steps, where 3 took the time
  EXPECT_GE(eta + 1, least / 3 * 199'997) << out;
  EXPECT_LE(eta - 1, most / 3 * 199'997) << out;
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

}  // namespace

}  // namespace lockstep
