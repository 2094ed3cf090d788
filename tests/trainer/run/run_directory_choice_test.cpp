// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Directory of a run whose job names none: the newest unfinished one, or a new one.
#include "common/error.hpp"
#include "data/sets/leave_out.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_writer.hpp"

namespace lockstep {
namespace {

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

TEST_F(ChosenDirectoryTest, ANumberAfterWhichThereIsNoneIsNoneOfTheJob) {
  for (const char* name : {"digits-2147483647", "digits-2147482647"}) write_run(name, true);
  EXPECT_EQ(choose(), "this run: runs/digits (the first of this job)");
  write_run("digits-2147482646", true);
  EXPECT_EQ(choose(), "runs/digits-2147482646 is finished; this run: runs/digits-2147482648");
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
  job_.train.initial_weights = "w";
  EXPECT_EQ(choose(), "runs/digits is finished; this run: runs/digits-2") << "it has its weights";
  job_.train.initial_weights = "";
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
  EXPECT_TRUE(choose().starts_with("runs/digits differs in train.seed (was 5, now 6);")) << choose();
  write("runs/digits/job.yaml", "# job 'digits-x'\n");
  EXPECT_EQ(choose(), "this run: runs/digits-2 (the first of this job)") << "another job's";
}

/// Its contents are compared when the run is opened.
TEST_F(ChosenDirectoryTest, AListOfSamplesIsThatOfItsFile) {
  job_.data.leave_out_file = "out.txt";
  job_.data.leave_out = std::make_shared<const LeaveOutList>();
  write_run("digits");
  EXPECT_EQ(choose(), "going on with the unfinished run: runs/digits");
  job_.data.leave_out_file = "other.txt";
  EXPECT_TRUE(choose().starts_with("runs/digits differs in data.leave_out")) << choose();
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

TEST_F(ChosenDirectoryTest, WhereOthersTakeEachOneTheSearchEnds) {
  on_open_ = [](const std::string&) { throw RunInUseError("x"); };
  EXPECT_EQ(message_of<IoError>([&] { choose(); }),
            "runs/digits to runs/digits-1000: another job holds each of them; give a run.dir");
  EXPECT_EQ(opened_.size(), 1000U);
}

TEST_F(ChosenDirectoryTest, ARunThatEndsWhileItsLockIsWaitedForIsPassedOver) {
  write_run("digits");
  on_open_ = [&](const std::string& path) {
    if (path == "runs/digits") write_run("digits", true);
  };
  EXPECT_EQ(choose(), "runs/digits is finished; this run: runs/digits-2");
}

TEST(KeepPolicyTest, CheckpointsStayAsTheJobSays) {
  Job job;
  job.run.keep = {.last = 5, .every_steps = 7, .best = false};
  const auto [last, every_steps, best] = keep_policy(job);
  EXPECT_EQ(last, 5);
  EXPECT_EQ(every_steps, 7);
  EXPECT_FALSE(best);
}

}  // namespace
}  // namespace lockstep
