// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs that go on while reading their checkpoints fails, at one system call or from one on. An error that
/// passes costs nothing, one that stays ends with 74, and every checkpoint is still there. And what a run
/// syncs, in which order, however long that takes; and that no step waits for a file system that stalls.
///
/// ctest lets some calls fail. All of them, with three kinds of error: LOCKSTEP_CAMPAIGN=1.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {

namespace {

namespace fs = std::filesystem;

bool campaign() {
  return std::getenv("LOCKSTEP_CAMPAIGN") != nullptr;
}

/// A run that was stopped in its second epoch, and the weights that it ends with when nothing disturbs it.
class ReadFaultsTest : public ::testing::Test {
 protected:
  ReadFaultsTest() {
    weights_ = ended_well(go_on("calm", "")).last_line();
    succeed("train " + job_ + " run.dir=" + base_ + " train.max_steps=5 train.epochs=3");
  }

  Outcome go_on(const std::string& name, const std::string& environment) {
    const auto run = directory_.path(name);
    if (fs::exists(base_)) fs::copy(base_, run, fs::copy_options::recursive);
    return run_shell(environment + " $LOCKSTEP_PROGRAM train " + job_ + " train.epochs=3 run.dir=" + run);
  }

  static std::set<std::string> checkpoints(const std::string& run) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(run + "/checkpoints"))
      names.insert(entry.path().filename());
    return names;
  }

  /// Nothing that was there is gone or called damaged, and without faults the run ends as if nothing had
  /// been.
  void expect_whole(const std::string& name) {
    const auto run = directory_.path(name);
    for (const auto& checkpoint : checkpoints(run))
      EXPECT_EQ(checkpoint.find("damaged"), std::string::npos) << checkpoint;
    succeed("verify " + run);
    fs::rename(run, run + "-1");
    EXPECT_EQ(succeed("train " + job_ + " train.epochs=3 run.dir=" + run + "-1").last_line(), weights_);
  }

  TemporaryDirectory directory_;
  std::string job_ = write_small_job(directory_), base_ = directory_.path("base"), weights_;
};

TEST_F(ReadFaultsTest, APictureThatCannotBeReadIsNamedAndTheOthersAreAnswered) {
  fs::create_directory(directory_.path("folder"));
  for (const char* name : {"folder/a.pgm", "folder/b.pgm", "folder/c.pgm"})
    write_text(directory_.path(name), "P5 4 4 255\n0123456789abcdef");
  const auto outcome =
      run_shell("READ_FAULTS_OPENS=1 " + read_faults("folder/b.pgm", 1) + "$LOCKSTEP_PROGRAM predict " +
                base_ + " " + directory_.path("folder") + " --csv");
  expect_says(outcome, 74, {"folder/b.pgm"});
  EXPECT_EQ(count_of("\n", outcome.out), 3) << outcome.everything();
  expect_words(outcome.out, {"folder/a.pgm\",", "folder/c.pgm\","});
}

TEST_F(ReadFaultsTest, ErrorThatPassesCostsNothing) {
  for (int at = 1; at <= (campaign() ? 120 : 40); at += campaign() ? 1 : 9) {
    for (const int error : campaign() ? std::vector{5, 13, 24} : std::vector{5}) {  // EIO, EACCES, EMFILE
      const auto name = "once-" + std::to_string(at) + "-" + std::to_string(error);
      const auto outcome = go_on(name, read_faults("checkpoints", at, 1, error));
      SCOPED_TRACE(name + "\n" + outcome.everything());
      // Cleaning up and saving are not only reading: there an error may end the run, but nothing else.
      EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 74) << outcome.exit_code;
      if (outcome.exit_code == 0) {
        EXPECT_EQ(outcome.last_line(), weights_);
      }
      EXPECT_TRUE(outcome.exit_code == 0 || at >= 20) << "looking for the newest one waits for better times";
      expect_whole(name);
      if (HasFailure()) return;
    }
  }
}

TEST_F(ReadFaultsTest, ErrorThatStaysIsSaidAndTouchesNothing) {
  const auto before = checkpoints(base_);
  for (int at = 1; at <= (campaign() ? 60 : 25); at += campaign() ? 1 : 8) {
    for (const int error : campaign() ? std::vector{5, 13, 24} : std::vector{24}) {
      const auto name = "for-good-" + std::to_string(at) + "-" + std::to_string(error);
      const auto outcome = go_on(name, read_faults("checkpoints", at, -1, error));
      SCOPED_TRACE(name + "\n" + outcome.everything());
      EXPECT_EQ(outcome.exit_code, 74);
      for (const auto& checkpoint : before)
        EXPECT_TRUE(fs::exists(directory_.path(name) + "/checkpoints/" + checkpoint)) << checkpoint;
      expect_whole(name);
      if (HasFailure()) return;
    }
  }
}

