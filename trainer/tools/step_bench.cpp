// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Exact and fp32 sums take turns on the same job, beside the peak that was measured in between.
#include "trainer/tools/step_bench.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/output_file.hpp"
#include "common/text_layout.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "models/network.hpp"
#include "models/tensor_uses.hpp"
#include "trainer/run/step_trace.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/tools/allreduce_bench.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace lockstep::bench {

double median(std::vector<double> values) {
  LOCKSTEP_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

BenchedWay::BenchedWay(std::string name, const Job& job, Communicator& comm, JobSetup made)
    : label(std::move(name)), setup(std::move(made)), strategy(make_data_parallel(setup, comm)) {
  check_ranks(*strategy, setup, comm);
  setup.network.initialise(job.train.seed, strategy->whole_state().weights, job.train.initial_scale);
  strategy->distribute();
  const DistributedSampler& sampler = strategy->sampler();
  const std::int64_t steps = sampler.steps_per_epoch();
  batch = sampler.batch_samples(0);
  full_steps = steps - (sampler.batch_samples(steps - 1) < batch ? 1 : 0);
}

void BenchedWay::take(std::int64_t count) {
  const StepSeries series = strategy->run({step / full_steps, step % full_steps, step}, count, false);
  step += series.steps;
  if (series.failure)
    throw AgreedError(
        ExitCode::kInternal,
        fmt::format("step {} of '{}' cannot be taken: losses or gradients are NaN or infinite; measure "
                    "with a smaller train.optimizer.lr",
                    step + 1, label));
}

/// The last rank to finish its backward waits only for communication; the others also wait for this rank.
double waits_of_last_arrivals(Communicator& comm, const std::vector<double>& waits) {
  const auto by_rank = gather(comm, std::span<const double>(waits));
  double sum = 0;
  for (std::size_t step = 0; step < waits.size(); ++step) {
    double shortest = waits[step];
    for (const auto& its_waits : by_rank) shortest = std::min(shortest, its_waits[step]);
    sum += shortest;
  }
  return sum;
}

namespace {

constexpr double kPeakTurnSeconds = 0.02;

/// A way, and what its turns took.
struct Candidate : BenchedWay {
  using BenchedWay::BenchedWay;

  /// Runs the next full-batch steps; records seconds per step and the shares of this turn.
  void turn(Communicator& comm, int steps) {
    const StepTimes before = strategy->times();
    const auto start = Clock::now();
    std::vector<double> waits;
    for (int i = 0; i < steps; ++i) {
      const double waited = strategy->times().exposed;
      take(1);
      waits.push_back(strategy->times().exposed - waited);
    }
    const double total = seconds_since(start);
    const StepTimes times = strategy->times();
    const double exposed_here = times.exposed - before.exposed,
                 sums_under_way = times.under_way - before.under_way;
    const double communication = waits_of_last_arrivals(comm, waits);
    const auto record = [&](const char* name, double value) { series[name].push_back(value); };
    record("seconds", total / steps);
    record("input_share", (times.input - before.input) / total);
    record("exposed_share", communication / total);
    record("skew_share", (exposed_here - communication) / total);
    record("optimizer_share", (times.optimizer - before.optimizer) / total);
    record("under_way_seconds", sums_under_way / steps);
    record("hidden_seconds", (sums_under_way - exposed_here) / steps);
    record("comparing_seconds", (times.comparing - before.comparing) / steps);
    until_left.resize(times.until_left.size());
    for (std::size_t i = 0; i < until_left.size(); ++i)
      until_left[i].push_back((times.until_left[i] - before.until_left[i]) / steps);
  }

  /// One that warmed up or was traced is no measurement.
  void forget_last_turn() {
    for (auto& [name, values] : series) values.pop_back();
    for (auto& bucket : until_left) bucket.pop_back();
  }

  /// This rank's numbers, one a turn: seconds a step, or shares of it, as the JSON calls them.
  std::map<std::string, std::vector<double>> series;
  std::vector<std::vector<double>> until_left;  ///< seconds a step, of each bucket
};

/// A way of the JSON as a row.
std::string contender_text(const nlohmann::ordered_json& way) {
  const auto number = [&](const char* name) { return way[name].get<double>(); };
  return fmt::format("{:<11} {:>10} {:>9.1f} {:>6.1f} % {:>6.2f} % {:>6.2f} % {:>6.2f} % {:>7.2f} %\n",
                     way["determinism"].get<std::string>(),
                     with_thousands(static_cast<std::int64_t>(number("samples_per_second"))),
                     number("seconds") * 1e6, 100 * number("peak_share"), 100 * number("input_share"),
                     100 * number("exposed_share"), 100 * number("skew_share"),
                     100 * number("optimizer_share"));
}

std::string overlap_text(const nlohmann::ordered_json& way) {
  const auto label = way["determinism"].get<std::string>();
  const auto under_way = way["under_way_seconds"].get<double>(), beside = way["hidden_seconds"].get<double>();
  std::string text = fmt::format(
      "{}: gradients under way for {:.0f} us a step, {:.0f} us of it ({:.0f} %) beside backward\n", label,
      under_way * 1e6, beside * 1e6, under_way > 0 ? 100 * beside / under_way : 0);
  if (const auto comparing = way["comparing_seconds"].get<double>(); comparing > 0)
    text +=
        fmt::format("{}: comparing the sums with what the ranks sent took {:.1f} us a step, {:.2f} % of it\n",
                    label, comparing * 1e6, 100 * comparing / way["seconds"].get<double>());
  return text;
}

/// When the gradients of each bucket are ready.
std::string departures_text(const nlohmann::ordered_json& way) {
  std::string times;
  for (const double seconds : way["bucket_leaves_seconds"])
    times += fmt::format("{}{:.1f}", times.empty() ? "" : " + ", seconds * 1e6);
  return fmt::format("{}: buckets leave after {} us of a step\n", way["determinism"].get<std::string>(),
                     times);
}

}  // namespace

std::string ways_text(const nlohmann::ordered_json& ways, int ranks, double world_over_off) {
  std::string text = fmt::format("{:<11} {:>10} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9}\n", "determinism",
                                 "samples/s", "us/step", "of peak", "input", "exposed", "skew", "optimiser");
  for (const auto& way : ways) text += contender_text(way);
  text += "\n";
  if (ranks > 1)
    for (const auto& way : ways) text += overlap_text(way);
  text += departures_text(ways[0]);
  return text +
         fmt::format("world costs {:+.1f} % over off (median ratio of turns)\n", 100 * (world_over_off - 1));
}

namespace {

/// Contents of all forms of the report.
struct BenchedStep {
  const Job& job;
  const Communicator& comm;
  const Network& network;
  const BucketPlan& plan;
  const Candidate& world;
  const Candidate& off;
  double peak = 0;  ///< FLOP/s of a core; with int16 of its engine there

  /// Those of a step, over all ranks.
  double samples_per_thread() const {
    return static_cast<double>(world.batch) / (comm.size() * job.parallel.threads);
  }
  /// Those of this rank, which may have more or fewer grains than others.
  double samples_per_own_thread() const {
    std::int64_t samples = 0;
    for (const Grain& grain : world.strategy->sampler().local_grains(0)) samples += grain.samples;
    return static_cast<double>(samples) / job.parallel.threads;
  }
  /// FLOP/s that the network's arithmetic needs per thread at this many seconds a step.
  double flops_per_thread(double seconds) const {
    return network.needed_training_flops_per_sample() * samples_per_thread() / seconds;
  }
};

double world_over_off(const BenchedStep& report) {
  const auto &a = report.world.series.at("seconds"), &b = report.off.series.at("seconds");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return median(ratios);
}

/// Formats both counts: "13.259 MFLOP a sample" is the papers' number, the necessary ones are fewer.
std::string flops_in_words(const Network& network) {
  const double all = network.training_flops_per_sample(), needed = network.needed_training_flops_per_sample();
  std::string text = fmt::format("{:.3f} MFLOP a sample", all * 1e-6);
  if (needed != all) text += fmt::format(", {:.3f} without padding and what pools drop", needed * 1e-6);
  return text;
}

nlohmann::ordered_json json_of(const Candidate& c, const BenchedStep& report) {
  const double seconds = median(c.series.at("seconds"));
  nlohmann::ordered_json way = {{"determinism", c.label},
                                {"seconds", seconds},
                                {"samples_per_second", static_cast<double>(c.batch) / seconds},
                                {"peak_share", report.flops_per_thread(seconds) / report.peak}};
  for (const char* name : {"input_share", "exposed_share", "skew_share", "optimizer_share",
                           "under_way_seconds", "hidden_seconds", "comparing_seconds"})
    way[name] = median(c.series.at(name));
  way["bucket_leaves_seconds"] = nlohmann::ordered_json::array();
  for (const auto& bucket : c.until_left) way["bucket_leaves_seconds"].push_back(median(bucket));
  return way;
}

void print_tables(const BenchedStep& report) {
  const auto& [job, comm, network, plan, world, off, peak] = report;
  print("{}: {}, {}; global batch {}, grain {}\n", network.name(),
        counted(network.parameters().size, "parameter"), flops_in_words(network), world.batch,
        job.parallel.grain);
  const bool is_int16 = network.precision() == Precision::kInt16;
  print("{} x {}, backend {}, {}{}; peak {:.1f} GFLOP/s a core\n", counted(comm.size(), "rank"),
        counted(job.parallel.threads, "thread"), comm.backend(), cpu::simd_name(),
        is_int16 ? ", int16 by " + cpu::int16::engine_name() : "", peak * 1e-9);
  print("napkin limit: {:.0f} us a step at the peak\n", 1e6 * report.flops_per_thread(1.0) / peak);
  const std::string forecast = plan.forecast();
  print("{}{}{}\n\n", plan.describe(), forecast.empty() ? "" : "\n", forecast);
  print("{}", ways_text({json_of(world, report), json_of(off, report)}, comm.size(), world_over_off(report)));
}

/// Description of traced steps, and the measurements beside them.
struct StepExplanation {
  StepShares shares;
  StepSurroundings around;
  double under_way = 0, hidden = 0;  ///< seconds a step, as Candidate measures them
};

void print_json(const BenchedStep& report, const std::optional<StepExplanation>& explanation) {
  const auto& [job, comm, network, plan, world, off, peak] = report;
  nlohmann::ordered_json object = {{"format", kBenchFormat},
                                   {"bench", "step"},
                                   {"model", network.name()},
                                   {"parameters", network.parameters().size},
                                   {"flops_per_sample", network.training_flops_per_sample()},
                                   {"needed_flops_per_sample", network.needed_training_flops_per_sample()},
                                   {"global_batch", world.batch},
                                   {"grain", job.parallel.grain},
                                   {"ranks", comm.size()},
                                   {"threads", job.parallel.threads},
                                   {"backend", comm.backend()},
                                   {"simd", cpu::simd_name()},
                                   {"precision", spelt(network.precision())},
                                   {"peak_flops", peak},
                                   {"buckets", plan.buckets.size()},
                                   {"ways", {json_of(world, report), json_of(off, report)}},
                                   {"world_over_off", world_over_off(report)}};
  if (network.precision() == Precision::kInt16) object["int16"] = cpu::int16::engine_name();
  if (explanation) {
    object["traced"] = explanation_json(explanation->shares, explanation->around);
    object["traced"]["under_way_measured_seconds"] = explanation->under_way;
    object["traced"]["hidden_measured_seconds"] = explanation->hidden;
  }
  print("{}\n", json_text_in_ascii(object));
}

/// Seconds that a step's products of each layer would take a thread of this rank at the peak. The first layer with weights
/// has no data gradient.
std::map<std::string, double> seconds_at_peak(const BenchedStep& report) {
  const auto& layers = report.network.layers();
  const std::vector<ImagePart> read = parts_read(layers, 0, layers.size());
  std::map<std::string, double> seconds;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i]->parameters().empty()) continue;
    const int directions = seconds.empty() ? 2 : 3;
    seconds[layers[i]->name()] = directions * report.samples_per_own_thread() *
                                 layers[i]->needed_flops_per_sample(read[i]) / report.peak;
  }
  return seconds;
}

