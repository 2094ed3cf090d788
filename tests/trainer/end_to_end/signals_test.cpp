// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A run that is asked to stop saves one and the same step on all ranks, and goes on from there as if nothing
/// had happened.
#include "tests/trainer/end_to_end/program.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::testing {
namespace {

/// Starts `command` in the background, sends `signal` to `target` once the run has logged a few steps, and
/// returns how it ended. `target` is a shell expression for the process to signal.
Outcome run_and_signal(const std::string& command, const std::string& run_dir, const std::string& signal,
                       const std::string& target) {
  return run_shell(command + " > " + run_dir + ".out 2> " + run_dir + ".err & run=$!\n" +
                   "for i in $(seq 600); do grep -qs '\"step\":3' " + run_dir +
                   "/metrics.jsonl && break; sleep 0.05; done\n" + "kill -" + signal + " " + target +
                   "\nwait $run; code=$?\ncat " + run_dir + ".out; cat " + run_dir + ".err >&2; exit $code");
}

std::string long_job(const TemporaryDirectory& directory, const std::string& run_dir) {
  return "train " + write_small_job(directory) +
         " train.epochs=1000 run.checkpoint_every_steps=0 run.dir=" + run_dir;
}

/// The undisturbed run to the same step, for comparison.
std::string hash_at_step(const TemporaryDirectory& directory, std::int64_t step) {
  const auto outcome = lockstep("train " + write_small_job(directory) + " train.epochs=1000 run.dir=" +
                                directory.path("undisturbed") + " train.max_steps=" + std::to_string(step));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.everything();
  return outcome.last_line();
}

std::int64_t saved_step(const std::string& run_dir) {
  std::int64_t step = -1;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir + "/checkpoints")) {
    step = std::max<std::int64_t>(step, std::stoll(entry.path().filename().string().substr(5)));
  }
  return step;
}

/// Open MPI's mpirun, itself sent INT or TERM, passes TERM on but returns 1 whatever the ranks return. It
/// forwards USR1 and USR2 and returns what rank 0 does.
int exit_code_of_mpirun(const std::string& signal) {
  return signal == "INT" || signal == "TERM" ? 1 : 75;
}

TEST(SignalTest, EachSignalStopsAllRanksWithEverythingSaved) {
  for (const std::string signal : {"INT", "TERM", "USR1", "USR2"}) {
    const TemporaryDirectory directory;
    const auto run_dir = directory.path("run");
    const auto command = mpirun_command(3, long_job(directory, run_dir));
    const auto outcome = run_and_signal(command, run_dir, signal, "$run");
    EXPECT_EQ(outcome.exit_code, exit_code_of_mpirun(signal)) << signal << "\n" << outcome.everything();
    EXPECT_NE(outcome.out.find("stopped on request at step"), std::string::npos)
        << signal << outcome.everything();
    const auto hash = lockstep("hash " + run_dir);
    EXPECT_EQ(hash.last_line(), hash_at_step(directory, saved_step(run_dir))) << signal;
  }
}

TEST(SignalTest, ASignalToOneRankStopsAll) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  const auto command = mpirun_command(3, long_job(directory, run_dir));
  const auto outcome = run_and_signal(command, run_dir, "TERM", "$(pgrep -P $run | tail -n 1)");
  EXPECT_EQ(outcome.exit_code, 75) << outcome.everything();
  EXPECT_GT(saved_step(run_dir), 0);
}

TEST(SignalTest, AStoppedRunEndsAsIfItHadNotBeenStopped) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  const auto stopped =
      run_and_signal(mpirun_command(2, long_job(directory, run_dir)), run_dir, "USR1", "$run");
  ASSERT_EQ(stopped.exit_code, 75) << stopped.everything();
  const auto last = saved_step(run_dir) + 5;
  const auto resumed =
      lockstep_on_ranks(3, long_job(directory, run_dir) + " train.max_steps=" + std::to_string(last));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.everything();
  EXPECT_EQ(resumed.last_line(), hash_at_step(directory, last));
  EXPECT_EQ(comparable_metrics(run_dir), comparable_metrics(directory.path("undisturbed")));
}

TEST(SignalTest, ATimeLimitStopsARunAsASignalDoes) {
  const TemporaryDirectory directory;
  const auto run_dir = directory.path("run");
  const auto limited = lockstep_on_ranks(2, long_job(directory, run_dir) + " run.max_seconds=2");
  EXPECT_EQ(limited.exit_code, 75) << limited.everything();
  EXPECT_EQ(lockstep("hash " + run_dir).last_line(), hash_at_step(directory, saved_step(run_dir)));
  const auto at_the_end_of_its_allocation =
      run_shell("export SLURM_JOB_END_TIME=$(($(date +%s) + 30)); exec $LOCKSTEP_PROGRAM " +
                long_job(directory, directory.path("slurm")) + " parallel.backend=thread");
  EXPECT_EQ(at_the_end_of_its_allocation.exit_code, 75) << at_the_end_of_its_allocation.everything();
  EXPECT_EQ(saved_step(directory.path("slurm")), 1);
}

}  // namespace
}  // namespace lockstep::testing
