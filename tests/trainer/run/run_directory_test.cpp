// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The directory that a run takes: which one, what in it stays, and what is moved aside.
#include "trainer/run/run_directory.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/step_trace.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// Notes which directories are opened; `on_open_` may refuse them.
class ChosenDirectoryTest : public ::testing::Test {
 protected:
  ChosenDirectoryTest() {
    job_ = parse_job("model: linear\ndata: {set: synthetic}\nrun: {report: false}\n", "digits.yaml");
    job_.name = "digits";
    env_.make_directory("runs");
  }
  void write(const std::string& path, const std::string& text) {
    for (std::size_t at = 0; (at = path.find('/', at + 1)) != path.npos;)
      env_.make_directory(path.substr(0, at));
    env_.remove_file(path);
    write_synced(env_, path, std::as_bytes(std::span(text)));
  }
  /// A run of the job, begun or finished.
  void write_run(const std::string& name, bool finished = false, const std::string& more = "") {
    write("runs/" + name + "/job.yaml", first_line_of_job(job_) + "\n" + to_yaml(job_) + more);
    write("runs/" + name + "/metrics.jsonl",
          finished ? "{\"event\":\"end\",\"step\":3}\n" : "{\"event\":\"step\",\"step\":3}\n");
  }
  std::string choose() {
    opened_.clear();
    return choose_run_directory(env_, job_, [&](const std::string& path, bool wait) {
      opened_.push_back(path + (wait ? " wait" : ""));
      if (on_open_) on_open_(path);
    });
  }

  MemoryEnv env_;
  Job job_;
  std::function<void(const std::string&)> on_open_;
  Names opened_;
};

TEST_F(ChosenDirectoryTest, TheFirstOfAJobHasItsName) {
  for (const char* other : {"digits-02", "digits-old", "digits-1", "digitsx", "digit"}) write_run(other);
  EXPECT_EQ(choose(), "this run: runs/digits (the first of this job)");
  EXPECT_EQ(opened_, Names{"runs/digits"});
}

TEST_F(ChosenDirectoryTest, AnUnfinishedRunGoesOn) {
  write_run("digits");
  EXPECT_EQ(choose(), "going on with the unfinished run: runs/digits");
  EXPECT_EQ(opened_, Names{"runs/digits wait"});
  write_run("digits-10", true);
  EXPECT_EQ(choose(), "runs/digits-10 is finished; going on with the unfinished run: runs/digits");
  EXPECT_EQ(opened_, Names{"runs/digits"});
  write_run("digits", true);
  EXPECT_EQ(choose(), "runs/digits-10 is finished; this run: runs/digits-11");
}

TEST_F(ChosenDirectoryTest, AFinishedRunIsPassedOverUnlessItsPageIsMissing) {
  write_run("digits", true);
  EXPECT_FALSE(lacks_page(env_, "runs/digits", job_));
  EXPECT_EQ(choose(), "runs/digits is finished; this run: runs/digits-2");
  env_.make_directory("runs/digits/checkpoints");
  env_.make_directory("runs/digits/checkpoints/step-00000003");
  EXPECT_EQ(
      choose(),
      "runs/digits is finished; this run: runs/digits-2\nit starts anew; from the weights of runs/digits: "
      "train.initial_weights=runs/digits");
  job_.run.report = true;
  EXPECT_TRUE(lacks_page(env_, "runs/digits", job_));
  EXPECT_EQ(choose(), "going on with the unfinished run: runs/digits");
  write("runs/digits/report.html", "");
  EXPECT_FALSE(lacks_page(env_, "runs/digits", job_));
  job_.run.resume = "never";
  EXPECT_EQ(choose(), "run.resume is never; this run: runs/digits-2");
  EXPECT_EQ(opened_, Names{"runs/digits-2"});
  job_.run.resume = "old";
  EXPECT_EQ(choose(), "run.resume is old; this run: runs/digits-2");
  write_run("digits-3");
  EXPECT_FALSE(lacks_page(env_, "runs/digits-3", job_));
}

TEST_F(ChosenDirectoryTest, WhatIsNoRunOfTheJobIsLeftAlone) {
  write("runs/digits/lock", "");
  write("runs/digits/log/rank-0.log", "");
  EXPECT_EQ(choose(), "this run: runs/digits");
  write("runs/digits/notes", "");
  EXPECT_EQ(choose(), "runs/digits is not a run directory; this run: runs/digits-2");
  write_run("digits", false, "data: [\n");
  EXPECT_TRUE(choose().starts_with("runs/digits has a job.yaml that cannot be read (")) << choose();
  job_.train.seed = 5;
  write_run("digits");
  job_.train.seed = 6;
  EXPECT_TRUE(choose().starts_with("runs/digits differs in train.seed")) << choose();
  write("runs/digits/job.yaml", "# job 'digits-x'\n");
  EXPECT_EQ(choose(), "this run: runs/digits-2 (the first of this job)") << "another job's";
}