/// Steps more, which are traced. Collective. Nothing where none are wanted.
std::optional<StepExplanation> explain(Communicator& comm, const StepBenchOptions& options, Candidate& world,
                                       const BenchedStep& report) {
  Timeline* const timeline = comm.activity().timeline();
  if (timeline == nullptr) return std::nullopt;
  const double share_of_peak = report.flops_per_thread(median(world.series.at("seconds"))) / report.peak;
  const auto machines = machines_of(comm);
  ClockLine clock;
  clock.begin = compare_clocks(comm, machines);
  comm.barrier();
  timeline->open();
  world.turn(comm, std::min(options.steps_per_round, static_cast<int>(kMostTracedSteps)));
  timeline->close();
  clock.end = compare_clocks(comm, machines);
  std::int64_t lost = timeline->lost();
  if (!options.trace.empty()) {
    const WrittenTrace written = write_trace(comm, *timeline, clock, options.trace, options.force);
    agree(comm, [&] {
      if (!written.error.empty()) throw IoError(written.error);
    });
    lost = written.lost;
  }
  if (comm.rank() == 0 && lost > 0)
    print_error(
        fmt::format("warning: {} of the traced steps were beyond the memory for them, and are left "
                    "out; take fewer --steps",
                    counted(lost, "slice")));
  const Job& job = report.job;
  StepExplanation explanation{
      .shares = shares_of(*timeline, job.parallel.threads),
      .around = {.ranks = comm.size(),
                 .local_ranks = comm.local_size(),
                 .threads = job.parallel.threads,
                 .grains = static_cast<std::int64_t>(world.strategy->sampler().local_grains(0).size()),
                 .buckets = report.plan.buckets.size(),
                 .cores = comm.local_cores(),
                 .oversubscribed = comm.oversubscribed(),
                 .exposed = world.series.at("exposed_share").back(),
                 .skew = world.series.at("skew_share").back(),
                 .share_of_peak = share_of_peak,
                 .layer_seconds_at_peak = seconds_at_peak(report)},
      .under_way = world.series.at("under_way_seconds").back(),
      .hidden = world.series.at("hidden_seconds").back()};
  world.forget_last_turn();
  return explanation;
}

