// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files that another user has put where the program reads and writes. Links, FIFOs, folders, names and
/// contents made to harm. No file of theirs is changed, nothing hangs, and nothing of it reaches the terminal
/// raw.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

#include <sys/stat.h>

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

class ForeignFilesTest : public ::testing::Test {
 protected:
  ForeignFilesTest() { write_text(victim_, "mine"); }

  /// A run of its own that has been stopped, before something is put into it.
  std::string make_run(const std::string& name) {
    auto run = directory_.path(name);
    if (base_.empty()) {
      base_ = directory_.path("base");
      succeed("train " + job_ + " train.max_steps=4 run.dir=" + base_);
    }
    fs::copy(base_, run, fs::copy_options::recursive);
    return run;
  }

  Outcome go_on(const std::string& run) { return lockstep("train " + job_ + " run.dir=" + run); }

  void expect_refused(const std::string& run, const std::string& what) {
    expect_says(go_on(run), 74, {what});
    EXPECT_EQ(read_text(victim_), "mine");
  }

  TemporaryDirectory directory_;
  std::string job_ = write_small_job(directory_), victim_ = directory_.path("victim"), base_;
};

TEST_F(ForeignFilesTest, RunIsNotWrittenThroughLinks) {
  for (const std::string name : {"metrics.jsonl", "log/rank-0.log", "lock"}) {
    const auto run = make_run("link-" + name.substr(0, 3));
    fs::remove(run + "/" + name);
    fs::create_symlink(victim_, run + "/" + name);
    expect_refused(run, name + ": is a symbolic link");
  }
  const auto run = make_run("linked-checkpoints");
  fs::rename(run + "/checkpoints", directory_.path("elsewhere"));
  fs::create_directory_symlink(directory_.path("elsewhere"), run + "/checkpoints");
  expect_refused(run, "checkpoints: is a symbolic link");
  EXPECT_FALSE(fs::is_empty(directory_.path("elsewhere")));
}

TEST_F(ForeignFilesTest, FifosAndFoldersInPlaceOfFilesAreNamed) {
  for (const std::string name : {"metrics.jsonl", "log/rank-0.log", "lock"}) {
    for (const bool fifo : {true, false}) {
      const auto run = make_run((fifo ? "fifo-" : "folder-") + name.substr(0, 3));
      fs::remove(run + "/" + name);
      if (fifo) {
        ASSERT_EQ(::mkfifo((run + "/" + name).c_str(), 0600), 0);
      } else {
        fs::create_directory(run + "/" + name);
      }
      expect_refused(run, name + ": is not a regular file");
    }
  }
}

TEST_F(ForeignFilesTest, CopyMadeOfHardLinksStaysAsItWas) {
  const auto run = make_run("run"), copy = directory_.path("copy");
  ASSERT_EQ(run_shell("cp -al " + run + " " + copy + " && rm " + copy + "/lock").exit_code, 0);
  const auto metrics = read_text(copy + "/metrics.jsonl"), log = read_text(copy + "/log/rank-0.log");
  expect_says(go_on(run), 0);
  EXPECT_EQ(read_text(copy + "/metrics.jsonl"), metrics);
  EXPECT_EQ(read_text(copy + "/log/rank-0.log"), log);
  succeed("verify " + copy);
}

/// Links, FIFOs and folders are in ownership_test.cpp.
TEST_F(ForeignFilesTest, LeftoversOfASaveGoAndTemporaryNamesOfOthersStay) {
  const auto run = make_run("run"), cut_short = run + "/checkpoints/.tmp-step-00000002";
  fs::create_directory(cut_short);
  write_text(cut_short + "/model.safetensors", "half");
  write_text(run + "/checkpoints/.tmp-file", "mine");
  expect_says(go_on(run), 0);
  EXPECT_FALSE(fs::exists(cut_short));
  EXPECT_EQ(read_text(run + "/checkpoints/.tmp-file"), "mine");
}

