// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Wrong input ends with the promised exit code and one line that names the file, the place and the fix.
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing::bad_input_test {
namespace {

// Hides GPUs: input that is refused without a GPU is to be refused on every machine.
[[maybe_unused]] const int kNoGpuIsVisible = setenv("CUDA_VISIBLE_DEVICES", "", 1);

struct Case {
  std::string title;
  std::string arguments;  ///< behind "train JOB"
  int exit_code;
  std::vector<std::string> mentions;
};

void expect_refusal(const Outcome& outcome, const Case& c) {
  SCOPED_TRACE(c.title);
  expect_says(outcome, c.exit_code, c.mentions);
  EXPECT_EQ(count_of("\nlockstep: ", "\n" + outcome.err), 1) << outcome.everything();
}

class BadInputTest : public ::testing::Test {
 protected:
  const TemporaryDirectory directory_;
  const std::string job_ = write_small_job(directory_);
};

const std::vector<Case>& refused_jobs() {
  static const std::vector<Case> cases = {
      {"misspelt key", "train.epoch=3", 2, {"train.epoch", "did you mean", "epochs"}},
      {"unknown model", "model=nte", 2, {"nte"}},
      {"ranks without work",
       "data.global_batch=64 parallel.backend=thread parallel.ranks=3",
       2,
       {"add parallel.grain=16"}},
      {"ranks meant for threads", "parallel.ranks=3", 2, {"parallel.ranks", "mpirun -np"}},
      {"missing data",
       "data.set=mnist data.train_samples=0 data.test_samples=0 data.root=/nonexistent",
       66,
       {"/nonexistent", "launch/get-data mnist"}},
      {"no GPU", "parallel.device=cuda", 69, {"parallel.device"}},
      {"NCCL without a GPU", "parallel.device=auto parallel.backend=nccl", 69, {"nccl"}},
      {"vendor kernels on the emulator",
       "parallel.device=emulated parallel.kernels=vendor",
       69,
       {"use parallel.kernels=native"}},
      {"nothing to go on from",
       "run.resume=/usr",
       66,
       {"run.resume: /usr holds no checkpoint to go on from", "leave run.resume out"}},
      {"run directory below a file", "run.dir=/dev/null/run", 74, {"/dev/null"}},
  };
  return cases;
}

TEST_F(BadInputTest, OneLineNamesTheFixAndNothingIsWritten) {
  for (const Case& c : refused_jobs()) {
    const TemporaryDirectory directory;
    const auto job = write_small_job(directory);
    expect_refusal(lockstep("train " + job + " " + c.arguments), c);
    EXPECT_FALSE(std::filesystem::exists(directory.path("run/metrics.jsonl"))) << c.title;
  }
}

/// Also one refusal of each exit code.
TEST_F(BadInputTest, UnderMpirunOneRankSpeaksForAll) {
  const TemporaryDirectory batch;
  expect_refusal(lockstep_on_ranks(3, "train " + write_small_job(batch) + " data.global_batch=64"),
                 {"ranks without work", "", 2, {"2"}});
  std::set<int> codes;
  for (const Case& c : refused_jobs()) {
    if (!codes.insert(c.exit_code).second) continue;
    const TemporaryDirectory directory;
    const auto job = write_small_job(directory);
    expect_refusal(lockstep_on_ranks(3, "train " + job + " " + c.arguments), c);
  }
}

TEST_F(BadInputTest, WithoutACommandTheUseIsPrinted) {
  const Outcome bare = lockstep("");
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_TRUE(bare.out.find("Usage: lockstep") != bare.out.npos && bare.err.empty()) << bare.everything();
}

TEST_F(BadInputTest, AWrongCommandLineIsToldWhatWouldBeRight) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"tarin", "did you mean 'train'"},
      {"train", "job is required; see 'lockstep train --help'"},
      {"train j.yaml --epochs 3", "did you mean train.epochs=3?"},
      {"predict", "see 'lockstep predict --help'"},
      {"bench", "say which: allreduce, step; see 'lockstep bench --help'"},
      {"bench step job.yaml --steps 0", "see 'lockstep bench step --help'"},
      {"bench allreduce --epochs 3", "not expected: --epochs 3; see 'lockstep bench allreduce --help'"},
      {"doctor --epochs 3",
       "not expected: --epochs; keys of the job are given as key=value: did you mean "
       "train.epochs=3?"},
      {"prove run --sample 0", "0 not in range 1 to"}};
  for (const auto& [arguments, text] : cases) expect_refusal(lockstep(arguments), {arguments, "", 2, {text}});
  const std::string missing = directory_.path("none.yaml");
  expect_refusal(lockstep("train " + missing), {missing, "", 66, {missing}});
}