void bench_cpu_step(Communicator& comm, const Job& job, const DatasetFuture& data,
                    const StepBenchOptions& options, JobSetup world_setup) {
  agree(comm, [&] {
    if (comm.rank() == 0 && !options.trace.empty())
      require_free_output(Env::posix(), options.trace, options.force);
  });
  if (options.explain || !options.trace.empty()) {
    comm.activity().trace_with(std::make_unique<Timeline>());
    comm.activity().timeline()->thread_track();
  }
  const Job off_job = with(job, &ParallelSection::determinism, Determinism::kOff);
  Candidate world("world", job, comm, std::move(world_setup));
  Candidate off("off", off_job, comm, set_up(off_job, comm, data));
  const Network& network = world.setup.network;
  std::vector<double> peaks;
  world.turn(comm, options.steps_per_round / 4 + 1);  // warm up: pages, caches, the epoch's permutation
  off.turn(comm, options.steps_per_round / 4 + 1);
  world.forget_last_turn(), off.forget_last_turn();
  for (int round = 0; round < options.rounds; ++round) {
    comm.barrier();
    peaks.push_back(cpu::measure_fma_peak(kPeakTurnSeconds));
    comm.barrier();
    world.turn(comm, options.steps_per_round);
    off.turn(comm, options.steps_per_round);
  }
  const bool is_int16 = network.precision() == Precision::kInt16;
  double peak = median(peaks);
  if (is_int16) peak *= cpu::int16::engine_peak();
  const BenchedStep report{job, comm, network, world.setup.plan, world, off, peak};
  const std::optional<StepExplanation> explanation = explain(comm, options, world, report);
  if (comm.rank() != 0) return;
  if (options.json) return print_json(report, explanation);
  print_tables(report);
  if (explanation && options.explain)
    print("\n{}", explanation_text(explanation->shares, explanation->around));
}

}  // namespace

void bench_step(Communicator& comm, const Job& job, const DatasetFuture& data,
                const StepBenchOptions& options) {
  if (job.parallel.strategy != "data")
    throw AgreedError(
        ExitCode::kUsage,
        fmt::format("bench step measures parallel.strategy=data, and the job has {}; leave that "
                    "out, or trace a run of it with run.trace=100..110 (docs/timeline.md)",
                    job.parallel.strategy));
  const Job world = with(job, &ParallelSection::determinism, Determinism::kWorld);
  JobSetup setup = set_up(world, comm, data);
  if (setup.device.gpu != nullptr && (options.explain || !options.trace.empty()))
    throw AgreedError(ExitCode::kUsage,
                      "--explain and --trace are for steps on CPUs; on a GPU, train with run.trace=100..110 "
                      "(docs/timeline.md)");
  if (setup.device.gpu == nullptr) return bench_cpu_step(comm, world, data, options, std::move(setup));
  bench_device_step(comm, world, data, options, std::move(setup));
}

}  // namespace lockstep::bench
