// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench allreduce` on host and device memory, and what it says where NCCL cannot be.
#include "common/json_text.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

const std::string kSmall = "bench allreduce --max-bytes 4096 --repetitions 3 ";

/// Six rows: three sizes, two types. All fit a terminal of 80 columns.
void expect_table(const Outcome& outcome, const std::string& title) {
  expect_says(outcome, 0,
              {title, "size", "count", "type", "time", "algbw", "busbw", "#err", "in-place",
               "# Out of bounds values : 0 OK"});
  EXPECT_EQ(outcome.last_line().find("# Avg bus bandwidth    : "), 0U) << outcome.out;
  std::size_t rows = 0;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    if (line[0] == '#') continue;
    ++rows;
    EXPECT_LE(line.size(), 80U) << line;
  }
  EXPECT_EQ(rows, 6U) << outcome.out;
}

TEST(BenchAllreduceTest, HostMemoryOverMpi) {
  const Outcome outcome = lockstep_on_ranks(3, kSmall);
  expect_table(outcome, "over mpi, 3 ranks");
  expect_words(outcome.out, {"# rank   0 pid ", "# rank   1 pid ", "# rank   2 pid "});
}

TEST(BenchAllreduceTest, DeviceMemoryThroughTheHost) {
  const std::string emulated = kSmall + "--device emulated ";
  expect_table(lockstep_on_ranks(2, emulated), "over mpi through pinned memory");
  const Outcome threads = lockstep(emulated + "--backend thread --ranks 3");
  expect_table(threads, "thread through pinned memory");
  expect_words(threads.out, {"device 0 [0000:00:00.0] Emulated GPU"});
  expect_table(lockstep(emulated + "--warmup 0"), "1 rank\n");
}

TEST(BenchAllreduceTest, TakesTheOptionsOfNcclTests) {
  const auto outcome = succeed("bench allreduce -b 16 -e 1K -f 8 -n 2 -w 1 --backend thread --ranks 2");
  expect_words(outcome.out, {"\n       16         2 int64", "\n      128 ", "\n     1024 ",
                             "median of 2 after 1 to warm up"});
  EXPECT_EQ(outcome.out.find("\n     8192 "), std::string::npos) << outcome.out;
}

TEST(BenchAllreduceTest, OneSizeMayBeBothTheSmallestAndTheLargest) {
  const auto outcome = succeed("bench allreduce -b 4K -e 4K -n 1 -w 0 --backend thread --ranks 2");
  expect_words(outcome.out, {"# 4096 to 4096 bytes, ", "\n     4096       512 int64 "});
}

TEST(BenchAllreduceTest, RefusesSizesThatMakeNoSense) {
  for (const std::string arguments :
       {"--max-bytes -1", "--max-bytes=-1", "-e -1", "-b 0", "-b 7", "-e 100P", "-e 99999999999999999999999",
        "-f 1", "-f -2", "-n 0", "-w -1", "-b 4K -e 1K", "-e 12.5x"})
    expect_says(lockstep("bench allreduce " + arguments), 2, {"lockstep: "});
}

TEST(BenchAllreduceTest, NcclNeedsGpus) {
  for (const std::string device : {"cpu", "emulated"})
    expect_says(lockstep(kSmall + "--backend nccl --device " + device), 2, {"lockstep: ", device});
  if (lockstep(kSmall + "--backend mpi --device cuda").exit_code == 0)
    GTEST_SKIP() << "this machine has a GPU";
  expect_says(lockstep(kSmall + "--backend nccl"), 69, {"lockstep: ", "parallel.device=cpu"});
}

// lockstep devices, on machines with GPUs and without.

TEST(DevicesCommandTest, ListsTheEmulatedDevice) {
  const auto text = succeed("devices --emulated");
  EXPECT_EQ(text.out.substr(0, 6), "1 GPU;") << text.out;
  const auto report = answer_of("devices --emulated");
  ASSERT_EQ(report["devices"].size(), 1U) << report;
  EXPECT_GT(report["devices"][0]["memory_free_bytes"], 0) << report;
}

/// Without GPUs: the processors, and a line that says why and what to do. With: the same number both ways.
TEST(DevicesCommandTest, TextAndJsonAgreeOnTheGpusOfThisMachine) {
  const auto text = ended_well(run_shell("COLUMNS=10000 $LOCKSTEP_PROGRAM devices"));
  const auto json = succeed("devices --json");
  EXPECT_EQ(text.err + json.err, "");
  EXPECT_TRUE(json.out.starts_with("{\n  \"devices\": [")) << json.out;
  const auto report = parse_json(json.out);
  if (report.contains("reason")) {
    EXPECT_EQ(text.out.find("no GPU: ranks compute on processors\n"), 0U) << text.out;
    EXPECT_NE(text.out.find(report["processors"]["model"].get<std::string>()), std::string::npos) << text.out;
    EXPECT_GE(report["processors"]["cores"], 1) << json.out;
    EXPECT_TRUE(text.out.ends_with("\n\n" + report["reason"].get<std::string>() + "\n")) << text.out;
    EXPECT_NE(text.out.find("parallel.device=cpu"), std::string::npos) << text.out;
    EXPECT_EQ(report["devices"].size(), 0U);
  } else {
    EXPECT_EQ(text.out.find(std::to_string(report["devices"].size()) + " GPU"), 0U) << text.out;
  }
}

/// For scripts that need a GPU.
TEST(DevicesCommandTest, OnlyWhereCudaIsAskedForItsAbsenceIsAnError) {
  const std::string hidden = "CUDA_VISIBLE_DEVICES= $LOCKSTEP_PROGRAM devices ";
  const auto json = run_shell(hidden + "--cuda --json"), text = run_shell(hidden + "--cuda");
  for (const Outcome& outcome : {json, text}) expect_says(outcome, 69);
  EXPECT_EQ(text.err, "lockstep: " + parse_json(json.out)["reason"].get<std::string>() + "\n");
  EXPECT_EQ(run_shell(hidden).exit_code, 0);
  EXPECT_EQ(lockstep("devices --cuda --emulated").exit_code, 2);
}

}  // namespace
}  // namespace lockstep::testing
