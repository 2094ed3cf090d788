// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Directory of a run whose job names none: the newest unfinished equal one, or a new one. The first line
/// says so.
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <regex>

namespace lockstep::testing {
namespace {

/// The seconds of the first epoch's line times its speed, and what the rounding of the seconds makes of it.
struct PrintedSamples {
  double count = 0, rounding = 0;

  explicit PrintedSamples(const std::string& out) {
    std::smatch match;
    if (!std::regex_search(out, match, std::regex(R"(([0-9]+)\.([0-9]+) s \(([0-9,]+) samples/s\))"))) return;
    std::string speed = match[3];
    std::erase(speed, ',');
    count = std::stod(match[1].str() + "." + match[2].str()) * std::stod(speed);
    rounding = 0.5 * std::pow(10.0, -static_cast<double>(match[2].length())) * std::stod(speed) + 1;
  }
};

/// A folder with digits.yaml in it, where `lockstep train digits.yaml` is run.
class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectoryTest() {
    write_text(folder_.path("digits.yaml"),
               "model: net\n"
               "data: {set: synthetic, train_samples: 1500, test_samples: 50, global_batch: 128}\n"
               "train: {epochs: 1, seed: 7}\n"
               "parallel: {device: cpu, grain: 32}\n");
  }

  Outcome train(const std::string& overrides = "", const std::string& launcher = "") const {
    return run_shell("cd " + folder_.path() + " && " + launcher + " $LOCKSTEP_PROGRAM train digits.yaml " +
                     overrides);
  }
  /// Stops after its first step.
  void interrupt(const std::string& overrides = "") const {
    expect_says(train("run.max_seconds=0.001 " + overrides), 75);
  }

  /// Trains, and expects the first line to be this.
  Outcome expect_line(const std::string& line, const std::string& overrides = "") const {
    auto outcome = ended_well(train(overrides));
    EXPECT_EQ(outcome.out.substr(0, outcome.out.find('\n')), line) << outcome.everything();
    return outcome;
  }

  std::set<std::string> runs() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path("runs")))
      names.insert(entry.path().filename());
    return names;
  }

  TemporaryDirectory folder_;
};

TEST_F(RunDirectoryTest, AJobWhoseNameEndsWithANumberHasRunsOfItsOwn) {
  std::filesystem::copy_file(folder_.path("digits.yaml"), folder_.path("digits-9.yaml"));
  const auto train_other = [&](const std::string& overrides) {
    return run_shell("cd " + folder_.path() + " && $LOCKSTEP_PROGRAM train digits-9.yaml " + overrides);
  };
  expect_says(train_other("train.seed=8"), 0, {"this run: runs/digits-9 (the first of this job)\n"});
  expect_line("this run: runs/digits (the first of this job)");
  // Gone on with by its own job file, it stays what it was.
  expect_says(
      run_shell("cd " + folder_.path() +
                " && $LOCKSTEP_PROGRAM train runs/digits/job.yaml run.dir=runs/digits train.epochs=2"),
      0);
  expect_line("runs/digits is finished; this run: runs/digits-2");
  expect_says(train_other("train.seed=8"), 0, {"runs/digits-9 is finished; this run: runs/digits-9-2\n"});
  EXPECT_TRUE(read_text(folder_.path("runs/digits-9/job.yaml")).starts_with("# job 'digits-9'\nmodel: "));
}

TEST_F(RunDirectoryTest, WhatIsFinishedStaysAndTheNextRunIsNew) {
  const auto first = expect_line("this run: runs/digits (the first of this job)");
  const auto metrics = read_text(folder_.path("runs/digits/metrics.jsonl"));
  const auto again = expect_line("runs/digits is finished; this run: runs/digits-2");
  EXPECT_EQ(again.last_line(), first.last_line());
  EXPECT_EQ(read_text(folder_.path("runs/digits/metrics.jsonl")), metrics);
  expect_line("runs/digits-2 is finished; this run: runs/digits-3", "train.epochs=2");
}

TEST_F(RunDirectoryTest, WhatWasInterruptedGoesOnOnAnyNumberOfRanks) {
  interrupt();
  interrupt("train.epochs=2");
  const auto outcome = ended_well(train("train.epochs=2", "mpirun --bind-to none -np 3"));
  EXPECT_TRUE(outcome.out.starts_with("going on with the unfinished run: runs/digits\n")) << outcome.out;
  const PrintedSamples printed(outcome.out);
  ASSERT_LT(printed.rounding, 2 * 128) << "this machine is too fast for this test: " << outcome.out;
  EXPECT_NEAR(printed.count, 1500 - 2 * 128, printed.rounding) << outcome.out;
  EXPECT_EQ(runs(), std::set<std::string>({"digits"}));
  const auto undisturbed = train("train.epochs=2 run.dir=undisturbed");
  EXPECT_EQ(outcome.last_line(), undisturbed.last_line());
  EXPECT_EQ(comparable_metrics(folder_.path("runs/digits")), comparable_metrics(folder_.path("undisturbed")));
}

