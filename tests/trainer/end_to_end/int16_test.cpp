// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// train.precision: int16 in the program: known weights on every engine, and what is said and proved.
#include "common/json_text.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "tests/trainer/end_to_end/program.hpp"
#include "tests/trainer/support/forged_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::testing {
namespace {

/// Convolutions with strides, padding, groups and dilation, a transposed one, norms, sums of branches, pools. Several layers
/// read one tensor, and a gradient that a norm makes is joined by that of a branch.
constexpr const char* kNetwork =
    "layers:\n"
    "  - conv2d: {out: 6, kernel: 3, padding: 1, bias: false}\n"
    "  - batch_norm\n"
    "  - relu: {name: first}\n"
    "  - conv2d: {out: 6, kernel: 1, name: joined}\n"
    "  - batch_norm\n"
    "  - conv2d: {out: 6, kernel: 3, padding: 2, dilation: 2, groups: 2, name: side}\n"
    "  - route: first\n"
    "  - conv2d: {out: 6, kernel: 1}\n"
    "  - add: joined\n"
    "  - add: side\n"
    "  - max_pool: 2\n"
    "  - conv_transpose2d: {out: 5, kernel: 3, stride: 2}\n"
    "  - conv2d: {out: 9, kernel: [3, 2], stride: 2}\n"
    "  - relu\n"
    "  - dropout: 0.25\n"
    "  - linear: 20\n"
    "  - tanh\n"
    "  - linear: classes\n";

class Int16Test : public ::testing::Test {
 protected:
  Int16Test() { write_text(directory_.path("network.yaml"), kNetwork); }

  /// The last grain of a batch has fewer samples than others, and columns that are padding.
  std::string arguments(const std::string& run, const std::string& more) const {
    write_text(
        directory_.path("job.yaml"),
        fmt::format("model: {}\n"
                    "data: {{set: synthetic, train_samples: 170, test_samples: 50, global_batch: 45}}\n"
                    "train: {{epochs: 2, precision: int16, optimizer: {{lr: 0.05, momentum: 0.9}}}}\n"
                    "parallel: {{device: cpu, grain: 20}}\n"
                    "run: {{log_every_steps: 1}}\n",
                    directory_.path("network.yaml")));
    return fmt::format("train {} run.dir={} {}", directory_.path("job.yaml"), directory_.path(run), more);
  }
  TrainedRun train(const std::string& run, const std::string& more = "",
                   const std::string& before = "") const {
    const auto outcome = ended_well(run_shell(before + "$LOCKSTEP_PROGRAM " + arguments(run, more)));
    return {outcome.last_line(), comparable_metrics(directory_.path(run)), directory_.path(run)};
  }

  TemporaryDirectory directory_;
};

/// Ranks, threads, stages and resumes: ways_test.cpp.
TEST_F(Int16Test, WeightsDependOnNoEngine) {
  const TrainedRun alone = train("alone");
  // As when each op found the units of its operands by itself.
  EXPECT_EQ(alone.last_line,
            "weights sha256 9103cf1b0794a2506e1358d18a42f359b928b405f78bb99ae38b4aea42d8524f");
  for (const std::string& engine : cpu::int16::engine_choices())
    expect_same(train("by-" + engine, "", "LOCKSTEP_INTEGER_ENGINE=" + engine + " "), alone, engine);
  expect_same(train("sse4", "", "LOCKSTEP_SIMD=sse4 "), alone, "SSE4");
  // Grains of 64 samples, whose lanes are samples where a layer has few filters.
  const std::string of_64 = "data.global_batch=128 parallel.grain=64";
  const TrainedRun by_doubles = train("of-64", of_64, "LOCKSTEP_INTEGER_ENGINE=doubles ");
  for (const std::string& engine : cpu::int16::engine_choices())
    expect_same(train("of-64-by-" + engine, of_64, "LOCKSTEP_INTEGER_ENGINE=" + engine + " "), by_doubles,
                engine);
  EXPECT_NE(alone.last_line, train("fp32", "train.precision=fp32").last_line);
}

/// Metrics of engines, ranks, threads and stages are compared with it.
TEST_F(Int16Test, EpochsSayWhatRoundsToZero) {
  const auto shares_of = [](const TrainedRun& run) {
    std::vector<double> shares;
    for (const auto& event : run.metrics)
      if (event.contains("rounded_to_zero")) shares.push_back(event.at("rounded_to_zero"));
    return shares;
  };
  const TrainedRun alone = train("alone"), first = train("first", "train.epochs=1");
  ASSERT_EQ(shares_of(alone).size(), 2U);
  EXPECT_EQ(shares_of(first), std::vector(1, shares_of(alone).front()));
  for (const double share : shares_of(alone)) {
    EXPECT_GT(share, 0);
    EXPECT_LT(share, 0.5);
  }
  EXPECT_TRUE(shares_of(train("fp32", "train.precision=fp32")).empty());
  forge_metrics(alone.directory, [](std::vector<nlohmann::json>& events) {
    for (auto& event : events)
      if (event.contains("rounded_to_zero")) event.at("rounded_to_zero") = 0.75;
  });
  expect_says(lockstep("prove " + alone.directory), 1, {"rounded_to_zero is 0.75, and came to 0.0"});
}

TEST_F(Int16Test, CheckpointKnowsItsPrecision) {
  train("run");
  const std::string run = directory_.path("run");
  expect_says(lockstep("inspect " + run), 0, {"train.precision: int16"});
  expect_says(lockstep("prove " + run), 0, {"proved"});
  EXPECT_EQ(lockstep_on_ranks(3, "eval " + run).out, lockstep("eval " + run).out);
  succeed("export " + run + " --onnx " + directory_.path("run.onnx"));
  expect_words(read_text(directory_.path("run.onnx")), {"fp32; the run computed in int16"});
  expect_says(lockstep("eval --device emulated " + run), 2, {"emulated has no train.precision int16"});
  const std::string predict = "predict " + run + " 'test[0]' --json";
  const Outcome first = lockstep(predict),
                again = run_shell("LOCKSTEP_INTEGER_ENGINE=doubles $LOCKSTEP_PROGRAM " + predict);
  expect_says(first, 0, {"\"class\""});
  EXPECT_EQ(first.out, again.out);
}

TEST_F(Int16Test, StartAndCommandsNameTheEngine) {
  const std::string best = cpu::int16::engine_choices().front(), forced = "LOCKSTEP_INTEGER_ENGINE=doubles ";
  expect_says(lockstep(arguments("run", "")), 0, {", int16 by " + best});
  expect_says(run_shell(forced + "$LOCKSTEP_PROGRAM " + arguments("other", "")), 0, {", int16 by doubles"});
  EXPECT_EQ(parse_json(lockstep("devices --json").out).at("processors").at("int16"), best);
  expect_says(run_shell(forced + "$LOCKSTEP_PROGRAM devices"), 0, {"int16 by", "  doubles  "});
  const auto bench = [&](const std::string& more) {
    return run_shell(forced + "$LOCKSTEP_PROGRAM bench step " + directory_.path("job.yaml") +
                     " --rounds 1 --steps 1 " + more);
  };
  expect_says(bench("--explain"), 0, {", int16 by doubles; peak", "their shares of the peak", " us, at "});
  const auto named = parse_json(bench("--json").out),
             plain = parse_json(bench("--json train.precision=fp32").out);
  EXPECT_EQ(named.at("precision"), "int16");
  EXPECT_EQ(named.at("int16"), "doubles");
  EXPECT_EQ(plain.at("precision"), "fp32");
  EXPECT_FALSE(plain.contains("int16"));
}

}  // namespace
}  // namespace lockstep::testing
