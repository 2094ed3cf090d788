// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The programs of the texts that Lockstep grew from. Each counterpart is run, and what it prints is looked
/// at line by line.
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

using Lines = std::vector<std::string>;
using Sizes = std::vector<int>;

std::string shipped(const std::string& job) {
  return test::source_path("launch/jobs/" + job + ".yaml");
}

/// The lines that begin with one of these, in order.
Lines lines_that_begin(const std::string& text, const Lines& beginnings) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const auto begins = [&](const std::string& beginning) { return line.starts_with(beginning); };
    if (std::any_of(beginnings.begin(), beginnings.end(), begins)) lines.push_back(line);
  }
  return lines;
}

Lines loss_lines(const std::string& text) {
  return lines_that_begin(text, {"["});
}

/// Lines of the tutorial with so many devices: three batches of 30 and one of 10, cut into these.
Lines expected_sizes(const Sizes& of_30, const Sizes& of_10, const std::string& device) {
  Lines lines;
  for (const bool is_last : {false, false, false, true}) {
    const Sizes& sizes = is_last ? of_10 : of_30;
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      const std::string n = std::to_string(sizes[rank]);
      lines.push_back("    In Model: input size [" + n + ", 5] output size [" + n + ", 2]  (rank " +
                      std::to_string(rank) + ", " + device + ")");
    }
    const std::string n = is_last ? "10" : "30";
    lines.push_back("Outside: input size [" + n + ", 5] output_size [" + n + ", 2]");
  }
  return lines;
}

struct Workers {
  int count;
  Sizes of_30, of_10;
};

const std::vector<Workers> kWorkers = {{1, {30}, {10}},
                                       {2, {15, 15}, {5, 5}},
                                       {3, {10, 10, 10}, {4, 4, 2}},
                                       {8, {4, 4, 4, 4, 4, 4, 4, 2}, {2, 2, 2, 2, 2}}};

/// "(rank 0, cpu (AVX-512))" -> "cpu (AVX-512)"
std::string device_in(const std::string& text) {
  const auto lines = lines_that_begin(text, {"    In Model: "});
  if (lines.empty()) return "no device";
  const std::size_t begin = lines[0].find("rank 0, ") + 8;
  return lines[0].substr(begin, lines[0].size() - begin - 1);
}

void expect_tutorial(const Outcome& outcome, const Workers& workers, const std::string& things) {
  ASSERT_EQ(outcome.exit_code, 0) << outcome.everything();
  const std::string device = device_in(outcome.out);
  EXPECT_EQ(lines_that_begin(outcome.out, {"    In Model: ", "Outside: "}),
            expected_sizes(workers.of_30, workers.of_10, device));
  const Lines use = lines_that_begin(outcome.out, {"Let's use "});
  if (workers.count == 1) {
    EXPECT_TRUE(use.empty()) << use[0];
    return;
  }
  std::string expected = "Let's use " + std::to_string(workers.count) + " " + things + "!";
  for (int rank = 0; rank < workers.count; ++rank)
    expected += (rank == 0 ? " " : ", ") + std::to_string(rank) + ": " + device;
  EXPECT_EQ(use, Lines{expected});
}

TEST(DataParallelTutorialTest, PrintsTheTutorialsSizesOnAnyNumberOfRanksAndTrainsTheSameWeights) {
  const TemporaryDirectory directory;
  const std::string job = "train " + shipped("data-parallel-tutorial") + " run.dir=" + directory.path("run");
  std::string weights;
  for (const Workers& workers : kWorkers) {
    SCOPED_TRACE(workers.count);
    const std::string number = std::to_string(workers.count);
    const auto over_mpi = lockstep_on_ranks(workers.count, job + "m" + number);
    expect_tutorial(over_mpi, workers, "ranks");
    const std::string as_threads = " parallel.backend=thread parallel.ranks=" + number;
    const auto threads = lockstep(job + "t" + number + as_threads);
    expect_tutorial(threads, workers, "ranks");
    const auto emulated = lockstep(job + "e" + number + as_threads + " parallel.device=emulated");
    expect_tutorial(emulated, workers, "emulated GPUs");
    if (weights.empty()) weights = over_mpi.last_line();
    EXPECT_EQ(over_mpi.last_line(), weights);
    EXPECT_EQ(threads.last_line(), weights);
    EXPECT_EQ(emulated.last_line(), weights);
  }
}

