// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A stopped run saves the same step on all ranks, and goes on from there as if nothing had
/// happened.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

std::string long_job(const TemporaryDirectory& directory, const std::string& run_dir) {
  return "train " + write_small_job(directory) +
         " train.epochs=1000 run.checkpoint_every_steps=0 run.dir=" + run_dir;
}

/// The undisturbed run to the same step, for comparison.
std::string hash_at_step(const TemporaryDirectory& directory, std::int64_t step) {
  const auto outcome = succeed("train " + write_small_job(directory) + " train.epochs=1000 run.dir=" +
                               directory.path("undisturbed") + " train.max_steps=" + std::to_string(step));
  return outcome.last_line();
}

std::int64_t saved_step(const std::string& run_dir) {
  std::int64_t step = -1;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir + "/checkpoints")) {
    step = std::max<std::int64_t>(step, std::stoll(entry.path().filename().string().substr(5)));
  }
  return step;
}

/// Open MPI's mpirun, itself sent INT, TERM or HUP, passes TERM on but returns 1 whatever the ranks return.
/// It forwards USR1 and USR2 and returns what rank 0 does.
int exit_code_of_mpirun(const std::string& signal) {
  return signal == "USR1" || signal == "USR2" ? 75 : 1;
}

/// It kills ranks that have not ended so many seconds after TERM. By default that is one, in which a busy
/// machine may not save.
constexpr const char* kPatient = "OMPI_MCA_odls_base_sigkill_timeout=3 ";

TEST(SignalTest, EachSignalStopsAllRanksWithEverythingSaved) {
  for (const std::string signal : {"INT", "TERM", "HUP", "USR1", "USR2"}) {
    const TemporaryDirectory directory;
    const auto run_dir = directory.path("run");
    const auto command = kPatient + mpirun_command(3, long_job(directory, run_dir));
    const auto outcome = run_and_strike(command, run_dir, "kill -" + signal + " $run");
    EXPECT_EQ(outcome.exit_code, exit_code_of_mpirun(signal)) << signal << "\n" << outcome.everything();
    expect_words(outcome.out, {"stopped on request at step"});
    EXPECT_EQ(count_of("stopping after this step", outcome.err), 1) << outcome.everything();
    expect_words(read_text(run_dir + "/status.json"),
                 {R"("state": "saved")", fmt::format(R"("step": {},)", saved_step(run_dir))});
    const auto hash = lockstep("hash " + run_dir);
    EXPECT_EQ(hash.last_line(), hash_at_step(directory, saved_step(run_dir))) << signal;
  }
}

TEST(SignalTest, ASignalToOneRankStopsAll) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  const auto command = mpirun_command(3, long_job(directory, run_dir));
  expect_says(run_and_strike(command, run_dir, "kill -TERM " + process_of_rank(2)), 75);
  EXPECT_GT(saved_step(run_dir), 0);
}

TEST(SignalTest, AStoppedRunEndsAsIfItHadNotBeenStopped) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  const auto stopped =
      run_and_strike(mpirun_command(2, long_job(directory, run_dir)), run_dir, "kill -USR1 $run");
  ASSERT_EQ(stopped.exit_code, 75) << stopped.everything();
  const auto last = saved_step(run_dir) + 5;
  const auto resumed = ended_well(
      lockstep_on_ranks(3, long_job(directory, run_dir) + " train.max_steps=" + std::to_string(last)));
  EXPECT_EQ(resumed.last_line(), hash_at_step(directory, last));
  EXPECT_EQ(comparable_metrics(run_dir), comparable_metrics(directory.path("undisturbed")));
}

/// `lockstep ARGUMENTS` in the shell, in place of the shell, with SIGHUP as on a terminal.
std::string directly(const std::string& arguments) {
  return "env --default-signal=HUP,INT $LOCKSTEP_PROGRAM " + arguments;
}

TEST(SignalTest, SignalsCloseToEachOtherAreOneStop) {
  for (const std::string twice :
       {"kill -TERM $run; kill -USR1 $run", "kill -XCPU $run; kill -XCPU $run",
        "kill -INT $run; sleep 0.3; kill -0 $run && kill -INT $run", "kill -HUP $run; kill -HUP $run"}) {
    const TemporaryDirectory directory;
    const auto run_dir = directory.path("run");
    expect_says(
        run_and_strike(directly(long_job(directory, run_dir) + " parallel.backend=thread parallel.ranks=2"),
                       run_dir, twice),
        75);
    EXPECT_EQ(lockstep("hash " + run_dir).last_line(), hash_at_step(directory, saved_step(run_dir))) << twice;
  }
}

/// GNU timeout signals its child, and then the group that it is in.
TEST(SignalTest, ARunBehindTimeoutIsSaved) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  const auto job = long_job(directory, run_dir) + " parallel.backend=thread parallel.ranks=2";
  expect_says(
      run_and_strike("env --default-signal=INT timeout --preserve-status 100 $LOCKSTEP_PROGRAM " + job,
                     run_dir, "kill -TERM $run"),
      75);
  EXPECT_EQ(lockstep("hash " + run_dir).last_line(), hash_at_step(directory, saved_step(run_dir)));
}