TEST_F(ChosenDirectoryTest, WhatCannotBeOpenedIsPassedOver) {
  write_run("digits");
  const auto refuse = [&](auto error) {
    on_open_ = [error](const std::string& path) {
      if (path == "runs/digits") throw error;
    };
    return choose();
  };
  EXPECT_EQ(refuse(RunInUseError("x")), "runs/digits is in use by another job; this run: runs/digits-2");
  EXPECT_EQ(refuse(ConfigError("x")), "runs/digits cannot be resumed (x); this run: runs/digits-2");
  EXPECT_EQ(refuse(DataError("x")), "runs/digits cannot be resumed (x); this run: runs/digits-2");
  EXPECT_THROW(refuse(IoError("x")), IoError);
}

TEST_F(ChosenDirectoryTest, ANewDirectoryIsOneThatNoOtherStartTakesMeanwhile) {
  on_open_ = [&](const std::string& path) {
    if (path == "runs/digits") throw RunInUseError("x");
    if (path == "runs/digits-2") write_run("digits-2");
  };
  EXPECT_EQ(choose(), "this run: runs/digits-3 (the first of this job)");
  EXPECT_EQ(opened_, (Names{"runs/digits", "runs/digits-2", "runs/digits-3"}));
}

/// A run directory on the disk.
class RunDirectoryFilesTest : public ::testing::Test {
 protected:
  RunDirectoryFilesTest() {
    job_.run.dir = directory_.path("run");
    fs::create_directory(job_.run.dir);
  }
  void write(const std::string& name, const std::string& text = "x") const {
    fs::create_directories(fs::path(job_.run.dir + "/" + name).parent_path());
    std::ofstream(job_.run.dir + "/" + name) << text;
  }
  std::set<std::string> names(const std::string& folder = "") const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(job_.run.dir + folder))
      found.insert(entry.path().filename());
    return found;
  }
  std::string refusal() const {
    return test::error_of<ConfigError>([&] { RunDirectory(Env::posix(), job_, false); });
  }
  /// Opens it at a step. @returns standard error
  std::string open(std::int64_t step) const {
    ::testing::internal::CaptureStderr();
    RunDirectory directory(Env::posix(), job_, false);
    std::move(directory).open(step, true, {});
    return ::testing::internal::GetCapturedStderr();
  }

  TemporaryDirectory directory_;
  Job job_;
};

TEST_F(RunDirectoryFilesTest, ADirectoryOfOthersIsRefused) {
  for (const char* name : {".hidden", "model.yaml", "other.yml", "lost+found"}) write(name);
  EXPECT_EQ(refusal(), "");
  fs::remove(job_.run.dir + "/lock");
  const std::string holds = "run.dir: " + job_.run.dir + " holds ",
                    own = "; a run needs its own directory: choose another name, or an empty directory";
  for (const char* name : {"a", "b", "c"}) write(name);
  EXPECT_EQ(refusal(), holds + "other files and no run (a, b, c)" + own);
  write("d");
  EXPECT_EQ(refusal(), holds + "other files and no run (a, b, c, ...)" + own);
  write("metrics.jsonl", "");
  EXPECT_NE(refusal(), "");
  write("job.yaml");
  EXPECT_EQ(refusal(), "") << "a copy of a run without its lock";
  fs::remove(job_.run.dir + "/lock");
  fs::remove(job_.run.dir + "/metrics.jsonl");
  EXPECT_EQ(refusal(), holds +
                           "a job.yaml that no run has written, and a run's own job.yaml would take its "
                           "place; choose another name, such as run.dir=" +
                           job_.run.dir + "/run, or give that file another name");
  write("trail.bin");
  EXPECT_EQ(refusal(), "");
}

TEST_F(RunDirectoryFilesTest, ARunThatBeginsAnewMovesAllOfTheOneBefore) {
  const std::set<std::string> moved = {
      "checkpoints", "metrics.jsonl", "trail.bin",   kRankFile,  kDoubtFile,
      "status.json", "job.yaml",      "report.html", kTraceFile, "events.out.tfevents.1.lockstep"};
  for (const std::string& name : moved)
    if (name != "checkpoints") write(name, name == "metrics.jsonl" ? "" : "x");
  write("notes");
  save_checkpoint(Env::posix(), job_.run.dir, make_state(1));
  fs::create_directory(job_.run.dir + "/previous-1");
  job_.run.resume = "never";
  EXPECT_EQ(open(0), "");
  EXPECT_EQ(names("/previous-2"), moved);
  EXPECT_EQ(names(), (std::set<std::string>{"job.yaml", "lock", "log", "metrics.jsonl", "notes", "previous-1",
                                            "previous-2", "status.json"}));
}