/// The lines of the log behind `from`, without the path of the run, until one that begins with `last`.
std::vector<std::string> lines_until(std::istream& log, const std::string& run, const std::string& last) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);) {
    for (auto at = line.find(run); at != std::string::npos; at = line.find(run))
      line.replace(at, run.size(), "RUN");
    lines.push_back(line);
    if (line.starts_with(last)) break;
  }
  return lines;
}

std::string preloaded(const std::string& variables, const std::string& arguments) {
  return variables + " $LOCKSTEP_PROGRAM train " + arguments;
}

/// Order of syncs: records of the steps, the checkpoint's files, their names, its own name, and all once more.
TEST(SyncTest, EverythingThatACheckpointIsAndSpeaksOfIsSyncedBeforeItHasItsName) {
  const TemporaryDirectory directory;
  const auto run = directory.path("run"), log = directory.path("log");
  ended_well(run_shell(preloaded("SYNC_LOG=" + log,
                                 write_small_job(directory) + " parallel.backend=thread train.max_steps=2")));
  std::ifstream stream(log);
  const std::string rename = "rename RUN/checkpoints/.tmp-step-00000002 RUN/checkpoints/step-00000002";
  const auto before = lines_until(stream, run, rename),
             behind = lines_until(stream, run, "fsync RUN/checkpoints");
  auto at = before.begin();
  for (const std::string line :
       {"fdatasync RUN/metrics.jsonl", "fdatasync RUN/trail.bin", "fdatasync RUN/ranks.jsonl", "fsync RUN",
        "fsync RUN/checkpoints/.tmp-step-00000002/model.safetensors",
        "fsync RUN/checkpoints/.tmp-step-00000002/optimizer.safetensors",
        "fsync RUN/checkpoints/.tmp-step-00000002/manifest.json",
        "fsync RUN/checkpoints/.tmp-step-00000002"}) {
    at = std::find(at, before.end(), line);
    ASSERT_NE(at, before.end()) << line << " is missing, or comes too early";
  }
  EXPECT_EQ(std::ranges::count(before, "fsync " + directory.path()), 1) << "the name of a new RUN";
  EXPECT_EQ(before.back(), rename);
  EXPECT_EQ(behind, std::vector<std::string>{"fsync RUN/checkpoints"});
  EXPECT_EQ(lines_until(stream, run, "fdatasync RUN/metrics.jsonl").back(), "fdatasync RUN/metrics.jsonl")
      << "the end of the run is not synced";
}

/// The first save takes longer than ranks wait for each other. The second waits for it, and so do the ranks; that is no
/// time of the epoch's three steps.
TEST(SyncTest, ADiskSlowerThanTheDeadlineLosesNoRank) {
  const TemporaryDirectory directory;
  const auto outcome = ended_well(run_shell(preloaded(
      "SYNC_SLOW_PATH=manifest.json SYNC_SLOW_MS=4500",
      write_small_job(directory) + " parallel.backend=thread parallel.ranks=2 parallel.timeout_seconds=3 "
                                   "run.checkpoint_every_steps=1")));
  EXPECT_EQ(outcome.err, "");
  const auto events = read_metrics(directory.path("run"));
  const auto epoch =
      std::ranges::find_if(events, [](const auto& event) { return event.at("event") == "epoch"; });
  ASSERT_NE(epoch, events.end());
  EXPECT_LT(epoch->at("train_seconds"), 4);
  EXPECT_GT(epoch->at("samples_per_second"), 1100 / 4);
  EXPECT_GT(epoch->at("epoch_seconds"), 4);
}

/// Takes many steps and ends epochs between two looks, while every call below the run's directory waits.
/// Afterwards each line is there.
TEST(StallTest, NoStepWaitsForAFileSystemThatStalls) {
  const TemporaryDirectory directory;
  const auto stall = directory.path("stall"), out = directory.path("out");
  const std::string epochs = "$(grep -c '^epoch' " + out + ")";
  const auto outcome = run_shell(
      preloaded("STALL_PATH=" + directory.path("run") + " STALL_WHILE=" + stall,
                write_small_job(directory) +
                    " parallel.backend=thread parallel.ranks=2 data.train_samples=128 data.global_batch=64 "
                    "data.test_samples=9 train.epochs=100000 run.tensorboard=true run.curve=true "
                    "run.checkpoint_every_steps=0 run.keep.best=false >" +
                    out) +
      " & until [ " + epochs + " -gt 9 ] || ! kill -0 $!; do sleep 0.05; done; touch " + stall +
      "; sleep 0.3; before=" + epochs + "; sleep " + (campaign() ? "20" : "1.5") + "; after=" + epochs +
      "; rm " + stall + "; kill -TERM $!; wait $!; echo $? $((after - before))");
  SCOPED_TRACE(outcome.everything());
  int code = -1, taken = 0;
  std::istringstream(outcome.out) >> code >> taken;
  EXPECT_EQ(code, 75);
  EXPECT_GT(taken, 8) << "each line waits a tenth of a second, or for good";
  std::int64_t step = 0;
  for (const auto& event : read_metrics(directory.path("run"))) {
    if (event.at("event") == "step") {
      EXPECT_EQ(event.at("step"), ++step);
    }
  }
  EXPECT_GT(step, taken);
  succeed("verify " + directory.path("run"));
}

