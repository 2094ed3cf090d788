// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Words of runs of a few steps, each only where it is true.
#include "comm/thread/thread_ranks.hpp"
#include "kernels/platform.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/run/whole_run.hpp"
#include "trainer/run/run_context.hpp"
#include "trainer/run/run_reporter.hpp"

namespace lockstep {
namespace {

TEST_F(WholeRunTest, AStoppedRunIsNotToldToHaveFinished) {
  ::testing::internal::CaptureStdout();
  const int code =
      train(job_of("run", kTwoRanks, {"run.max_seconds=0.001"}),
            [](const std::string& directory, const TrainTestData&) { ADD_FAILURE() << directory; });
  test::expect_words(
      masked(::testing::internal::GetCapturedStdout()),
      {"\nthe time is up (run.max_seconds, or the end of the allocation): stopping after this step\n",
       "\nstopped on request at step 1 of 4, saved in DIR/run; run the same command to go on\n"});
  EXPECT_EQ(code, 75);
}

TEST_F(WholeRunTest, RemarksAreOfTheJobsThatTheyAreTrueOf) {
  const std::string yaml =
      "model: linear\n"
      "data: {set: synthetic, train_samples: 1000, test_samples: 16, global_batch: 64}\n"
      "train: {epochs: 2, max_steps: 1}\n"
      "parallel: {device: cpu, grain: 16, threads: 1}\n";
  const std::pair<std::vector<std::string>, std::string> rows[] = {
      {{"data.balance_classes=true"}, ": each is drawn 100 times an epoch\n"},
      {{"train.patience=1", "train.evaluate_every_steps=1"},
       "\nnote: train.patience goes by the test set, so its accuracy will look better than it is; "
       "data.validation holds training samples out for that\n"},
      {{"data.global_batch=2000"},
       "\nnote: data.global_batch 2,000 is more than the 1,000 training samples: every step takes all of "
       "them\n"},
      {{"parallel.determinism=off"}, "\ntrail: none, since sums are not exact (parallel.determinism: off)\n"},
      {{"parallel.strategy=pipeline"}, "\npipeline: bubble "},
      {{"parallel.device=emulated"}, ", native kernels, graph on; "},
      {{"parallel.device=emulated", "parallel.backend=thread", "parallel.ranks=2"},
       "; M allocated on all 2 ranks\n"},
      {{"parallel.device=emulated", "parallel.graph=off", "data.on_device=stream"},
       "\nthe set streams past the device: the samples of the coming steps lie there (data.on_device)\n"}};
  const std::string plain = told_by(job_of("plain", yaml));
  int number = 0;
  for (const auto& [overrides, remark] : rows) {
    EXPECT_EQ(plain.find(remark), plain.npos) << plain;
    test::expect_words(told_by(job_of(fmt::format("run-{}", ++number), yaml, overrides)), {remark});
  }
  const Job whole = job_of(
      "whole", yaml,
      {"train.max_steps=0", "train.schedule.kind=cosine", "train.schedule.warmup_steps=4", "run.curve=true"});
  const std::string told = told_by(whole), scale = "--1  test accuracy\n";
  EXPECT_NE(told.find(scale), told.npos) << told;
  EXPECT_EQ(told.find(scale), told.rfind(scale)) << "once for both epochs";
  const Json events = events_of("whole");
  EXPECT_EQ(events[0]["learning_rate"], events[1]["learning_rate"]) << "that of the first step";
  EXPECT_LT(events[1]["learning_rate"].get<double>(), events[2]["learning_rate"].get<double>());
  test::expect_words(told_by(whole),
                     {"its schedule ends with train.epochs: to train on, begin another run with its weights, "
                      "lockstep train DIR/whole/job.yaml train.initial_weights=DIR/whole "
                      "run.dir=DIR/whole-further"});
}

TEST(ShellCommandTest, WordsThatDoNotFitAreLeftOutAsAWhole) {
  const auto command_of = [](const std::vector<std::string>& words) {
    std::string zeros;
    for (const std::string& word : words) zeros.append(word.c_str(), word.size() + 1);
    std::istringstream in(zeros);
    return shell_command(in);
  };
  EXPECT_EQ(command_of({}), "");
  EXPECT_EQ(command_of({"lockstep", "train", "my job.yaml", ""}), "lockstep train 'my job.yaml' ''");
  const std::string longest(4083, 'x');  // with "lockstep", spaces and " ...": 4,096
  EXPECT_EQ(command_of({"lockstep", longest}), "lockstep " + longest);
  EXPECT_EQ(command_of({"lockstep", longest, "a=1"}), "lockstep " + longest + " ...");
  EXPECT_EQ(command_of({"lockstep", longest + "x", "a=1"}), "lockstep ...");
}

/// As where a run begins anew, and says how it would begin with the weights of the one before.
TEST_F(WholeRunTest, ATextOfTwoLinesIsTwoLinesOfTheLog) {
  const Job job = job_of("run", kTwoRanks);
  const DatasetFuture data = load_in_advance(job);
  ::testing::internal::CaptureStdout();
  run_thread_ranks(2, [&](Communicator& comm) {
    RunContext run(job, comm, data);
    begin_run(run);
    Progress progress(comm.rank());
    RunReporter reporter(run, progress);
    for (const char* text : {"one\ntwo", "", "three"}) reporter.say(text);
  });
  test::expect_words(::testing::internal::GetCapturedStdout(), {"one\ntwo\nthree\n"});
  EXPECT_EQ(log_of("run"), "one\ntwo\nthree\n");
}

/// NamesThatARunGetsAreSaid in data_record_test.cpp has the sentence.
TEST_F(WholeRunTest, NamesThatClassesGetAreSaidAtTheStart) {
  const Job job = job_of("run", kTwoRanks);
  const DatasetFuture data = load_in_advance(job);
  ::testing::internal::CaptureStdout();
  run_thread_ranks(2, [&](Communicator& comm) {
    RunContext run(job, comm, data);
    RunStart start = begin_run(run);
    start.names_taken = "its classes had no names";
    Progress progress(comm.rank());
    if (run.files) RunReporter(run, progress).announce(start, 1);
  });
  test::expect_words(::testing::internal::GetCapturedStdout(),
                     {"\nsgd, learning rate 1e-09, constant\nits classes had no names\n"});
}

/// Nothing is allocated on these, so that one byte too many shows.
TEST_F(WholeRunTest, MemoryOfAllDevicesIsTheSumOfTheirs) {
  const Job job = job_of("run", kTwoRanks);
  const DatasetFuture data = load_in_advance(job);
  ::testing::internal::CaptureStdout();
  run_thread_ranks(2, [&](Communicator& comm) {
    RunContext run(job, comm, data);
    begin_run(run);
    run.setup.device.gpu = std::make_shared<Gpu>();
    run.setup.device.gpu->device = emulated::platform().make_device(0);
    Progress progress(comm.rank());
    RunReporter(run, progress).memory();
  });
  test::expect_words(::testing::internal::GetCapturedStdout(),
                     {"\ndevice memory: 0 B allocated, at most 0 B, ",
                      " reserved, on rank 0; 0 B allocated on all 2 ranks\n"});
}

}  // namespace
}  // namespace lockstep
