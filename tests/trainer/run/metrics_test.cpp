// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// metrics.jsonl holds whole lines only, whatever the disk does, and is on disk before a checkpoint that notes it.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/run/run_context.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_recorder.hpp"
#include "trainer/run/run_writer.hpp"
#include "trainer/run/training_run.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <future>

namespace {

std::mutex synced_mutex;
std::vector<std::string> synced_names;  ///< last components of the files, in the order of their syncs
std::function<void(const std::string& name)> before_sync;  ///< may be empty

int note_sync(int fd, long call) {
  std::error_code ignored;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored);
  {
    const std::lock_guard lock(synced_mutex);
    synced_names.push_back(path.filename());
  }
  if (before_sync) before_sync(path.filename());
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

TEST(MetricsTest, AppendsALineForEachEventAndItsPositionIsThatOfAllHoweverOftenTheRunBegan) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("metrics.jsonl");
  MetricsWriter(Env::posix(), path).write({{"step", 1}});
  MetricsWriter second(Env::posix(), path);
  EXPECT_EQ(second.position().count, 1);
  second.write({{"step", 2}});
  second.sync();
  const std::string all = text_of(path);
  EXPECT_EQ(all, "{\"step\":1}\n{\"step\":2}\n");
  EXPECT_EQ(second.position(), (CheckpointPosition{2, hex(sha256(std::as_bytes(std::span(all))))}));
}

/// A run's directory and what a training run does with it.
class SavingTest : public ::testing::Test {
 protected:
  SavingTest() {
    job_.run.dir = directory_.path("run");
    std::filesystem::create_directory(job_.run.dir);
  }
  void TearDown() override { before_sync = {}; }
  void open(std::int64_t step, const CheckpointFacts& facts = {}) {
    files_ = RunDirectory(Env::posix(), job_).open(step, true, facts);
  }
  std::string metrics() const { return text_of(job_.run.dir + "/metrics.jsonl"); }

  const TrailHead head_{.trained = {{"a", {1}}}, .kept = {}, .buffers = {}, .facts = {}};
  TemporaryDirectory directory_;
  Job job_;
  std::unique_ptr<RunWriter> files_;
};

TEST_F(SavingTest, MetricsAndTrailAreSyncedBeforeTheCheckpointThatNotesThem) {
  open(0);
  EXPECT_TRUE(files_->would_be_best({0})) << "there is none";
  files_->open_trail(head_, {}, std::nullopt);
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
  EXPECT_EQ(facts.metrics, (CheckpointPosition{1, hex(sha256(std::as_bytes(std::span(all))))}));
  EXPECT_EQ(facts.trail->count, 1);
}

TEST_F(SavingTest, ARunThatKeepsNoTrailCutsOffThatOfAnEarlierStart) {
  RankStretch ranks;
  open(0);
  files_->open_trail(head_, ranks, std::nullopt);
  for (const std::int64_t step : {1, 2})
    files_->write_trail(
        std::vector{TrailRecord{.step = step, .arithmetic = 2, .apart = 0, .fingerprints = {7, 7}}},
        std::vector{RankSums{step, 7, 7}});
  files_.reset();
  job_.run.trail = false;
  ranks.from = 2;
  open(1);
  files_->open_trail(head_, ranks, std::nullopt);
  EXPECT_EQ(read_trail(Env::posix(), job_.run.dir + "/trail.bin", 9).records(), 1);
  EXPECT_EQ(std::ranges::count(text_of(job_.run.dir + "/ranks.jsonl"), '\n'), 2) << "a start, and step 1";
}

TEST_F(SavingTest, NothingIsSavedInAnotherDirectoryOfTheSameName) {
  open(0);
  std::filesystem::rename(job_.run.dir, job_.run.dir + "-moved");
  std::filesystem::create_directory(job_.run.dir);
  files_->save(make_state(1));
  EXPECT_THROW(files_->finish(), IoError);
  ::testing::internal::CaptureStderr();
  files_->note({.state = "failed", .step = 1});
  EXPECT_TRUE(::testing::internal::GetCapturedStderr().starts_with("lockstep: warning: "));
  const RunState state;
  const Evaluations evaluations;
  const FinishedRun run{.state = state, .evaluations = evaluations, .sha256 = "ab", .published = {}};
  EXPECT_THROW(files_->run_finished(run), IoError);
  EXPECT_TRUE(std::filesystem::is_empty(job_.run.dir));
}

TEST_F(SavingTest, ADirectoryThatGoesOnceTheCheckpointIsWrittenIsNoEnd) {
  open(0);
  files_->save(make_state(1));
  while (!files_->finished_within(std::chrono::seconds(1))) {
  }
  std::filesystem::rename(job_.run.dir, job_.run.dir + "-moved");
  EXPECT_THROW(files_->finish(), IoError);
}

/// By it job.yaml names the run's own checkpoints from then on.
TEST_F(SavingTest, WhatFollowsTheFirstSaveIsTriedAgainUntilItSucceeds) {
  job_.run.on_save_error = OnSaveError::kContinue;
  std::filesystem::create_directory(job_.run.dir + "/log");
  int calls = 0;
  files_ = std::make_unique<RunWriter>(
      Env::posix(), job_, std::make_unique<RunLock>(Env::posix(), job_.run.dir, "job", LockPatience()), 0,
      [&] {
        if (++calls == 1) throw IoError("job.yaml: the disk is full");
      });
  ::testing::internal::CaptureStderr();
  for (const std::int64_t step : {1, 2, 3}) files_->save(make_state(step));
  files_->finish();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_TRUE(said.ends_with("job.yaml: the disk is full\n")) << said;
  EXPECT_EQ(calls, 2);
}