/// Every command that writes a file which its user names.
TEST_F(ForeignFilesTest, OutputsReplaceNothingButFilesAndThoseIfTold) {
  const auto run = make_run("run"), places = directory_.path("places");
  fs::create_directory(places);
  ASSERT_EQ(::mkfifo((places + "/fifo").c_str(), 0600), 0);
  fs::create_symlink(victim_, places + "/link");
  const std::string commands[] = {
      "report " + run + " --format json -o ", "validate " + job_ + " --pictures ",
      "export " + run + " --npz ",
      "bench step " + job_ + " parallel.backend=thread --rounds 1 --steps 1 --trace "};
  for (const auto& command : commands) {
    for (const std::string& target : {std::string("/dev/null"), places + "/fifo", places + "/link", places}) {
      expect_says(lockstep(command + target + " --force"), 2);
    }
    const auto file = places + "/file";
    succeed(command + file);
    expect_says(lockstep(command + file), 2, {"is there already; --force replaces it"});
    succeed(command + file + " --force");
    expect_says(run_shell("ulimit -f 0; $LOCKSTEP_PROGRAM " + command + places + "/full"), 74);
    fs::remove(file);
    EXPECT_EQ(std::distance(fs::directory_iterator(places), {}), 2) << "something is left of " << command;
  }
  EXPECT_EQ(read_text(victim_), "mine");
}

TEST_F(ForeignFilesTest, TheFileForTheRunsNameReplacesNothingOfOthers) {
  const auto told = [&](const std::string& file) {
    return run_shell("LOCKSTEP_RUN_FILE=" + file + " $LOCKSTEP_PROGRAM train " + job_ +
                     " parallel.backend=thread train.max_steps=1 run.dir=" + directory_.path("run"));
  };
  ASSERT_EQ(::mkfifo(directory_.path("fifo").c_str(), 0600), 0);
  fs::create_symlink(victim_, directory_.path("link"));
  write_text(directory_.path("lines"), "two\nlines\n");
  for (const std::string& file : {std::string("/dev/null"), directory_.path("fifo"), directory_.path("link"),
                                  directory_.path("lines"), victim_})
    expect_says(told(file), 2);
  EXPECT_EQ(read_text(victim_), "mine");
  write_text(directory_.path("made"), "");
  for (int start = 0; start < 2; ++start) {
    expect_says(told(directory_.path("made")), 0);
    EXPECT_EQ(read_text(directory_.path("made")), directory_.path("run") + "\n");
  }
  expect_says(told(victim_), 2);  // its run has ended
  EXPECT_EQ(read_text(directory_.path("run/lock")), "") << "another host may go on at once";
}