TEST(SignalTest, UnderNohupAHangUpMeansNothing) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  expect_says(run_and_strike("nohup $LOCKSTEP_PROGRAM " + long_job(directory, run_dir), run_dir,
                             "kill -HUP $run; sleep 0.3; kill -USR1 $run"),
              75, {"SIGUSR1 received"});
}

/// Rank 1 is stopped, so that rank 0 cannot stop in good order.
TEST(SignalTest, TheThirdRequestLeavesUnsavedAndSaysSo) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  const auto command = mpirun_command(2, long_job(directory, run_dir));
  const auto outcome = run_and_strike(command, run_dir,
                                      "first=" + process_of_rank(0) + "; kill -STOP " + process_of_rank(1) +
                                          "; kill -INT $first; sleep 2; kill -INT $first; sleep 2; "
                                          "kill -INT $first");
  EXPECT_EQ(outcome.exit_code, 128 + 2) << outcome.everything();
  for (const char* words : {"SIGINT again: still stopping; the next one leaves at once",
                            "SIGINT again: leaving now, without saving; the run goes on from its last"})
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.everything();
  EXPECT_EQ(outcome.out.find("stopped on request"), std::string::npos) << outcome.everything();
}

/// A test set so large that the signal arrives in its evaluation.
TEST(SignalTest, ARunStoppedInAnEvaluationEndsAsIfItHadNotBeen) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  const auto job = "train " + write_small_job(directory) +
                   " train.epochs=1 data.test_samples=80000 parallel.backend=thread ";
  const auto stopped = run_and_strike(directly(job + "run.dir=" + run_dir), run_dir, "kill -TERM $run");
  ASSERT_EQ(stopped.exit_code, 75) << stopped.everything();
  ASSERT_EQ(saved_step(run_dir), 3) << "it stopped later than in the first evaluation";
  const auto resumed = succeed(job + "run.dir=" + run_dir);
  const auto calm = lockstep(job + "run.dir=" + directory.path("calm"));
  EXPECT_EQ(resumed.last_line(), calm.last_line());
  EXPECT_EQ(comparable_metrics(run_dir), comparable_metrics(directory.path("calm")));
}

TEST(SignalTest, WhenNobodyReadsWhatItPrintsARunGoesOn) {
  const TemporaryDirectory directory;
  const auto outcome = run_shell("{ $LOCKSTEP_PROGRAM train " + write_small_job(directory) +
                                 " train.epochs=20; echo $? > " + directory.path("code") + "; } | head -n 1");
  EXPECT_EQ(read_text(directory.path("code")), "0\n") << outcome.everything();
  EXPECT_EQ(read_metrics(directory.path("run")).back()["event"], "end");
  EXPECT_EQ(outcome.err, "");
}

TEST(SignalTest, ATimeLimitStopsARunAsASignalDoes) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  expect_says(lockstep_on_ranks(2, long_job(directory, run_dir) + " run.max_seconds=2"), 75);
  EXPECT_EQ(lockstep("hash " + run_dir).last_line(), hash_at_step(directory, saved_step(run_dir)));
  expect_says(run_shell("export SLURM_JOB_END_TIME=$(($(date +%s) + 30)); exec $LOCKSTEP_PROGRAM " +
                        long_job(directory, directory.path("slurm")) + " parallel.backend=thread"),
              75);
  EXPECT_EQ(saved_step(directory.path("slurm")), 1);
}

/// One step an epoch, so that each stop comes between a step and its evaluation.
TEST(SignalTest, EveryStartUnderATimeLimitGetsFurtherThanAnEvaluation) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  for (int start = 1; start <= 3; ++start) {
    const auto outcome = lockstep(long_job(directory, run_dir) +
                                  " parallel.backend=thread data.train_samples=100 run.max_seconds=0.001");
    ASSERT_EQ(outcome.exit_code, 75) << outcome.everything();
    EXPECT_EQ(saved_step(run_dir), start);
  }
}

/// No file may grow beyond 30 KB, and a checkpoint's does. 75 would promise that it is there.
TEST(SignalTest, AStopOnAFullDiskIsNo75) {
  for (const std::string on_save_error : {"stop", "continue"}) {
    const TemporaryDirectory directory;
    const auto run_dir = directory.path("run");
    const auto command = "exec $LOCKSTEP_PROGRAM " + long_job(directory, run_dir) +
                         " parallel.backend=thread run.max_seconds=0.001 run.on_save_error=" + on_save_error;
    const auto full = run_shell("ulimit -f 60; " + command);
    expect_says(full, 74,
                {"stopped on request at step 1, but that step is not saved",
                 "File too large; raise the limit on the size of files (ulimit -f)"});
    EXPECT_EQ(full.out.find("stopped on request"), std::string::npos) << full.out;
    EXPECT_EQ(run_shell(command).exit_code, 75);
    EXPECT_EQ(saved_step(run_dir), 1);
  }
}

TEST(SignalTest, AnEndOfAllocationInThePastIsIgnoredWithAWarning) {
  const TemporaryDirectory directory;
  const auto outcome =
      ended_well(run_shell("SLURM_JOB_END_TIME=1700000000 $LOCKSTEP_PROGRAM train " +
                           write_small_job(directory) + " parallel.backend=thread parallel.ranks=2"));
  EXPECT_EQ(count_of("SLURM_JOB_END_TIME=1700000000 is in the past", outcome.err), 1) << outcome.everything();
}

}  // namespace
}  // namespace lockstep::testing
