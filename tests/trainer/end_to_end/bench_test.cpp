// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep bench allreduce` on host and device memory, and what it says where NCCL cannot be.
#include "common/json_text.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing::bench_allreduce_test {

namespace {

constexpr const char* kSmall = "bench allreduce --max-bytes 4096 --repetitions 3 ";

bool has_gpu() {
  return lockstep(std::string(kSmall) + "--backend mpi --device cuda").exit_code == 0;
}

void expect_refusal(const Outcome& outcome, int exit_code, const std::string& mention) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.everything();
  EXPECT_EQ(outcome.err.find("lockstep: "), 0U) << outcome.everything();
  EXPECT_EQ(outcome.err.find("lockstep: ", 1), std::string::npos) << outcome.everything();
  EXPECT_NE(outcome.err.find(mention), std::string::npos) << outcome.everything();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Six rows: three sizes, two types. All fit a terminal of 80 columns.
void expect_table(const Outcome& outcome, const std::string& title) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.everything();
  EXPECT_NE(outcome.out.find(title), std::string::npos) << outcome.everything();
  for (const char* column : {"size", "count", "type", "time", "algbw", "busbw", "#err", "in-place"})
    EXPECT_NE(outcome.out.find(column), std::string::npos) << column << " is not in\n" << outcome.out;
  EXPECT_NE(outcome.out.find("# Out of bounds values : 0 OK"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.last_line().find("# Avg bus bandwidth    : "), 0U) << outcome.out;
  std::size_t rows = 0;
  for (const std::string& line : lines_of(outcome.out)) {
    if (line[0] == '#') continue;
    ++rows;
    EXPECT_LE(line.size(), 80U) << line;
  }
  EXPECT_EQ(rows, 6U) << outcome.out;
}

TEST(BenchAllreduceTest, HostMemoryOverMpi) {
  const Outcome outcome = lockstep_on_ranks(3, kSmall);
  expect_table(outcome, "over mpi, 3 ranks");
  for (const char* rank : {"# rank   0 pid ", "# rank   1 pid ", "# rank   2 pid "})
    EXPECT_NE(outcome.out.find(rank), std::string::npos) << outcome.out;
}

TEST(BenchAllreduceTest, DeviceMemoryThroughTheHost) {
  const std::string emulated = std::string(kSmall) + "--device emulated ";
  expect_table(lockstep_on_ranks(2, emulated), "over mpi through pinned memory");
  const Outcome threads = lockstep(emulated + "--backend thread --ranks 3");
  expect_table(threads, "thread through pinned memory");
  EXPECT_NE(threads.out.find("device 0 [0000:00:00.0] Emulated GPU"), std::string::npos) << threads.out;
  expect_table(lockstep(emulated), "1 rank\n");
}

TEST(BenchAllreduceTest, ABackendThatWentIsNamedWithWhatToUseInstead) {
  for (const char* peers : {"--backend peers", "--backend=peers"}) {
    const Outcome outcome = lockstep(std::string(kSmall) + peers);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.everything();
    EXPECT_NE(outcome.err.find("was removed: use --backend nccl"), std::string::npos) << outcome.err;
  }
}

TEST(BenchTest, BenchmarksOfKernelsAreAProgramOfTheirOwn) {
  for (const char* arguments : {"", " --device cuda --filter conv2", " --json"}) {
    const Outcome outcome = lockstep(std::string("bench kernels") + arguments);
    expect_refusal(outcome, 2, "bench kernels was removed: use kernels_bench");
  }
}

TEST(BenchAllreduceTest, OneRankHasNoBandwidths) {
  const Outcome outcome = lockstep(std::string(kSmall) + "--warmup 0");
  expect_table(outcome, "1 rank\n");
  EXPECT_NE(outcome.last_line().find("nothing travels"), std::string::npos) << outcome.out;
  for (const std::string& line : lines_of(outcome.out)) {
    EXPECT_EQ(line[0] != '#', line.find("     -      -    0 ") != std::string::npos) << line;
  }
}

TEST(BenchAllreduceTest, TakesTheOptionsOfNcclTests) {
  const auto outcome = succeed("bench allreduce -b 8 -e 1K -f 8 -n 2 -w 1 --backend thread --ranks 2");
  for (const char* size : {"\n        8         1 int64", "\n       64 ", "\n      512 "})
    EXPECT_NE(outcome.out.find(size), std::string::npos) << size << outcome.out;
  EXPECT_EQ(outcome.out.find("\n     1024 "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("median of 2 after 1 to warm up"), std::string::npos) << outcome.out;
}

TEST(BenchAllreduceTest, RefusesSizesThatMakeNoSense) {
  for (const std::string arguments :
       {"--max-bytes -1", "--max-bytes=-1", "-e -1", "-b 0", "-b 7", "-e 100P", "-e 99999999999999999999999",
        "-f 1", "-f -2", "-n 0", "-w -1", "-b 4K -e 1K", "-e 12.5x"}) {
    const Outcome outcome = lockstep("bench allreduce " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << outcome.everything();
    EXPECT_EQ(outcome.err.find("lockstep: "), 0U) << arguments << outcome.everything();
  }
}

TEST(BenchAllreduceTest, NcclWithoutAGpuIsOneLine) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  expect_refusal(lockstep(std::string(kSmall) + "--backend nccl"), 69, "parallel.device=cpu");
}

TEST(BenchAllreduceTest, NcclNeedsGpus) {
  for (const std::string device : {"cpu", "emulated"})
    expect_refusal(lockstep(std::string(kSmall) + "--backend nccl --device " + device), 2, device);
}

}  // namespace

}  // namespace lockstep::testing::bench_allreduce_test

namespace lockstep::testing {

// lockstep devices, on machines with GPUs and without.

namespace {

TEST(DevicesCommandTest, ListsTheEmulatedDevice) {
  const auto text = succeed("devices --emulated");
  EXPECT_EQ(text.out.substr(0, 6), "1 GPU;") << text.out;
  const auto json = succeed("devices --emulated --json");
  const auto report = parse_json(json.out);
  ASSERT_EQ(report["devices"].size(), 1U) << json.out;
  EXPECT_GT(report["devices"][0]["memory_free_bytes"], 0) << json.out;
}

/// Without GPUs: the processors, and a line that says why and what to do. With: the same number both ways.
TEST(DevicesCommandTest, TextAndJsonAgreeOnTheGpusOfThisMachine) {
  const auto text = run_shell("COLUMNS=10000 $LOCKSTEP_PROGRAM devices");
  const auto json = lockstep("devices --json");
  EXPECT_EQ(text.exit_code, 0) << text.everything();
  EXPECT_EQ(json.exit_code, 0) << json.everything();
  EXPECT_EQ(text.err + json.err, "");
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
  EXPECT_EQ(json.exit_code, 69) << json.everything();
  EXPECT_EQ(text.exit_code, 69) << text.everything();
  EXPECT_EQ(text.err, "lockstep: " + parse_json(json.out)["reason"].get<std::string>() + "\n");
  EXPECT_EQ(run_shell(hidden).exit_code, 0);
  EXPECT_EQ(lockstep("devices --cuda --emulated").exit_code, 2);
}

TEST(DevicesCommandTest, HelpDocumentsTheJson) {
  const auto help = lockstep("devices --help");
  EXPECT_EQ(help.exit_code, 0);
  for (const std::string key : {"memory_free_bytes", "performance_rank", "reason", "69"})
    EXPECT_NE(help.out.find(key), std::string::npos) << help.out;
}

}  // namespace

}  // namespace lockstep::testing
