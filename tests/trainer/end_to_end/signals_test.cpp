// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A stopped run saves the same step on all ranks, and goes on from there as if nothing had
/// happened.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

class SignalTest : public ::testing::Test {
 protected:
  std::string path(const std::string& run) const { return directory_.path(run); }
  /// The command that trains for long and saves nothing unless it is stopped.
  std::string long_job(const std::string& run = "run") const {
    return "train " + write_small_job(directory_) +
           " train.epochs=1000 run.checkpoint_every_steps=0 run.dir=" + path(run);
  }
  std::int64_t saved_step(const std::string& run = "run") const {
    std::int64_t step = -1;
    for (const auto& entry : std::filesystem::directory_iterator(path(run) + "/checkpoints"))
      step = std::max<std::int64_t>(step, std::stoll(entry.path().filename().string().substr(5)));
    return step;
  }
  /// The undisturbed run to the same step, for comparison, in RUN-undisturbed.
  std::string hash_at_step(std::int64_t step, const std::string& run = "run") const {
    return succeed("train " + write_small_job(directory_) + " train.epochs=1000 run.dir=" +
                   path(run + "-undisturbed") + " train.max_steps=" + std::to_string(step))
        .last_line();
  }
  void expect_saved_as_undisturbed(const std::string& run = "run") const {
    EXPECT_EQ(lockstep("hash " + path(run)).last_line(), hash_at_step(saved_step(run), run)) << run;
  }

  TemporaryDirectory directory_;
};

/// Open MPI's mpirun, itself sent INT, TERM or HUP, passes TERM on but returns 1 whatever the ranks return.
/// It forwards USR1 and USR2 and returns what rank 0 does.
int exit_code_of_mpirun(const std::string& signal) {
  return signal == "USR1" || signal == "USR2" ? 75 : 1;
}

/// It sends the ranks TERM so many seconds after it was told to stop, and KILL as many seconds later. By default
/// that is one second, in which a busy machine may not save. It reads nothing of what they print meanwhile.
constexpr const char* kPatient = "OMPI_MCA_odls_base_sigkill_timeout=2 ";

/// Prints a line for each step, so that mpirun's pseudo-terminal is full before TERM comes.
TEST_F(SignalTest, EachSignalStopsAllRanksWithEverythingSaved) {
  for (const std::string signal : {"INT", "TERM", "HUP", "USR1", "USR2"}) {
    const auto outcome =
        run_and_strike(kPatient + mpirun_command(3, long_job(signal) + " run.print_loss_every_steps=1"),
                       path(signal), "kill -" + signal + " $run");
    EXPECT_EQ(outcome.exit_code, exit_code_of_mpirun(signal)) << signal << "\n" << outcome.everything();
    if (exit_code_of_mpirun(signal) == 75) expect_words(outcome.out, {"stopped on request at step"});
    EXPECT_EQ(count_of("stopping after this step", outcome.err), 1) << outcome.everything();
    expect_words(read_text(path(signal) + "/status.json"),
                 {R"("state": "saved")", fmt::format(R"("step": {},)", saved_step(signal))});
    expect_saved_as_undisturbed(signal);
  }
}

TEST_F(SignalTest, ASignalToOneRankStopsAll) {
  const auto outcome =
      run_and_strike(mpirun_command(3, long_job()), path("run"), "kill -TERM " + process_of_rank(2));
  expect_says(outcome, 75);
  expect_words(outcome.out, {"another rank was told to stop: stopping after this step\n"});
  EXPECT_GT(saved_step(), 0);
}

TEST_F(SignalTest, AStoppedRunEndsAsIfItHadNotBeenStopped) {
  expect_says(run_and_strike(mpirun_command(2, long_job()), path("run"), "kill -USR1 $run"), 75);
  const auto last = saved_step() + 5;
  const auto resumed =
      ended_well(lockstep_on_ranks(3, long_job() + " train.max_steps=" + std::to_string(last)));
  EXPECT_EQ(resumed.last_line(), hash_at_step(last));
  EXPECT_EQ(comparable_metrics(path("run")), comparable_metrics(path("run-undisturbed")));
}

/// With SIGHUP as on a terminal. GNU timeout signals its child, and then the group that it is in.
TEST_F(SignalTest, SignalsCloseToEachOtherAreOneStop) {
  const std::string directly = "env --default-signal=HUP,INT ";
  const std::pair<std::string, std::string> starts[] = {
      {directly, "kill -TERM $run; kill -USR1 $run"},
      {directly, "kill -XCPU $run; kill -XCPU $run"},
      {directly, "kill -INT $run; sleep 0.3; kill -0 $run && kill -INT $run"},
      {directly, "kill -HUP $run; kill -HUP $run"},
      {"env --default-signal=INT timeout --preserve-status 100 ", "kill -TERM $run"}};
  int number = 0;
  for (const auto& [start, blow] : starts) {
    SCOPED_TRACE(start + blow);
    const std::string run = std::to_string(++number);
    expect_says(run_and_strike(start + "$LOCKSTEP_PROGRAM " + long_job(run) +
                                   " parallel.backend=thread parallel.ranks=2",
                               path(run), blow),
                75);
    expect_saved_as_undisturbed(run);
  }
}