TEST_F(RunDirectoryTest, AnotherModelUnderTheSameNameIsAnotherRun) {
  const std::string head = "layers:\n  - flatten\n";
  write_text(folder_.path("my.yaml"), head + "  - linear: 20\n  - relu\n  - linear: 10\n");
  interrupt("model=./my.yaml");
  write_text(folder_.path("my.yaml"), head + "  - linear: 30\n  - relu\n  - linear: 10\n");
  expect_says(train("model=./my.yaml"), 0, {"runs/digits cannot be resumed ("});
  EXPECT_EQ(runs(), std::set<std::string>({"digits", "digits-2"}));
}

TEST_F(RunDirectoryTest, ARunThatIsFurtherThanTheJobGoesIsLeftAlone) {
  for (int step = 0; step < 2; ++step) interrupt("train.epochs=3");
  expect_says(train("train.max_steps=1"), 0,
              {"runs/digits cannot be resumed (it is at step 2, beyond the 1 that"});
  expect_line("runs/digits-2 is finished; going on with the unfinished run: runs/digits",
              "train.max_steps=2");
}

TEST_F(RunDirectoryTest, OnRequestEveryRunIsNew) {
  interrupt();
  expect_line("run.resume is never; this run: runs/digits-2", "run.resume=never");
  expect_line("run.resume is runs/digits; this run: runs/digits-3", "run.resume=runs/digits");
}

/// With its first command it would begin anew each time.
TEST_F(RunDirectoryTest, WhatWasBegunAnewGoesOnByTheJobOfItsRun) {
  const std::string command = "lockstep train runs/digits/job.yaml";
  const Outcome stopped = train("run.max_seconds=0.001 run.resume=never");
  EXPECT_EQ(stopped.exit_code, 75);
  expect_words(stopped.out, {"saved in runs/digits; run " + command + " to go on\n"});
  const Outcome further = run_shell("cd " + folder_.path() +
                                    " && $LOCKSTEP_PROGRAM train runs/digits/job.yaml run.max_seconds=0");
  expect_says(further, 0, {"going on from step 1 in runs/digits\n"});
  const std::string job = folder_.path("runs/digits/job.yaml");  // as an earlier version wrote it
  write_text(job, std::regex_replace(read_text(job), std::regex("resume: auto"), "resume: never"));
  ASSERT_NE(read_text(job).find("resume: never"), std::string::npos);
  expect_says(
      run_shell("cd " + folder_.path() + " && $LOCKSTEP_PROGRAM train runs/digits/job.yaml train.epochs=2"),
      0, {"going on from step 12 in runs/digits\n"});
}

TEST_F(RunDirectoryTest, WhatIsNoRunIsNotTouched) {
  for (const char* other : {"digits", "digits-02", "digits-old"})
    std::filesystem::create_directories(folder_.path(std::string("runs/") + other));
  write_text(folder_.path("runs/digits/notes"), "mine");
  write_text(folder_.path("runs/digits-2"), "a file");
  expect_line("runs/digits-2 is not a run directory; this run: runs/digits-3");
  EXPECT_EQ(runs(), std::set<std::string>({"digits", "digits-02", "digits-2", "digits-3", "digits-old"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("runs/digits-old")));
}

/// Each stands still for longer than another waits for its end, which is half of the timeout.
TEST_F(RunDirectoryTest, StartsAtTheSameMomentTakeDifferentDirectories) {
  const auto outcome = run_shell("cd " + folder_.path() +
                                 "\nexport LOCKSTEP_ALLOW_INJECT=1\nfor i in 1 2 3 4; do $LOCKSTEP_PROGRAM "
                                 "train digits.yaml train.epochs=2 parallel.timeout_seconds=2 "
                                 "parallel.backend=thread inject.step=1 'inject.what=delay 4s' > out$i 2>&1 "
                                 "|| echo failed & done; wait; cat out?");
  EXPECT_EQ(outcome.out.find("failed"), std::string::npos) << outcome.out;
  EXPECT_EQ(runs(), std::set<std::string>({"digits", "digits-2", "digits-3", "digits-4"})) << outcome.out;
  std::set<std::string> digests;
  for (const auto& run : runs()) digests.insert(lockstep("hash " + folder_.path("runs/" + run)).last_line());
  EXPECT_EQ(digests.size(), 1U);
}

// Starting a job again after its end.

namespace fs = std::filesystem;

/// Contents and time of last change of every file but the lock.
std::map<std::string, std::pair<std::string, fs::file_time_type>> look_at(const std::string& directory) {
  std::map<std::string, std::pair<std::string, fs::file_time_type>> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.path().filename() == "lock") continue;
    files[entry.path()] = {entry.is_directory() ? "" : read_text(entry.path()),
                           fs::last_write_time(entry.path())};
  }
  return files;
}

