// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The directory that a run takes: what in it stays, and what is moved aside.
#include "trainer/run/run_directory.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/step_trace.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

std::atomic<int> renames_left = -1;  ///< that succeed; -1: all do

}  // namespace

// In place of the C library's, for the whole of this program.
extern "C" int rename(const char* from, const char* to) noexcept {
  if (renames_left == 0) {
    errno = EIO;
    return -1;
  }
  if (renames_left > 0) --renames_left;
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace lockstep {
namespace {

namespace fs = std::filesystem;

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
  /// The line on standard error of a run that was moved.
  std::string moved(const std::string& folder) const {
    return "lockstep: " + job_.run.dir + "/" + folder + ": the run that was here before was moved there\n";
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
  for (const char* name : {"lock", "job.yaml", "trail.bin"}) fs::remove(job_.run.dir + "/" + name);
  EXPECT_NE(refusal(), "");
  save_checkpoint(Env::posix(), job_.run.dir, make_state(1));
  EXPECT_EQ(refusal(), "") << "as a command that imports weights leaves it";
}

TEST_F(RunDirectoryFilesTest, ALockIsWaitedForHalfOfTheTimeoutOrNotAtAll) {
  const RunDirectory first(Env::posix(), job_, false);
  job_.parallel.timeout_seconds = 0.2;
  const auto said = [&](auto... wait) {
    ::testing::internal::CaptureStderr();
    EXPECT_THROW(RunDirectory(Env::posix(), job_, wait...), RunInUseError);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string waits = "lockstep: " + job_.run.dir +
                            "/lock: another job is using this run directory; waiting 0.1 s for its end\n";
  EXPECT_EQ(said(false), "");
  EXPECT_EQ(said(true), waits);
  EXPECT_EQ(said(), waits) << "as a run that begins has it";
}

TEST_F(RunDirectoryFilesTest, ARunThatBeginsAnewMovesAllOfTheOneBefore) {
  const std::set<std::string> files = {
      "checkpoints", "metrics.jsonl", "trail.bin",   kRankFile,  kDoubtFile,
      "status.json", "job.yaml",      "report.html", kTraceFile, "events.out.tfevents.1.lockstep"};
  for (const std::string& name : files)
    if (name != "checkpoints") write(name, name == "metrics.jsonl" ? "" : "x");
  write("notes");
  const std::set<std::string> logs = {"rank-0.log", "verdict-1.txt", "verdict.txt"};
  for (const std::string& name : logs) write("log/" + name);
  write("log/mine");
  save_checkpoint(Env::posix(), job_.run.dir, make_state(1));
  fs::create_directory(job_.run.dir + "/previous-1");
  job_.run.resume = "never";
  EXPECT_EQ(open(0), moved("previous-2"));
  std::set<std::string> all = files;
  all.insert("log");
  EXPECT_EQ(names("/previous-2"), all);
  EXPECT_EQ(names("/previous-2/log"), logs);
  EXPECT_EQ(names("/log"), (std::set<std::string>{"mine", "rank-0.log"}));
  EXPECT_EQ(text_of(job_.run.dir + "/log/rank-0.log"), "");
  EXPECT_EQ(names(), (std::set<std::string>{"job.yaml", "lock", "log", "metrics.jsonl", "notes", "previous-1",
                                            "previous-2", "status.json"}));
  test::expect_words(text_of(job_.run.dir + "/job.yaml"), {"\n  resume: auto\n"});
}

TEST_F(RunDirectoryFilesTest, AMoveThatIsCutShortLosesNothingToTheNextStart) {
  const std::string path = job_.run.dir;
  job_ = parse_job("model: net\n", "job.yaml");
  job_.run.dir = path;
  const std::set<std::string> records = {"job.yaml", "metrics.jsonl", "trail.bin", kRankFile};
  for (int cut = 0; cut <= 4; ++cut) {
    fs::remove_all(path);
    for (const std::string& name : records) write(name, name == "job.yaml" ? to_yaml(job_) : name);
    save_checkpoint(Env::posix(), path, make_state(1));
    ::testing::internal::CaptureStderr();
    job_.run.resume = "never";
    renames_left = cut;
    EXPECT_THROW(RunDirectory(Env::posix(), job_, false).open(0, true, {}), IoError);
    renames_left = -1;
    job_.run.resume = "auto";
    RunDirectory(Env::posix(), job_, false).open(0, true, {});
    ::testing::internal::GetCapturedStderr();
    std::set<std::string> found;
    for (const std::string folder : {"/previous-1", "/previous-2"})
      if (fs::exists(path + folder)) found.merge(names(folder));
    for (const std::string name : {"checkpoints", "job.yaml", "metrics.jsonl", "trail.bin", kRankFile})
      EXPECT_TRUE(found.contains(name)) << name << " after " << cut << " renames";
  }
}

TEST_F(RunDirectoryFilesTest, ARunThatBeginsAnewMovesRecordsAloneToo) {
  job_.run.resume = "never";
  for (const std::string record : {"metrics.jsonl", "trail.bin", "lock"}) {
    fs::remove_all(job_.run.dir);
    write("lock", "");
    write(record, "");
    open(0);
    const bool is_moved = record != "lock";
    EXPECT_EQ(names().contains("previous-1"), is_moved);
    EXPECT_EQ(fs::exists(job_.run.dir + "/previous-1/" + record), is_moved);
  }
}

TEST_F(RunDirectoryFilesTest, ARunWhoseCheckpointsAreAllDamagedIsMovedAndBegunAnew) {
  const std::string manifest =
      save_checkpoint(Env::posix(), job_.run.dir, make_state(1)) + "/" + kManifestFile;
  std::ofstream(manifest) << "{}";
  ::testing::internal::CaptureStderr();
  RunDirectory directory(Env::posix(), job_, false);
  EXPECT_FALSE(directory.resume_point());
  std::move(directory).open(0, true, {});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "lockstep: " + manifest +
                ": too short for a manifest: cut off; using the checkpoint before it\n" +
                moved("previous-1"));
  EXPECT_EQ(names("/previous-1"), std::set<std::string>{"checkpoints"});
  EXPECT_EQ(names("/previous-1/checkpoints"), std::set<std::string>{"step-00000001"});
}

TEST_F(RunDirectoryFilesTest, ARunThatSavedNothingIsBegunOverByItsJobAloneAndKeptByOthers) {
  const std::string path = job_.run.dir;
  job_ = parse_job("model: net\n", "job.yaml");
  job_.run.dir = path;
  const std::set<std::string> records = {"job.yaml", "metrics.jsonl", "trail.bin", kRankFile,
                                         "events.out.tfevents.1.lockstep"};
  const std::string other = to_yaml(parse_job("model: net\n", "job.yaml", {"train.optimizer.lr=0.5"}));
  for (const std::string& job_there : {to_yaml(job_), other, std::string("x")}) {
    const bool is_same = job_there == to_yaml(job_);
    fs::remove_all(path);
    for (const std::string& name : records) write(name, name == "job.yaml" ? job_there : "");
    for (const char* name : {"lock", "notes"}) write(name, "");
    EXPECT_EQ(open(0), is_same ? "" : moved("previous-1")) << job_there;
    std::set<std::string> left = {"job.yaml", "lock", "log", "metrics.jsonl", "notes", "status.json"};
    if (!is_same) {
      left.insert("previous-1");
      EXPECT_EQ(names("/previous-1"), records);
      EXPECT_EQ(text_of(path + "/previous-1/job.yaml"), job_there);
    }
    EXPECT_EQ(names(), left) << job_there;
  }
}

TEST_F(RunDirectoryFilesTest, NothingIsLostWhereARunGoesOnFromACheckpointOfAnother) {
  const std::string path = job_.run.dir;
  job_ = parse_job("model: net\n", "job.yaml");
  job_.run.dir = path;
  const auto facts = [&] { return RunDirectory(Env::posix(), job_, false).resume_point()->state.facts; };
  const auto state_at = [&](std::int64_t step) {
    CheckpointState state = make_state(step);
    state.facts.job = determining_keys(job_);
    state.facts.trail = {3, std::string(64, 'b')};
    return state;
  };
  fs::create_directory(directory_.path("other"));
  save_checkpoint(Env::posix(), directory_.path("other"), state_at(7));
  job_.run.resume = directory_.path("other");
  EXPECT_FALSE(facts().metrics || facts().trail);
  for (const char* name : {"metrics.jsonl", kTrailFile}) write(name);
  EXPECT_TRUE(facts().metrics && facts().trail) << "what is here is compared";
  write("job.yaml", to_yaml(job_));
  EXPECT_FALSE(facts().metrics || facts().trail) << "of a start that was killed before it had saved";
  save_checkpoint(Env::posix(), path, state_at(8));
  EXPECT_FALSE(facts().metrics || facts().trail) << "the same, which had gone further";
  save_checkpoint(Env::posix(), path, state_at(6));
  EXPECT_TRUE(facts().metrics && facts().trail) << "of a run that had saved before that step";
  for (const char* name : {"metrics.jsonl", kTrailFile}) fs::remove(path + "/" + name);
  job_.run.resume = save_checkpoint(Env::posix(), path, state_at(7));
  EXPECT_TRUE(facts().metrics && facts().trail) << "its own are gone";
}

TEST_F(RunDirectoryFilesTest, TheRunOfAnotherJobGivesWayToACheckpointFromElsewhere) {
  const std::string path = job_.run.dir, other = directory_.path("other");
  job_ = parse_job("model: net\n", "job.yaml");
  job_.run.dir = path;
  job_.run.resume = other;
  CheckpointState state = make_state(7);
  state.facts.job = determining_keys(job_);
  fs::create_directory(other);
  save_checkpoint(Env::posix(), other, state);
  save_checkpoint(Env::posix(), path, make_state(1));
  write("metrics.jsonl", "{\"event\":\"step\",\"step\":1}\n");
  write("job.yaml", to_yaml(parse_job("model: net\n", "job.yaml", {"train.optimizer.lr=0.5"})));
  ::testing::internal::CaptureStderr();
  RunDirectory directory(Env::posix(), job_, false);
  const CheckpointFacts facts = directory.resume_point()->state.facts;
  std::move(directory).open(facts.step, true, facts);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), moved("previous-1"));
  EXPECT_EQ(names("/previous-1"), (std::set<std::string>{"checkpoints", "job.yaml", "metrics.jsonl"}));
  EXPECT_EQ(text_of(path + "/metrics.jsonl"), "");
  EXPECT_TRUE(list_checkpoints(Env::posix(), path).empty());
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