TEST_F(ForeignFilesTest, NothingForeignReachesTheTerminalRaw) {
  const auto run = make_run("run");
  const std::string from_the_right =
      "\xe2\x80\xae";  // NOLINT(misc-misleading-bidirectional): not in the source
  const std::string evil = "\x1b[31m\x9b" + from_the_right, quoted = "'" + evil + "'";
  write_text(
      run + "/lock",
      R"({"host":"\u001b[31m","boot_id":"b","pid":1,"start_ticks":1,"started":"\u202e","job":"\u009b"})");
  fs::create_directory(directory_.path(evil));
  const std::string commands[] = {"verify " + quoted,
                                  "eval " + quoted,
                                  "inspect '" + directory_.path(evil) + "'",
                                  "eval " + run + " --device " + quoted,
                                  "predict " + run + " " + quoted,
                                  "predict " + run + " --invert " + quoted + " x",
                                  quoted,
                                  "train " + quoted,
                                  "train " + job_ + " " + quoted,
                                  "train " + job_ + " data.root=" + quoted,
                                  "train " + job_ + " run.dir=" + run,
                                  "export " + run + " --npz " + quoted + "/x"};
  for (const auto& command : commands) {
    const auto outcome = lockstep(command);
    EXPECT_NE(outcome.exit_code, 0) << command;
    for (const std::string& raw : {std::string("\x1b"), std::string("\x9b"), from_the_right})
      EXPECT_EQ(outcome.everything().find(raw), std::string::npos) << command << "\n" << outcome.everything();
  }
}

TEST_F(ForeignFilesTest, FilesMadeToTakeMemoryAreOneSentence) {
  std::string marks;
  for (int i = 0; i < 300000; ++i) marks += "\xEF\xBB\xBF";
  write_text(directory_.path("marks.yaml"), marks + "model: net\n");
  EXPECT_EQ(lockstep("validate " + directory_.path("marks.yaml")).exit_code, 2);
  write_text(directory_.path("commas.csv"), std::string(std::size_t{60} << 20, ','));
  expect_says(run_shell("ulimit -v 600000; $LOCKSTEP_PROGRAM convert " + directory_.path("commas.csv") + " " +
                        directory_.path("set")),
              65, {"more than 1048576 columns"});
  expect_says(run_shell("ulimit -v 400000; " + std::string(std::getenv("LOCKSTEP_PROGRAM")) + " train " +
                        job_ + " data.train_samples=900000"),
              69, {"not enough memory"});
}

TEST_F(ForeignFilesTest, RanksForWhichThereAreNoThreadsAreOneSentence) {
  for (const char* kib : {"600000", "1500000"}) {
    const auto outcome =
        run_shell("ulimit -v " + std::string(kib) + "; $LOCKSTEP_PROGRAM train " + job_ +
                  " parallel.backend=thread parallel.ranks=300 run.dir=" + directory_.path("many"));
    expect_says(outcome, 69);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.err.find("report this"), std::string::npos) << outcome.err;
  }
}

/// Neither the old nor the new directory may be given a half of it.
TEST_F(ForeignFilesTest, RunDirectoryThatIsReplacedWhileItTrainsEndsItAndSaysSo) {
  const std::pair<std::string, std::string> blows[] = {{"replaced", "mv $r $r-old; cp -a $r-old $r"},
                                                       {"removed", "rm -r $r"}};
  for (const auto& [name, blow] : blows) {
    const auto run = directory_.path(name);
    const auto outcome =
        run_and_strike("$LOCKSTEP_PROGRAM train " + job_ + " parallel.backend=thread train.epochs=100000 " +
                           "run.checkpoint_every_steps=0 run.keep.best=false run.dir=" + run,
                       run, "r=" + run + "; " + blow + "; kill -TERM $run");
    expect_says(outcome, 74, {"was removed, renamed or replaced while the run trained"});
    EXPECT_EQ(outcome.out.find("stopped on request"), std::string::npos) << outcome.out;
    EXPECT_FALSE(fs::exists(run + "/checkpoints")) << name;
  }
}

TEST_F(ForeignFilesTest, FifoThatNobodyWritesToIsNotWaitedForWithoutEnd) {
  ASSERT_EQ(::mkfifo(directory_.path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(lockstep("predict " + make_run("run") + " " + directory_.path("fifo")).exit_code, 65);
  EXPECT_EQ(run_shell("cat " + job_ + " > " + directory_.path("fifo") + " & " +
                      std::getenv("LOCKSTEP_PROGRAM") + " validate " + directory_.path("fifo"))
                .exit_code,
            0);
  const auto run = make_run("proved");
  fs::remove(run + "/job.yaml");
  ASSERT_EQ(::mkfifo((run + "/job.yaml").c_str(), 0600), 0);
  expect_says(run_shell("$LOCKSTEP_PROGRAM prove " + run, 8), 65);
}

TEST_F(ForeignFilesTest, DataThatCannotBeExaminedAreNotMissing) {
  fs::create_symlink("circle", directory_.path("circle"));
  for (const std::string root : {"circle", "circle/below"}) {
    write_text(directory_.path("job.yaml"),
               "model: linear\ndata: {set: pictures, size: 8, root: " + root + "}\n");
    expect_says(run_shell("cd / && $LOCKSTEP_PROGRAM train " + directory_.path("job.yaml")), 74,
                {directory_.path(root) + " (cannot be examined: Too many levels"});
  }
}

}  // namespace
}  // namespace lockstep::testing