// Trails on disks that are full or cannot be read. The run says so and ends with 74, and what goes on from
// there leaves the trail of an undisturbed run, byte for byte.

/// Ninety steps, whose trail is 24 KB long; nothing else in the run's directory grows beyond 10 KB.
class TrailFaultsTest : public JobTest {
 protected:
  TrailFaultsTest() : weights_(ended_well(run_shell(train("calm"))).last_line()) {}

  std::string train(const std::string& run, const std::string& more = "") const {
    return "$LOCKSTEP_PROGRAM train " + job_ + " run.dir=" + path(run) + " " + more;
  }
  /// While no file may grow beyond 10 KB.
  static Outcome on_a_full_disk(const std::string& command) {
    return run_shell("ulimit -f 20; exec " + command);
  }
  std::string trail(const std::string& run) const { return read_text(path(run) + "/trail.bin"); }

  /// The run goes on, and ends as if nothing had been.
  void expect_to_recover(const std::string& run) {
    const auto again = ended_well(run_shell(train(run)));
    EXPECT_EQ(again.last_line(), weights_);
    EXPECT_TRUE(trail(run) == trail("calm"));
    EXPECT_FALSE(fs::exists(path(run) + "/trail.bin.damaged"));
    succeed("prove " + path(run));
  }

  std::string job_ = write_small_job(directory_) +
                     " parallel.backend=thread data.train_samples=900 data.test_samples=9 "
                     "data.global_batch=32 parallel.grain=16 train.epochs=3 run.checkpoint_every_steps=0 "
                     "run.keep.best=false run.log_every_steps=1000";
  std::string weights_;
};

TEST_F(TrailFaultsTest, AFullDiskStopsTheRunAndNamesTheTrail) {
  const auto outcome = on_a_full_disk(train("stop", "run.on_save_error=stop"));
  expect_says(outcome, 74, {"trail.bin: cannot be written: File too large"});
  EXPECT_EQ(outcome.out.find("done"), std::string::npos) << outcome.out;
  expect_to_recover("stop");
}

TEST_F(TrailFaultsTest, AFullDiskIsSaidOnceWhereTheRunIsToGoOnAndItEndsUnsaved) {
  const auto outcome = on_a_full_disk(train("continue", "run.on_save_error=continue"));
  expect_says(outcome, 74, {"trail.bin: cannot be written: File too large", "that step is not saved"});
  EXPECT_EQ(count_of("kept in memory", outcome.err), 1) << outcome.err;
  expect_to_recover("continue");
}

/// Stopped twice, the second time on a full disk.
TEST_F(TrailFaultsTest, ASecondResumeIsByteEqual) {
  ended_well(run_shell(train("twice", "train.max_steps=20")));
  expect_says(on_a_full_disk(train("twice")), 74);
  expect_says(run_shell(train("twice", "train.max_steps=70 parallel.ranks=2")), 0);
  expect_to_recover("twice");
}

TEST_F(TrailFaultsTest, ReadErrorsThatPassAreWaitedForAndOthersTouchNothing) {
  ended_well(run_shell(train("base", "train.max_steps=20")));
  for (int at = 1; at <= 3; ++at) {
    const auto run = "read-" + std::to_string(at);
    fs::copy(path("base"), path(run), fs::copy_options::recursive);
    expect_says(run_shell(read_faults("trail.bin", at) + train(run)), 74, {"trail.bin"});
    EXPECT_TRUE(trail(run) == trail("base")) << at;
    expect_says(run_shell(read_faults("trail.bin", at, 1) + train(run)), 0);
    expect_to_recover(run);
  }
}

TEST_F(TrailFaultsTest, AProofOfWhatCannotBeReadIsNoRefutation) {
  for (const int at : {1, 3}) {
    const std::string prove = "$LOCKSTEP_PROGRAM prove " + path("calm");
    expect_says(run_shell(read_faults("trail.bin", at) + prove), 74, {"trail.bin"});
    expect_says(run_shell(read_faults("trail.bin", at, 1) + prove), 0);
  }
}

}  // namespace

}  // namespace lockstep::testing