TEST_F(SignalTest, UnderNohupAHangUpMeansNothing) {
  expect_says(run_and_strike("nohup $LOCKSTEP_PROGRAM " + long_job(), path("run"),
                             "kill -HUP $run; sleep 0.3; kill -USR1 $run"),
              75, {"SIGUSR1 received"});
}

/// Rank 1 is stopped, so that rank 0 cannot stop in good order.
TEST_F(SignalTest, TheThirdRequestLeavesUnsavedAndSaysSo) {
  const auto outcome = run_and_strike(mpirun_command(2, long_job()), path("run"),
                                      "first=" + process_of_rank(0) + "; kill -STOP " + process_of_rank(1) +
                                          "; kill -INT $first; sleep 2; kill -INT $first; sleep 2; "
                                          "kill -INT $first");
  expect_says(outcome, 128 + 2,
              {"SIGINT again: still stopping; the next one leaves at once",
               "SIGINT again: leaving now, without saving; the run goes on from its last"});
  EXPECT_EQ(outcome.out.find("stopped on request"), std::string::npos) << outcome.everything();
}

/// A test set so large that the signal arrives in its evaluation.
TEST_F(SignalTest, ARunStoppedInAnEvaluationEndsAsIfItHadNotBeen) {
  const auto job = "train " + write_small_job(directory_) +
                   " train.epochs=1 data.test_samples=80000 parallel.backend=thread run.dir=";
  expect_says(run_and_strike("$LOCKSTEP_PROGRAM " + job + path("run"), path("run"), "kill -TERM $run"), 75);
  ASSERT_EQ(saved_step(), 3) << "it stopped later than in the first evaluation";
  const auto resumed = succeed(job + path("run"));
  EXPECT_EQ(resumed.last_line(), succeed(job + path("calm")).last_line());
  EXPECT_EQ(comparable_metrics(path("run")), comparable_metrics(path("calm")));
}

TEST_F(SignalTest, WhenNobodyReadsWhatItPrintsARunGoesOn) {
  const auto outcome = run_shell("{ $LOCKSTEP_PROGRAM train " + write_small_job(directory_) +
                                 " train.epochs=20; echo $? > " + path("code") + "; } | head -n 1");
  EXPECT_EQ(read_text(path("code")), "0\n") << outcome.everything();
  EXPECT_EQ(read_metrics(path("run")).back()["event"], "end");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(SignalTest, ATimeLimitStopsARunAsASignalDoes) {
  expect_says(lockstep_on_ranks(2, long_job() + " run.max_seconds=2"), 75);
  expect_saved_as_undisturbed();
  const auto slurm = run_shell("export SLURM_JOB_END_TIME=$(($(date +%s) + 30)); exec $LOCKSTEP_PROGRAM " +
                               long_job("slurm") + " parallel.backend=thread");
  expect_says(slurm, 75);
  expect_words(slurm.out, {"the time is up (run.max_seconds, or the end of the allocation): stopping after"});
  EXPECT_EQ(saved_step("slurm"), 1);
}

/// One step an epoch, so that each stop comes between a step and its evaluation.
TEST_F(SignalTest, EveryStartUnderATimeLimitGetsFurtherThanAnEvaluation) {
  for (int start = 1; start <= 3; ++start) {
    expect_says(
        lockstep(long_job() + " parallel.backend=thread data.train_samples=100 run.max_seconds=0.001"), 75);
    EXPECT_EQ(saved_step(), start);
  }
}

/// No file may grow beyond 30 KB, and a checkpoint's does. 75 would promise that it is there.
TEST_F(SignalTest, AStopOnAFullDiskIsNo75) {
  for (const std::string on_save_error : {"stop", "continue"}) {
    const auto command = "exec $LOCKSTEP_PROGRAM " + long_job(on_save_error) +
                         " parallel.backend=thread run.max_seconds=0.001 run.on_save_error=" + on_save_error;
    const auto full = run_shell("ulimit -f 60; " + command);
    expect_says(full, 74,
                {"stopped on request at step 1, but that step is not saved",
                 "; the same command resumes from the newest checkpoint in " + path(on_save_error) +
                     ", if there is one",
                 "File too large; raise the limit on the size of files (ulimit -f)"});
    EXPECT_EQ(full.out.find("stopped on request"), std::string::npos) << full.out;
    expect_says(run_shell(command), 75);
    EXPECT_EQ(saved_step(on_save_error), 1);
  }
}

TEST_F(SignalTest, AnEndOfAllocationInThePastIsIgnoredWithAWarning) {
  const auto outcome =
      ended_well(run_shell("SLURM_JOB_END_TIME=1700000000 $LOCKSTEP_PROGRAM train " +
                           write_small_job(directory_) + " parallel.backend=thread parallel.ranks=2"));
  EXPECT_EQ(count_of("SLURM_JOB_END_TIME=1700000000 is in the past", outcome.err), 1) << outcome.everything();
}

}  // namespace
}  // namespace lockstep::testing
