// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `bench step` on ranks that are threads of this process. Its numbers follow from each other.
#include "trainer/tools/step_bench.hpp"

#include "comm/agreement.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "common/timeline.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

#include <sched.h>

namespace lockstep::bench {
namespace {

constexpr int kBatch = 32, kThreads = 1, kTwoRanks = 2;

/// Two full steps an epoch, and a smaller one.
Job job_on(const std::string& device, const std::vector<std::string>& overrides = {}) {
  return parse_job(
      "model: linear\n"
      "data: {set: synthetic, train_samples: 80, test_samples: 8, global_batch: 32}\n"
      "parallel: {device: " +
          device + ", grain: 8, threads: 1, bucket_bytes: 4096}\n",
      "test.yaml", overrides);
}

std::string printed_by(int ranks, const std::string& device, const StepBenchOptions& options,
                       const std::vector<std::string>& overrides = {}) {
  const Job job = job_on(device, overrides);
  const DatasetFuture data = load_in_advance(job);
  ::testing::internal::CaptureStdout();
  run_thread_ranks(ranks, [&](Communicator& comm) {
    bench_step(comm, job, data, options);
    const Timeline* const timeline = comm.activity().timeline();
    EXPECT_FALSE(timeline != nullptr && timeline->is_open()) << "nothing is traced after the traced steps";
  });
  return ::testing::internal::GetCapturedStdout();
}

/// Exit code and message of the error on which the ranks agree.
std::string refusal_of(const Job& job, const DatasetFuture& data, const StepBenchOptions& options) {
  std::string said;
  run_thread_ranks(1, [&](Communicator& comm) {
    try {
      bench_step(comm, job, data, options);
    } catch (const AgreedError& error) {
      said = fmt::format("{}: {}", static_cast<int>(error.code()), error.what());
    }
  });
  return said;
}

void expect_near(double value, double expected, const char* what) {
  EXPECT_NEAR(value, expected, 1e-9 * std::abs(expected)) << what;
}

/// The traced turn is not measured. The one layer's products, at the peak, are all that a step needs.
TEST(StepBenchTest, NumbersOfEachWayAndOfTracedStepsFollowFromTheTimeOfAStep) {
  const auto report = parse_json(printed_by(
      kTwoRanks, "cpu", {.rounds = 1, .steps_per_round = 3, .json = true, .explain = true, .trace = {}}));
  EXPECT_EQ(report["format"], 1);
  EXPECT_EQ(report["bench"], "step");
  EXPECT_EQ(report["parameters"], 7850);
  EXPECT_EQ(report["global_batch"], kBatch);
  EXPECT_EQ(report["grain"], 8);
  EXPECT_EQ(report["ranks"], kTwoRanks);
  EXPECT_EQ(report["threads"], kThreads);
  EXPECT_EQ(report["precision"], "fp32");
  EXPECT_FALSE(report.contains("int16"));
  ASSERT_EQ(report["ways"].size(), 2U);
  EXPECT_EQ(report["ways"][0]["determinism"], "world");
  EXPECT_EQ(report["ways"][1]["determinism"], "off");
  const double needed = report["needed_flops_per_sample"], peak = report["peak_flops"];
  EXPECT_GT(peak, 0);
  for (const auto& way : report["ways"]) {
    const double seconds = way["seconds"];
    EXPECT_GT(seconds, 0);
    expect_near(way["samples_per_second"], kBatch / seconds, "samples/s");
    expect_near(way["peak_share"], needed * kBatch / seconds / (kTwoRanks * kThreads) / peak, "of peak");
    for (const char* share : {"input_share", "exposed_share", "optimizer_share"}) {
      EXPECT_GE(way[share], 0) << share;
      EXPECT_LE(way[share], 1) << share;
    }
    EXPECT_GT(way["exposed_share"], 0) << "all ranks wait for a sum that all have sent";
    EXPECT_GE(way["skew_share"], -1e-9)
        << "no rank waits less than the one that waits for communication alone";
    EXPECT_LE(way["hidden_seconds"], way["under_way_seconds"]);
    const double waited = way["exposed_share"].get<double>() + way["skew_share"].get<double>();
    EXPECT_NEAR(way["under_way_seconds"].get<double>() - way["hidden_seconds"].get<double>(),
                waited * seconds, 1e-12)
        << "hidden is all that is not waited for";
    EXPECT_GE(way["comparing_seconds"], 0);
  }
  EXPECT_EQ(report["ways"][0]["bucket_leaves_seconds"].size(), report["buckets"]);
  for (const auto& way : report["ways"])
    for (const double leaves : way["bucket_leaves_seconds"])
      EXPECT_LE(leaves, way["seconds"].get<double>()) << "of one step, and not of three";
  expect_near(report["world_over_off"],
              report["ways"][0]["seconds"].get<double>() / report["ways"][1]["seconds"].get<double>(),
              "of one turn each");
  const auto& traced = report["traced"];
  EXPECT_EQ(traced["steps"], 3);
  EXPECT_GT(traced["seconds"], 0);
  EXPECT_GE(traced["exposed_share"], 0);
  EXPECT_EQ(traced["peak_share"], report["ways"][0]["peak_share"]);
  EXPECT_LE(traced["hidden_measured_seconds"], traced["under_way_measured_seconds"]);
  const auto layer =
      std::ranges::find_if(traced["layers"], [](const auto& entry) { return entry.contains("peak_share"); });
  ASSERT_NE(layer, traced["layers"].end());
  const double seconds = layer->at("forward").get<double>() + layer->at("backward").get<double>();
  expect_near(layer->at("peak_share").get<double>() * seconds * peak,
              needed * kBatch / (kTwoRanks * kThreads), "FLOPs");
  const auto alone =
      parse_json(printed_by(1, "cpu", {.rounds = 1, .steps_per_round = 2, .json = true, .trace = {}}));
  EXPECT_FALSE(alone.contains("traced"));
  for (const auto& way : alone["ways"]) EXPECT_NEAR(way["skew_share"], 0, 1e-9) << "no rank comes later";
}

/// The first of two ranks has one of three grains of 8, a third of the products of a step. But for the first of them,
/// layers have three directions.
TEST(StepBenchTest, ALayersShareOfThePeakIsOfTheGrainsOfItsRank) {
  const auto report = parse_json(printed_by(
      kTwoRanks, "cpu", {.rounds = 1, .steps_per_round = 2, .json = true, .explain = true, .trace = {}},
      {"data.global_batch=24", "model=net"}));
  double seconds_at_peak = 0;
  for (const auto& layer : report["traced"]["layers"])
    seconds_at_peak +=
        layer.value("peak_share", 0.0) * (layer["forward"].get<double>() + layer["backward"].get<double>());
  expect_near(seconds_at_peak * report["peak_flops"].get<double>(),
              report["needed_flops_per_sample"].get<double>() * 8 / kThreads, "FLOPs");
}

TEST(StepBenchTest, TablesAreOfAllRanksAndOfBothWays) {
  const std::string alone = printed_by(1, "cpu", {.rounds = 1, .steps_per_round = 1, .trace = {}}),
                    two = printed_by(kTwoRanks, "cpu",
                                     {.rounds = 1, .steps_per_round = 2, .explain = true, .trace = {}});
  test::expect_words(
      alone, {"linear: 7,850 parameters, 0.031 MFLOP a sample; global batch 32, grain 8\n1 rank x 1 thread, ",
              "\nnapkin limit: ", "\nworld ", "\noff ", "\nworld: buckets leave after ", "\nworld costs "});
  EXPECT_EQ(alone.find("gradients under way"), std::string::npos) << "one rank sends none";
  EXPECT_EQ(alone.find("Where a step"), std::string::npos);
  test::expect_words(
      printed_by(1, "cpu", {.rounds = 1, .steps_per_round = 1, .trace = {}}, {"model=lenet"}),
      {"lenet: 129,068 parameters, 13.259 MFLOP a sample, 10.637 without padding and what pools "
       "drop; global batch 32, grain 8\n"});
  test::expect_words(
      two, {"\n2 ranks x 1 thread, backend thread, ", "\nworld: gradients under way for ",
            "\noff: gradients under way for ", "\n\nWhere a step of rank 0 goes (mean of 2 steps, "});
}

TEST(StepBenchTest, AdviceIsOnCoresThatRanksMayUse) {
  const auto explained = [] {
    return printed_by(1, "cpu", {.rounds = 1, .steps_per_round = 1, .explain = true, .trace = {}});
  };
  if (const int cores = available_cores(); cores > 1)
    test::expect_words(explained(), {"1 of " + counted(cores, "core") + " in use"});
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(usable_cpus().front(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const std::string bound = explained();
  ::sched_setaffinity(0, sizeof before, &before);
  EXPECT_EQ(bound.find(" in use"), std::string::npos) << bound;
}

TEST(StepBenchTest, WaysOfADeviceAreComparedByTheirStep) {
  const auto report =
      parse_json(printed_by(1, "emulated", {.rounds = 1, .steps_per_round = 5, .json = true, .trace = {}}));
  EXPECT_EQ(report["bench"], "step");
  EXPECT_EQ(report["parameters"], 7850);
  EXPECT_EQ(report["global_batch"], kBatch);
  EXPECT_EQ(report["ranks"], 1);
  ASSERT_GE(report["ways"].size(), 3U);
  const char* const names[] = {"native, graph", "native, no graph", "determinism off"};
  for (std::size_t i = 0; i < std::size(names); ++i) {
    const auto& way = report["ways"][i];
    EXPECT_EQ(way["way"], names[i]);
    const double seconds = way["seconds"];
    EXPECT_GT(seconds, 0);
    EXPECT_GE(way["host_seconds"], 0);
    EXPECT_LE(way["host_seconds"], seconds) << "of one step, and not of five";
    expect_near(way["samples_per_second"], kBatch / seconds, "samples/s");
    expect_near(way["flops"], report["flops_per_sample"].get<double>() * kBatch / seconds, "FLOP/s");
  }
  test::expect_words(printed_by(1, "emulated", {.rounds = 1, .steps_per_round = 1, .trace = {}}),
                     {fmt::format("linear: 7,850 parameters, {:.3f} MFLOP a sample; global batch 32, grain "
                                  "8\n1 rank, ",
                                  report["flops_per_sample"].get<double>() * 1e-6),
                      " us/step ", "\nnative, no graph "});
}

TEST(StepBenchTest, StepsOfADeviceAreExplainedByTheTraceOfARun) {
  const Job job = job_on("emulated");
  const DatasetFuture data = load_in_advance(job);
  const std::string file = ::testing::TempDir() + "/steps.pftrace";
  for (const StepBenchOptions& options : {StepBenchOptions{.explain = true, .trace = {}}, {.trace = file}})
    EXPECT_EQ(refusal_of(job, data, options),
              "2: --explain and --trace are for steps on CPUs; on a GPU, train with run.trace=100..110 "
              "(docs/timeline.md)");
}

TEST(StepBenchTest, AStepHasNoMoreSamplesThanTheSet) {
  const StepBenchOptions options{.rounds = 1, .steps_per_round = 1, .json = true, .trace = {}};
  const std::vector<std::string> overrides = {"data.train_samples=10", "data.global_batch=640"};
  for (const std::string device : {"cpu", "emulated"}) {
    const auto report = parse_json(printed_by(1, device, options, overrides));
    EXPECT_EQ(report["global_batch"], 10);
    for (const auto& way : report["ways"])
      expect_near(way["samples_per_second"], 10 / way["seconds"].get<double>(), "samples/s");
    if (device != "cpu") continue;
    const auto& way = report["ways"][0];
    expect_near(way["peak_share"].get<double>() * report["peak_flops"].get<double>(),
                report["needed_flops_per_sample"].get<double>() * 10 / way["seconds"].get<double>(),
                "FLOP/s");
  }
}

/// Weights grow by 10^12 a step.
TEST(StepBenchTest, StepsThatMoveNoWeightsAreNotMeasured) {
  for (const std::string device : {"cpu", "emulated"}) {
    const Job job = job_on(
        device, {"train.optimizer.lr=1e6", "train.optimizer.weight_decay=1e6", "train.optimizer.momentum=0"});
    test::expect_words(refusal_of(job, load_in_advance(job), {.trace = {}}),
                       {"70: step ", " cannot be taken: ", "smaller train.optimizer.lr"});
  }
}

TEST(StepBenchTest, FifteenTurnsOfFortyStepsAreUsual) {
  const StepBenchOptions usual;
  EXPECT_EQ(std::pair(usual.rounds, usual.steps_per_round), std::pair(15, 40));
  EXPECT_FALSE(usual.json || usual.explain || usual.force);
}

TEST(StepBenchTest, OtherStrategiesAreNotMeasuredAsDataParallelism) {
  Job job = job_on("cpu");
  const DatasetFuture data = load_in_advance(job);
  for (const char* strategy : {"pipeline", "hogwild"}) {
    job.parallel.strategy = strategy;
    EXPECT_EQ(
        refusal_of(job, data, {.trace = {}}),
        fmt::format("2: bench step measures parallel.strategy=data, and the job has {}; leave that out, "
                    "or trace a run of it with run.trace=100..110 (docs/timeline.md)",
                    strategy));
  }
}

TEST(BenchedWayTest, StartsAtTheJobsWeightsAndCountsStepsOfAWholeBatch) {
  for (const auto& [samples, full_steps] : {std::pair(80, 2), {64, 2}, {31, 1}}) {
    const Job job = job_on("cpu", {fmt::format("data.train_samples={}", samples)});
    const DatasetFuture data = load_in_advance(job);
    run_thread_ranks(1, [&, samples = samples, full_steps = full_steps](Communicator& comm) {
      const BenchedWay way("world", job, comm, set_up(job, comm, data));
      EXPECT_EQ(way.batch, std::min(samples, kBatch));
      EXPECT_EQ(way.full_steps, full_steps) << samples;
      std::vector<float> weights(way.setup.network.parameters().size);
      way.setup.network.initialise(job.train.seed, weights);
      EXPECT_TRUE(std::ranges::equal(way.strategy->whole_state().weights, weights));
    });
  }
}

/// The first step waits at least 1 s on all ranks, the second 2 s.
TEST(BenchedWayTest, CommunicationIsTheShortestWaitOfEachStep) {
  run_thread_ranks(2, [](Communicator& comm) {
    const std::vector<double> waits[] = {{1, 5}, {3, 2}};
    EXPECT_EQ(waits_of_last_arrivals(comm, waits[comm.rank()]), 3);
  });
}

TEST(StepBenchTest, RowsHaveMicrosecondsAndPercent) {
  const auto ways = nlohmann::ordered_json::parse(R"([
    {"determinism": "world", "seconds": 0.00125, "samples_per_second": 25600.5, "peak_share": 0.123,
     "input_share": 0.01, "exposed_share": 0.025, "skew_share": 0.0375, "optimizer_share": 0.05,
     "under_way_seconds": 0.0004, "hidden_seconds": 0.0003, "comparing_seconds": 0.000005,
     "bucket_leaves_seconds": [0.0001, 0.00025]},
    {"determinism": "off", "seconds": 0.001, "samples_per_second": 32000, "peak_share": 0.25,
     "input_share": 0.5, "exposed_share": 0, "skew_share": 0.125, "optimizer_share": 0.0625,
     "under_way_seconds": 0, "hidden_seconds": 0, "comparing_seconds": 0, "bucket_leaves_seconds": [1]}])");
  const std::string rows =
      "determinism  samples/s   us/step  of peak    input  exposed     skew optimiser\n"
      "world           25,600    1250.0   12.3 %   1.00 %   2.50 %   3.75 %    5.00 %\n"
      "off             32,000    1000.0   25.0 %  50.00 %   0.00 %  12.50 %    6.25 %\n\n";
  const std::string end =
      "world: buckets leave after 100.0 + 250.0 us of a step\n"
      "world costs +25.0 % over off (median ratio of turns)\n";
  EXPECT_EQ(ways_text(ways, 1, 1.25), rows + end);
  EXPECT_EQ(ways_text(ways, 2, 1.25),
            rows +
                "world: gradients under way for 400 us a step, 300 us of it (75 %) beside backward\n"
                "world: comparing the sums with what the ranks sent took 5.0 us a step, 0.40 % of it\n"
                "off: gradients under way for 0 us a step, 0 us of it (0 %) beside backward\n" +
                end);
  EXPECT_EQ(device_way_text({{"way", "native, graph"},
                             {"seconds", 12.34e-6},
                             {"host_seconds", 4.5e-6},
                             {"samples_per_second", 1234567.8},
                             {"flops", 2.5e12}}),
            "native, graph               12.34       4.50      1,234,567     2500.0\n");
}

}  // namespace
}  // namespace lockstep::bench