TEST_F(SavingTest, TheBestOfAnEarlierStartIsStillTheBest) {
  CheckpointState best = make_state(1);
  best.facts.test_accuracy = 0.75;
  save_checkpoint(Env::posix(), job_.run.dir, best);
  save_checkpoint(Env::posix(), job_.run.dir, make_state(2));
  open(2);
  EXPECT_FALSE(files_->would_be_best({0.75}));
  EXPECT_TRUE(files_->would_be_best({0.76}));
  CheckpointState better = make_state(3);
  better.facts.test_accuracy = 0.8;
  files_->save(better);
  EXPECT_FALSE(files_->would_be_best({0.8}));
  EXPECT_TRUE(files_->would_be_best({0.81}));
  EXPECT_TRUE(files_->would_be_best({0.1, 1000})) << "of another test set";
}

TEST_F(SavingTest, NamesOfWhatIsMovedAsideAreSynced) {
  const auto expect_synced = [&](std::int64_t step, const std::vector<std::string>& expected) {
    synced_names.clear();
    ::testing::internal::CaptureStderr();
    open(step);
    files_.reset();
    const std::string said = ::testing::internal::GetCapturedStderr();
    const auto end = synced_names.end();
    EXPECT_NE(std::search(synced_names.begin(), end, expected.begin(), expected.end()), end) << said;
  };
  for (const int step : {1, 2}) save_checkpoint(Env::posix(), job_.run.dir, make_state(step));
  expect_synced(1, {"checkpoints", "previous-1", "checkpoints", "run"});
  job_.run.resume = "never";
  expect_synced(0, {"previous-2", "run"});
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
  job_.run.resume = "never";
  EXPECT_EQ(doubt(4), "lockstep train " + job_.run.dir + "/job.yaml goes on from the checkpoint of step 4");
  job_.run.resume = "auto";
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
  std::filesystem::copy(job_.run.dir + "-moved", job_.run.dir, std::filesystem::copy_options::recursive);
  const std::string said = doubt(1);
  EXPECT_TRUE(said.starts_with(
      "Do not resume from a checkpoint after step 1; this could not be recorded: " + job_.run.dir + ": "))
      << said;
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
  EXPECT_EQ(nlohmann::json::parse(text_of(job_.run.dir + "/status.json")),
            nlohmann::json::parse(R"({"version": 1, "state": "running", "step": 3, "exclude_hosts": []})"));
  files_.reset();
  const std::string text = text_of(job_.run.dir + "/log/rank-0.log");
  ASSERT_EQ(std::ranges::count(text, '\n'), 1) << text;
  EXPECT_EQ(
      text.substr(0, 1) + text.substr(5, 1) + text.substr(11, 1) + text.substr(20, 1) + text.substr(24, 5),
      "[- .] one")
      << text;
}

/// Four steps an epoch; the second checkpoint is the end, which needs no third.
TEST_F(SavingTest, AStateIsSavedOnce) {
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
  const auto from_the_end = [](const char* name) {
    return std::find(synced_names.rbegin(), synced_names.rend(), name) - synced_names.rbegin();
  };
  EXPECT_LT(from_the_end("metrics.jsonl"), from_the_end("manifest.json")) << "its end is there, too";
  EXPECT_EQ(list_checkpoints(Env::posix(), job.run.dir).front().step, 8);
}

/// A rank alone that tells of its broadcasts, and would wait 40 ms for others.
class HeardRank final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  std::chrono::duration<double> timeout() const override { return std::chrono::milliseconds(40); }
  void broadcast(std::span<std::byte> data, int root) override {
    ForwardingCommunicator::broadcast(data, root);
    if (on_broadcast) on_broadcast();
  }

  std::function<void()> on_broadcast;
};

/// The disk is done once other ranks have heard three times; after 10 s where they hear nothing.
TEST_F(SavingTest, OtherRanksHearAgainAndAgainThatTheDiskIsNotDoneYet) {
  const Job job = parse_job(
      "model: linear\n"
      "data: {set: synthetic, train_samples: 64, test_samples: 16, global_batch: 16}\n"
      "parallel: {device: cpu, grain: 8}\n"
      "run: {dir: " +
          directory_.path("slow") + "}\n",
      "test.yaml", {});
  const DatasetFuture data = load_in_advance(job);
  std::atomic<bool> syncing = false;
  std::promise<void> three;
  int heard = 0;
  before_sync = [&](const std::string& name) {
    if (name != "manifest.json") return;
    syncing = true;
    three.get_future().wait_for(std::chrono::seconds(10));
  };
  const auto alone = make_lone_rank();
  HeardRank rank(*alone);
  RunContext run(job, rank, data);
  begin_run(run);
  rank.on_broadcast = [&] {
    if (syncing && ++heard == 3) three.set_value();
  };
  RunRecorder(run).save_at_end("the run ended");
  EXPECT_GE(heard, 3);
}

TEST_F(SavingTest, LostMetricsLeaveAnEvent) {
  CheckpointFacts facts;
  facts.metrics = CheckpointPosition{30, std::string(64, 'a')};
  ::testing::internal::CaptureStderr();
  open(12, facts);
  EXPECT_EQ(std::ranges::count(::testing::internal::GetCapturedStderr(), '\n'), 1);
  auto lost = nlohmann::json::parse(metrics());
  const std::string time = lost.at("time");  // "2026-11-23T16:07:41.123Z"
  EXPECT_TRUE(time.size() == 24 && time[10] == 'T' && time.ends_with('Z')) << time;
  EXPECT_NEAR(seconds_since_1970(time).value_or(0), now_seconds(), 3600);
  lost.erase("time");
  EXPECT_EQ(lost, nlohmann::json::parse(R"({"event":"lost","step":12,"lines_noted":30})"));
}

}  // namespace
}  // namespace lockstep