TEST_F(RunDirectoryFilesTest, ARunThatSavedNothingIsBegunOver) {
  for (const char* name :
       {"metrics.jsonl", "trail.bin", kRankFile, "events.out.tfevents.1.lockstep", "notes"})
    write(name, "");
  write("lock", "");
  EXPECT_EQ(open(0), "");
  EXPECT_EQ(names(),
            (std::set<std::string>{"job.yaml", "lock", "log", "metrics.jsonl", "notes", "status.json"}));
}

TEST_F(RunDirectoryFilesTest, LaterCheckpointsAreMovedAsideWithTheirMetrics) {
  for (const std::int64_t step : {1, 2, 3}) save_checkpoint(Env::posix(), job_.run.dir, make_state(step));
  const std::string lines = "{\"event\":\"step\",\"step\":1}\n{\"event\":\"step\",\"step\":2}\n";
  write("metrics.jsonl", lines);
  write(kTrailFile);
  const std::string aside = job_.run.dir + "/previous-1/checkpoints";
  EXPECT_EQ(open(1), "lockstep: " + aside + ": the checkpoints after step 1 were moved there\n");
  EXPECT_EQ(names("/previous-1"), (std::set<std::string>{"checkpoints", "metrics.jsonl", kTrailFile}));
  EXPECT_EQ(names("/previous-1/checkpoints"), (std::set<std::string>{"step-00000002", "step-00000003"}));
  EXPECT_EQ(names("/checkpoints"), std::set<std::string>{"step-00000001"});
  EXPECT_EQ(text_of(job_.run.dir + "/previous-1/metrics.jsonl"), lines);
  EXPECT_EQ(text_of(job_.run.dir + "/metrics.jsonl"), lines.substr(0, lines.size() / 2));
}

/// Rank 0's word, to the launcher that asks for it.
TEST_F(RunDirectoryFilesTest, ALauncherIsToldWhereARunIs) {
  const std::string file = directory_.path("told");
  const auto tell = [&](const std::string& run, const char* to) {
    const test::SetVariable variable("LOCKSTEP_RUN_FILE", to);
    return test::error_of<UsageError>(
        [&] { run_thread_ranks(1, [&](Communicator& comm) { tell_run_directory(comm, run); }); });
  };
  for (const char* nowhere : {static_cast<const char*>(nullptr), ""}) EXPECT_EQ(tell("runs/a", nowhere), "");
  for (const char* run : {"runs/a", "runs/b"}) {
    EXPECT_EQ(tell(run, file.c_str()), "");
    EXPECT_EQ(text_of(file), run + std::string("\n"));
  }
  std::ofstream(file, std::ios::trunc).close();
  EXPECT_EQ(tell("runs/c", file.c_str()), "");
  for (const char* other : {"runs/a\nruns/b\n", "runs/a"}) {
    std::ofstream(file) << other;
    test::expect_words(tell("runs/a", file.c_str()),
                       {"LOCKSTEP_RUN_FILE: " + file +
                        ": is there, and has other content than a run's line; name a new file"});
    EXPECT_EQ(text_of(file), other);
  }
}

// Verdicts: of the last start under one name, of earlier ones under numbers.

class VerdictFileTest : public ::testing::Test {
 protected:
  VerdictFileTest() { std::filesystem::create_directory(run_.path() + "/log"); }
  /// Starts all ranks with a path for the verdict.
  std::string start(int ranks = 2) const {
    std::vector<std::string> paths(static_cast<std::size_t>(ranks));
    run_thread_ranks(ranks, [&](Communicator& comm) {
      open_verdict(comm, comm.rank() == 0 ? run_.path() : "");
      at(paths, comm.rank()) = comm.activity().verdict_file.get();
    });
    EXPECT_EQ(paths.front(), paths.back());
    return paths.front();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const std::string& path : verdict_files(Env::posix(), run_.path()))
      found.push_back(std::filesystem::path(path).filename());
    return found;
  }

  TemporaryDirectory run_;
};

/// Its name is how ranks agree on which of them speaks: with a link there, none would.
TEST_F(VerdictFileTest, EarlierOnesGetNumbersInOrderAndALinkIsRefused) {
  for (const char* text : {"first", "second"}) std::ofstream(start()) << text;
  start(1);  // a single rank loses no other
  EXPECT_EQ(names(), (std::vector<std::string>{"verdict-1.txt", "verdict-2.txt"}));
  std::ofstream(start()) << "third";
  EXPECT_EQ(names(), (std::vector<std::string>{"verdict-1.txt", "verdict-2.txt", "verdict.txt"}));
  EXPECT_EQ(text_of(run_.path("log/verdict-2.txt")), "second");
  fs::remove(run_.path("log/verdict.txt"));
  fs::create_symlink("/dev/null", run_.path("log/verdict.txt"));
  EXPECT_THROW(start(), IoError);
}

}  // namespace
}  // namespace lockstep