TEST_F(BadInputTest, OneOfTheProcessesOfALauncherThatMpiDoesNotKnowIsRefused) {
  const std::string train = " $LOCKSTEP_PROGRAM train " + job_;
  expect_refusal(
      run_shell("SLURM_NODELIST=here SLURM_STEPID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0" + train),
      {"srun", "", 69, {"srun --mpi=pmix", "mpirun"}});
  expect_refusal(run_shell("RANK=0 WORLD_SIZE=4 LOCAL_RANK=0" + train),
                 {"torchrun", "", 69, {"torchrun", "WORLD_SIZE=4", "mpirun -np 4 lockstep"}});
  EXPECT_FALSE(std::filesystem::exists(directory_.path("run")));
}

TEST_F(BadInputTest, WhatOnlyTheFilesOfASetShowPointsToTheKeyInTheJobFile) {
  test::write_image_set(directory_.path());
  const auto job = directory_.path("own.yaml");
  write_text(
      job, "model: linear\ndata:\n  set: idx\n  root: " + directory_.path() + "\n  mean: [0.1, 0.2, 0.3]\n");
  expect_refusal(
      lockstep_on_ranks(2, "train " + job),
      {"mean",
       "",
       2,
       {"own.yaml:5:9: data.mean: 3 numbers for images with 1 channel; give one, or one for each"}});
}

TEST_F(BadInputTest, TwoJobsCannotShareARunDirectory) {
  const auto first =
      mpirun_command(2, "train " + job_ + " train.epochs=1000000") + " > /dev/null & first=$!\n";
  const auto until_it_runs = "for i in $(seq 600); do [ -s " + directory_.path("run/metrics.jsonl") +
                             " ] && break; sleep 0.05; done\n";
  const auto second = mpirun_command(1, "train " + job_ + " parallel.timeout_seconds=2") +
                      "; code=$?; kill -TERM $first; wait $first; exit $code";
  expect_says(run_shell(first + until_it_runs + second), 74, {directory_.path("run")});
}

/// No file may grow beyond 30 KB: a checkpoint's does.
Outcome train_where_nothing_can_be_saved(const TemporaryDirectory& directory,
                                         const std::string& on_save_error) {
  const auto arguments =
      write_small_job(directory) + " parallel.backend=thread run.on_save_error=" + on_save_error;
  return run_shell("ulimit -f 60; exec $LOCKSTEP_PROGRAM train " + arguments);
}

TEST_F(BadInputTest, ARunThatCannotSaveStopsUnlessToldToGoOn) {
  const TemporaryDirectory stopping;
  expect_says(train_where_nothing_can_be_saved(stopping, "stop"), 74, {"model.safetensors"});
  const TemporaryDirectory continuing;
  const Outcome continued = train_where_nothing_can_be_saved(continuing, "continue");
  expect_says(continued, 74, {"going on without it", "the run ended at step 6, but that step is not saved"});
  EXPECT_EQ(continued.out.find("done"), std::string::npos) << continued.out;
}