TEST(DataParallelTutorialTest, AnEvenSplitAndRanksThatNeverHaveWorkEndInTheSameWeights) {
  const TemporaryDirectory directory;
  const std::string job = "train " + shipped("data-parallel-tutorial") +
                          " parallel.backend=thread run.dir=" + directory.path("run");
  const auto alone = succeed(job + "1");
  const auto even = lockstep(job + "2 parallel.split=even parallel.ranks=8");
  const auto idle = lockstep(job + "3 parallel.ranks=20");  // pieces of 2: ranks 15 to 19 never get one
  for (const Outcome& outcome : {even, idle})
    EXPECT_EQ(outcome.last_line(), alone.last_line()) << outcome.everything();
  EXPECT_EQ(lines_that_begin(idle.out, {"    In Model: "}).size(), 3U * 15 + 10);
}

/// A short form of the guide's job: 40 steps an epoch on made digits, a line every 10.
std::string guide_job(const TemporaryDirectory& directory, const std::string& run) {
  return "train " + shipped("ddp-mnist") +
         " data.set=synthetic data.train_samples=5120 data.test_samples=64 train.epochs=2 "
         "run.print_loss_every_steps=10 run.log_every_steps=1 run.dir=" +
         directory.path(run);
}

/// The mean loss of the steps in (step - 10, step], from the "step" events.
double mean_of_last_10(const std::vector<nlohmann::json>& metrics, std::int64_t step) {
  double sum = 0;
  for (const auto& event : metrics) {
    if (event["event"] == "step" && event["step"] > step - 10 && event["step"] <= step)
      sum += event["loss"].get<double>();
  }
  return sum / 10;
}

TEST(DdpGuideTest, PrintsTheMeanLossOfEachPieceAlsoAfterAResumeInBetween) {
  const TemporaryDirectory directory;
  const auto whole = ended_well(lockstep_on_ranks(2, guide_job(directory, "whole")));
  const Lines lines = loss_lines(whole.out);
  ASSERT_EQ(lines.size(), 8U) << whole.out;  // 5120 / (2 x 64) = 40 steps an epoch
  const auto metrics = read_metrics(directory.path("whole"));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    char expected[64];
    std::snprintf(expected, sizeof(expected), "[%d, %5d] loss: %.3f", i < 4 ? 1 : 2,
                  static_cast<int>(i % 4 + 1) * 10,
                  mean_of_last_10(metrics, static_cast<std::int64_t>(i + 1) * 10));
    EXPECT_EQ(lines[i], expected);
  }
  for (const char* once : {"\nFinished Training", "\nglobal batch 128 = 2 ranks x data.per_rank_batch 64: "})
    EXPECT_EQ(count_of(once, whole.out), 1) << whole.out;

  Lines in_parts;
  for (const char* until : {"7", "23", "40", "58", "0"}) {
    const auto part =
        ended_well(lockstep_on_ranks(2, guide_job(directory, "parts") + " train.max_steps=" + until));
    for (const std::string& line : loss_lines(part.out)) in_parts.push_back(line);
  }
  EXPECT_EQ(in_parts, lines);
  EXPECT_EQ(comparable_metrics(directory.path("parts")), comparable_metrics(directory.path("whole")));
}

TEST(DdpGuideTest, TheBatchOfARankTimesTheRanksIsTheGlobalBatch) {
  const TemporaryDirectory directory;
  const auto on_3 = ended_well(lockstep_on_ranks(3, guide_job(directory, "3")));
  const auto asked = lockstep(guide_job(directory, "1") + " data.per_rank_batch=0 data.global_batch=192");
  EXPECT_EQ(on_3.last_line(), asked.last_line()) << asked.everything();

  expect_says(lockstep_on_ranks(2, guide_job(directory, "3") + " train.epochs=3"), 2,
              {"data.global_batch (was 192, now 128)", "data.per_rank_batch", "start 3 ranks"});

  expect_says(lockstep_on_ranks(2, guide_job(directory, "b") + " data.global_batch=100"), 2,
              {"2 ranks with data.per_rank_batch 64 make 128; remove data.global_batch"});
}

