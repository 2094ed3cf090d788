// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Wrong input ends with the promised exit code and one line that names the file, the place and the fix.
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

const std::vector<Case>& refused_jobs() {
  static const std::vector<Case> cases = {
      {"misspelt key", "train.epoch=3", 2, {"train.epoch", "did you mean", "epochs"}},
      {"mistyped value", "train.epochs=many", 2, {"train.epochs", "many"}},
      {"empty batch", "data.global_batch=0", 2, {"data.global_batch"}},
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
      {"no such GPU", "parallel.device=cuda:97", 69, {"parallel.device"}},
      {"NCCL without a GPU", "parallel.device=auto parallel.backend=nccl", 69, {"nccl"}},
      {"vendor kernels on the emulator",
       "parallel.device=emulated parallel.kernels=vendor",
       69,
       {"parallel.kernels"}},
      {"nothing to go on from",
       "run.resume=/usr",
       66,
       {"run.resume: /usr holds no checkpoint to go on from", "leave run.resume out"}},
      {"run directory below a file", "run.dir=/dev/null/run", 74, {"/dev/null"}},
  };
  return cases;
}

TEST(BadInputTest, OneLineNamesTheFixAndNothingIsWritten) {
  for (const Case& c : refused_jobs()) {
    const TemporaryDirectory directory;
    const auto job = write_small_job(directory);
    expect_refusal(lockstep("train " + job + " " + c.arguments), c);
    EXPECT_FALSE(std::filesystem::exists(directory.path("run/metrics.jsonl"))) << c.title;
  }
}

/// Also one refusal of each exit code.
TEST(BadInputTest, UnderMpirunOneRankSpeaksForAll) {
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

TEST(BadInputTest, WithoutACommandTheUseIsPrinted) {
  const Outcome bare = lockstep("");
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_TRUE(bare.out.find("Usage: lockstep") != bare.out.npos && bare.err.empty()) << bare.everything();
}

TEST(BadInputTest, AWrongCommandLineIsToldWhatWouldBeRight) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"tarin", "did you mean 'train'"},
      {"train", "see 'lockstep train --help'"},
      {"train j.yaml --epochs 3", "did you mean train.epochs=3?"},
      {"predict", "see 'lockstep predict --help'"},
      {"flight runs/any", "flight was removed: use log/verdict.txt in the run directory"},
      {"bench", "say which: allreduce, step; see 'lockstep bench --help'"},
      {"bench step job.yaml --steps 0", "see 'lockstep bench step --help'"},
      {"bench allreduce --epochs 3", "not expected: --epochs 3; see 'lockstep bench allreduce --help'"},
      {"doctor --hostfile hosts", "doctor --hostfile was removed: use mpirun --hostfile H lockstep doctor"},
      {"doctor --epochs 3",
       "not expected: --epochs; keys of the job are given as key=value: did you mean "
       "train.epochs=3?"},
      {"prove run --sample 0", "0 not in range 1 to"}};
  for (const auto& [arguments, text] : cases) expect_refusal(lockstep(arguments), {arguments, "", 2, {text}});
  const TemporaryDirectory directory;
  const std::string missing = directory.path("job.yaml");
  expect_refusal(lockstep("train " + missing), {missing, "", 66, {missing}});
}