/// No file may grow beyond 2 KB: neither the log nor metrics.jsonl.
TEST_F(BadInputTest, ALogThatCannotBeWrittenIsSaidOnceInOurWords) {
  const auto run =
      run_shell("{ (trap '' XFSZ; ulimit -f 4; exec $LOCKSTEP_PROGRAM train " + job_ +
                " parallel.backend=thread run.on_save_error=continue run.checkpoint_every_steps=0 "
                "train.epochs=30); echo exit code $?; } 2>&1 | cat");
  const std::string& said = run.out;
  EXPECT_EQ(said.find("LOG ERROR"), std::string::npos) << said;
  EXPECT_EQ(count_of("log/rank-0.log: cannot", said), 1) << said;
  expect_words(said, {"exit code 74", "log/rank-0.log: cannot be written: File too large",
                      "the run goes on without it", "metrics.jsonl: cannot be written"});
}

TEST_F(BadInputTest, WithAllStandardStreamsClosedFilesStayClean) {
  expect_says(run_shell("$LOCKSTEP_PROGRAM train " + job_ + " <&- >&- 2>&-"), 0);
  EXPECT_EQ(read_metrics(directory_.path("run")).back()["event"], "end");
}

TEST_F(BadInputTest, OutputThatCannotBeWrittenIsAnError) {
  expect_says(run_shell("$LOCKSTEP_PROGRAM devices --emulated > /dev/full"), 74, {"standard output"});
}

TEST_F(BadInputTest, ThreadsInEachOfSeveralProcessesAreRefused) {
  const auto job = "train " + job_ + " parallel.backend=thread parallel.ranks=2";
  expect_refusal(lockstep_on_ranks(2, job),
                 {"threads under mpirun", "", 2, {"2 processes", "without mpirun"}});
  EXPECT_FALSE(std::filesystem::exists(directory_.path("run")));
}

TEST_F(BadInputTest, ACommandOfOneProcessSpeaksOnceUnderMpirun) {
  const auto outcome = ended_well(lockstep_on_ranks(2, "devices --emulated"));
  EXPECT_EQ(outcome.out, lockstep("devices --emulated").out);
}

TEST_F(BadInputTest, AloneItNeedsNoMpi) {
  expect_says(run_shell("OMPI_MCA_pml=nosuch $LOCKSTEP_PROGRAM train " + job_), 0);
  EXPECT_EQ(read_metrics(directory_.path("run")).front()["backend"], "none");
}

TEST_F(BadInputTest, MpiThatDoesNotStartIsTold) {
  expect_says(
      run_shell("mpirun --bind-to none -np 2 env OMPI_MCA_pmix=nosuch $LOCKSTEP_PROGRAM train " + job_), 69,
      {"lockstep: rank ", ": MPI did not start"});
  EXPECT_FALSE(std::filesystem::exists(directory_.path("run")));
}

TEST_F(BadInputTest, ARankWithAWrongCommandLineOfItsOwnSpeaksForItself) {
  expect_says(run_shell("mpirun --bind-to none -np 1 $LOCKSTEP_PROGRAM devices --emulated : -np 1 "
                        "$LOCKSTEP_PROGRAM nosuch"),
              2, {"lockstep: rank 1: there is no command 'nosuch'"});
}

/// Before anything is measured.
TEST_F(BadInputTest, RanksWithOtherOptionsAreRefused) {
  for (const auto& [command, option] :
       {std::pair<std::string, std::string>{"bench allreduce", "--iterations"},
        {"bench step " + job_, "--rounds"},
        {"burn", "--level"}})
    expect_says(run_shell(fmt::format("mpirun --bind-to none -np 1 $LOCKSTEP_PROGRAM {0} {1} 1 : -np 1 "
                                      "$LOCKSTEP_PROGRAM {0} {1} 2",
                                      command, option)),
                2, {option + " is 1 on rank 0, but 2 on rank 1"});
}

/// A rank that is another program: rank 0 says so when the least time for a start has passed.
TEST_F(BadInputTest, ARankThatDoesNotComeIsNamed) {
  expect_says(run_shell(mpirun_command(1, "train " + job_ + " parallel.timeout_seconds=1 : -np 1 sleep 100")),
              71, {"waited 10 s for the other ranks in MPI_Init: rank 1 (pid ", "is another program: "});
}

}  // namespace
}  // namespace lockstep::testing::bad_input_test