/// A small job that has come to its end: 2 epochs of 3 steps.
class FinishedRunTest : public ::testing::Test {
 protected:
  FinishedRunTest() : first_(ended_well(train())) {}

  Outcome train(const std::string& overrides = "") const {
    return lockstep("train " + write_small_job(directory_) + " parallel.backend=thread " + overrides);
  }
  std::string run() const { return directory_.path("run"); }
  void expect_untouched(const std::string& overrides, const std::vector<std::string>& words) const {
    const auto before = look_at(run());
    const Outcome again = train(overrides);
    expect_says(again, 0, words);
    EXPECT_EQ(again.last_line(), first_.last_line());
    EXPECT_EQ(again.out.find("done"), std::string::npos) << again.out;
    EXPECT_TRUE(look_at(run()) == before) << overrides << ": something was written";
  }

  TemporaryDirectory directory_;
  Outcome first_;
};

TEST_F(FinishedRunTest, AgainItSaysSoAndTouchesNothing) {
  expect_untouched("", {"already finished", "all 6 steps", "train.epochs=3 or more", "run.resume=never"});
  const std::string again = "lockstep train " + run() + "/job.yaml train.epochs=3;";
  expect_untouched("parallel.ranks=3", {"already finished", again});
  expect_untouched("train.epochs=9 train.max_steps=6", {"already finished", "train.max_steps=7 or more"});
  expect_untouched("train.epochs=1", {"already finished", "6 steps, more than the 3 asked for"});
  expect_untouched("train.max_steps=4",
                   {"already finished", "6 steps, more than the 4 asked for", "train.max_steps=7"});
}

TEST_F(FinishedRunTest, AShorterJobDoesNotGoOnFromItsEnd) {
  const std::string other = directory_.path("other");
  expect_says(train("train.epochs=1 run.dir=" + other + " run.resume=" + run()), 2,
              {"run.resume: " + run(), "is at step 6, and this job ends with step 3"});
  EXPECT_FALSE(std::filesystem::exists(other + "/metrics.jsonl"));
}

TEST_F(FinishedRunTest, ARunThatWasKilledBeforeItsLastLineIsBroughtToItsEnd) {
  const auto metrics = comparable_metrics(run());
  std::string text = read_text(run() + "/metrics.jsonl");
  text.resize(text.rfind('\n', text.size() - 2) + 1);
  write_text(run() + "/metrics.jsonl", text);
  const Outcome again = train();
  EXPECT_EQ(again.last_line(), first_.last_line()) << again.everything();
  EXPECT_EQ(comparable_metrics(run()), metrics);
}

TEST_F(FinishedRunTest, TheJobOfACopyTrainsTheCopy) {
  const auto before = look_at(run());
  const std::string copy = directory_.path("copy");
  fs::copy(run(), copy, fs::copy_options::recursive);
  expect_says(lockstep("train " + copy + "/job.yaml train.epochs=3"), 0, {"run directory " + copy + "\n"});
  EXPECT_TRUE(look_at(run()) == before) << "something was written";
}

/// Killed before it has saved, it goes on from the checkpoint of the other run.
TEST_F(FinishedRunTest, TheJobOfARunThatWentOnFromAnotherGoesOnFromThere) {
  const std::string further = directory_.path("further"), job = further + "/job.yaml inject.step=1000 ";
  const test::SetVariable allowed("LOCKSTEP_ALLOW_INJECT", "1");
  train("train.epochs=4 run.resume=" + run() + " run.dir=" + further +
        " run.checkpoint_every_steps=0 inject.rank=0 inject.what=die inject.step=8");
  ASSERT_EQ(lockstep("hash " + further).exit_code, 66) << "it has saved";
  const Outcome again = lockstep("train " + job);
  expect_says(again, 0, {"going on from step 6"});
  EXPECT_EQ(again.last_line(), train("train.epochs=4 run.dir=" + directory_.path("at-once")).last_line());
  expect_says(lockstep("train " + job + "train.epochs=5"), 0, {"going on from step 12 in " + further});
}

TEST_F(FinishedRunTest, MoreEpochsGoOnAsIfTheyHadBeenAskedForAtOnce) {
  const Outcome longer = train("train.epochs=4");
  const Outcome at_once = train("train.epochs=4 run.dir=" + directory_.path("at-once"));
  EXPECT_EQ(longer.last_line(), at_once.last_line()) << longer.everything();
  EXPECT_EQ(comparable_metrics(run()), comparable_metrics(directory_.path("at-once")));
}

}  // namespace
}  // namespace lockstep::testing