TEST(BadInputTest, SrunWithoutPmixIsToldInOneLine) {
  const TemporaryDirectory directory;
  const Outcome outcome = run_shell(
      "SLURM_NODELIST=here SLURM_STEPID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 $LOCKSTEP_PROGRAM train " +
      write_small_job(directory));
  expect_refusal(outcome, {"srun", "", 69, {"srun --mpi=pmix", "mpirun"}});
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(BadInputTest, WhatOnlyTheFilesOfASetShowPointsToTheKeyInTheJobFile) {
  const TemporaryDirectory directory;
  for (const std::string half : {"train", "t10k"}) {
    write_text(directory.path(half + "-images-idx3-ubyte"),
               std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02", 16) + "abcd");
    write_text(directory.path(half + "-labels-idx1-ubyte"), std::string("\0\0\x08\x01\0\0\0\x02\0\1", 10));
  }
  const auto job = directory.path("own.yaml");
  write_text(job,
             "model: linear\ndata:\n  set: idx\n  root: " + directory.path() + "\n  mean: [0.1, 0.2, 0.3]\n");
  expect_refusal(
      lockstep_on_ranks(2, "train " + job),
      {"mean",
       "",
       2,
       {"own.yaml:5:9: data.mean: 3 numbers for images with 1 channel; give one, or one for each"}});
}

TEST(BadInputTest, TwoJobsCannotShareARunDirectory) {
  const TemporaryDirectory directory;
  const auto job = write_small_job(directory);
  const auto first =
      mpirun_command(2, "train " + job + " train.epochs=1000000") + " > /dev/null & first=$!\n";
  const auto until_it_runs = "for i in $(seq 600); do [ -s " + directory.path("run/metrics.jsonl") +
                             " ] && break; sleep 0.05; done\n";
  const auto second = mpirun_command(1, "train " + job + " parallel.timeout_seconds=2") +
                      "; code=$?; kill -TERM $first; wait $first; exit $code";
  expect_says(run_shell(first + until_it_runs + second), 74, {directory.path("run")});
}

/// No file may grow beyond 30 KB: a checkpoint's does.
Outcome train_where_nothing_can_be_saved(const TemporaryDirectory& directory,
                                         const std::string& on_save_error) {
  const auto arguments =
      write_small_job(directory) + " parallel.backend=thread run.on_save_error=" + on_save_error;
  return run_shell("ulimit -f 60; exec $LOCKSTEP_PROGRAM train " + arguments);
}

TEST(BadInputTest, ARunThatCannotSaveStopsUnlessToldToGoOn) {
  const TemporaryDirectory stopping;
  expect_says(train_where_nothing_can_be_saved(stopping, "stop"), 74, {"model.safetensors"});
  const TemporaryDirectory continuing;
  const Outcome continued = train_where_nothing_can_be_saved(continuing, "continue");
  expect_says(continued, 74, {"going on without it", "the run ended at step 6, but that step is not saved"});
  EXPECT_EQ(continued.out.find("done"), std::string::npos) << continued.out;
}

/// No file may grow beyond 2 KB: neither the log nor metrics.jsonl.
TEST(BadInputTest, ALogThatCannotBeWrittenIsSaidOnceInOurWords) {
  const TemporaryDirectory directory;
  const auto run =
      run_shell("{ (trap '' XFSZ; ulimit -f 4; exec $LOCKSTEP_PROGRAM train " + write_small_job(directory) +
                " parallel.backend=thread run.on_save_error=continue run.checkpoint_every_steps=0 "
                "train.epochs=30); echo exit code $?; } 2>&1 | cat");
  const std::string& said = run.out;
  EXPECT_NE(said.find("exit code 74"), std::string::npos) << said;
  EXPECT_EQ(said.find("LOG ERROR"), std::string::npos) << said;
  const auto log = said.find("log/rank-0.log: cannot be written: File too large");
  EXPECT_NE(log, std::string::npos) << said;
  EXPECT_NE(said.find("the run goes on without it", log), std::string::npos) << said;
  EXPECT_EQ(said.find("log/rank-0.log: cannot", log + 1), std::string::npos) << said;
  EXPECT_NE(said.find("metrics.jsonl: cannot be written"), std::string::npos) << said;
}

TEST(BadInputTest, WithAllStandardStreamsClosedFilesStayClean) {
  const TemporaryDirectory directory;
  expect_says(run_shell("$LOCKSTEP_PROGRAM train " + write_small_job(directory) + " <&- >&- 2>&-"), 0);
  EXPECT_EQ(read_metrics(directory.path("run")).back()["event"], "end");
}

TEST(BadInputTest, OutputThatCannotBeWrittenIsAnError) {
  expect_says(run_shell("$LOCKSTEP_PROGRAM devices --emulated > /dev/full"), 74, {"standard output"});
}

TEST(BadInputTest, ThreadsInEachOfSeveralProcessesAreRefused) {
  const TemporaryDirectory directory;
  const auto job = "train " + write_small_job(directory) + " parallel.backend=thread parallel.ranks=2";
  expect_refusal(lockstep_on_ranks(2, job),
                 {"threads under mpirun", "", 2, {"2 processes", "without mpirun"}});
  EXPECT_FALSE(std::filesystem::exists(directory.path("run")));
}

TEST(BadInputTest, ACommandOfOneProcessSpeaksOnceUnderMpirun) {
  const auto outcome = ended_well(lockstep_on_ranks(2, "devices --emulated"));
  EXPECT_EQ(outcome.out, lockstep("devices --emulated").out);
}

TEST(BadInputTest, AloneItNeedsNoMpi) {
  const TemporaryDirectory directory;
  expect_says(run_shell("OMPI_MCA_pml=nosuch $LOCKSTEP_PROGRAM train " + write_small_job(directory)), 0);
  EXPECT_EQ(read_metrics(directory.path("run")).front()["backend"], "none");
}

TEST(BadInputTest, MpiThatDoesNotStartIsTold) {
  const TemporaryDirectory directory;
  expect_says(run_shell("mpirun --bind-to none -np 2 env OMPI_MCA_pmix=nosuch $LOCKSTEP_PROGRAM train " +
                        write_small_job(directory)),
              69, {"lockstep: rank ", ": MPI did not start"});
  EXPECT_FALSE(std::filesystem::exists(directory.path("run")));
}

TEST(BadInputTest, OneOfTheProcessesOfTorchrunIsRefused) {
  const TemporaryDirectory directory;
  expect_refusal(
      run_shell("RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 $LOCKSTEP_PROGRAM train " + write_small_job(directory)),
      {"torchrun", "", 69, {"torchrun", "WORLD_SIZE=4", "mpirun -np 4 lockstep"}});
  EXPECT_FALSE(std::filesystem::exists(directory.path("run")));
}

/// A rank that is another program: rank 0 says so when the least time for a start has passed.
TEST(BadInputTest, ARankThatDoesNotComeIsNamed) {
  const TemporaryDirectory directory;
  expect_says(run_shell(mpirun_command(1, "train " + write_small_job(directory) +
                                              " parallel.timeout_seconds=1 : -np 1 sleep 100")),
              71, {"waited 10 s for the other ranks in MPI_Init: rank 1 (pid ", "is another program: "});
}

}  // namespace
}  // namespace lockstep::testing::bad_input_test