TEST(DataParallelGuideTest, OneBatchForAllDevicesGivesTheSameWeightsInThreadsAndProcesses) {
  const TemporaryDirectory directory;
  const std::string job = "train " + shipped("data-parallel-mnist") +
                          " data.set=synthetic data.train_samples=640 data.test_samples=64 train.epochs=1 "
                          "run.print_loss_every_steps=5 run.dir=" +
                          directory.path("run");
  const auto alone = succeed(job + "1");
  const auto threads = lockstep(job + "3 parallel.backend=thread parallel.ranks=3");
  const auto processes = lockstep_on_ranks(2, job + "2");
  for (const Outcome& outcome : {threads, processes}) {
    EXPECT_EQ(outcome.last_line(), alone.last_line()) << outcome.everything();
    EXPECT_EQ(loss_lines(outcome.out), loss_lines(alone.out));
  }
  EXPECT_EQ(loss_lines(alone.out).size(), 2U) << alone.out;
}

/// LeNet's job with a small network: what is looked at is the curve.
TEST(FromScratchLenetTest, TheCurveIsDrawnAsItGoes) {
  const TemporaryDirectory directory;
  const auto alone =
      succeed("train " + shipped("lenet") +
              " model=linear data.set=synthetic data.train_samples=640 data.test_samples=200 train.epochs=4 "
              "parallel.grain=32 run.dir=" +
              directory.path("alone"));
  const Lines rows = lines_that_begin(alone.out, {"   1 |", "   2 |", "   3 |", "   4 |"});
  ASSERT_EQ(rows.size(), 4U) << alone.out;
  for (const auto& event : read_metrics(directory.path("alone"))) {
    if (event["event"] != "epoch") continue;
    char accuracy[32];
    std::snprintf(accuracy, sizeof(accuracy), "%.4f", event["test_accuracy"].get<double>());
    const auto epoch = event["epoch"].get<std::size_t>();
    EXPECT_TRUE(rows[epoch - 1].ends_with(std::string("| ") + accuracy)) << rows[epoch - 1];
  }
}

TEST(FromScratchLenetTest, TheDemoOfAllReduceIsOfProcessesThreadsAndDevices) {
  expect_says(lockstep_on_ranks(2, "bench allreduce --demo"), 0,
              {"after allreduce:\n  rank 0: [[3, 3]]\n  rank 1: [[3, 3]]\n"});
  const std::string five = " bench allreduce --demo --backend thread --ranks 5";
  EXPECT_EQ(
      succeed(five + " --device emulated").out,
      "allreduce in the memory of Emulated GPU, over thread through pinned memory\n" + succeed(five).out);
}

std::string hogwild_job(const TemporaryDirectory& directory, const std::string& run) {
  return "train " + shipped("hogwild-mnist") +
         " model=mlp data.set=synthetic data.train_samples=2560 data.test_samples=500 data.per_rank_batch=16 "
         "parallel.grain=16 train.epochs=6 train.optimizer.lr=0.05 run.dir=" +
         directory.path(run);
}

double accuracy_of(const TemporaryDirectory& directory, const std::string& run) {
  const auto metrics = read_metrics(directory.path(run));
  return metrics.back()["test_accuracy"].get<double>();
}

TEST(HogwildTest, RanksTrainOneSetOfWeightsInProcessesAndThreads) {
  const TemporaryDirectory directory;
  ended_well(lockstep_on_ranks(2, hogwild_job(directory, "mpi")));
  EXPECT_GT(accuracy_of(directory, "mpi"), 0.9);
  succeed(hogwild_job(directory, "threads") + " parallel.backend=thread parallel.ranks=4");
  EXPECT_GT(accuracy_of(directory, "threads"), 0.9);
}

/// Alone it is plain training: nothing is lost, and the weights come again. A resume on other ranks goes on.
TEST(HogwildTest, OneRankLosesNothingAndARunGoesOnOnOtherRanks) {
  const TemporaryDirectory directory;
  const auto once = lockstep(hogwild_job(directory, "once"));
  const auto again = lockstep(hogwild_job(directory, "again"));
  EXPECT_EQ(once.last_line(), again.last_line()) << once.everything();

  const std::string batch = " data.per_rank_batch=0 data.global_batch=48";
  expect_says(lockstep_on_ranks(3, hogwild_job(directory, "parts") + batch + " train.max_steps=70"), 0);
  expect_says(lockstep_on_ranks(2, hogwild_job(directory, "parts") + batch), 0, {"going on from step 70"});
  EXPECT_GT(accuracy_of(directory, "parts"), 0.9);
}

}  // namespace
}  // namespace lockstep::testing
