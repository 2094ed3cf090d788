// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The program behind launch/simulate: how a training step scales to ranks that are not there.
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "models/network.hpp"
#include "tests/scaling/options.hpp"
#include "tests/scaling/scenario.hpp"
#include "tests/support/prelude.hpp"

#include <future>
#include <iostream>

namespace lockstep {
namespace {

constexpr double kTypicalFractionOfPeak = 0.75;  // as `bucket_bytes: auto` reckons
constexpr double kPeakMeasurementSeconds = 0.2;

std::string text_of(const std::string& path) {
  const auto bytes = Env::posix().read(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Profile from arithmetic alone, or as it was measured.
StepProfile profile_of(const Network& network, const SimulationOptions& options) {
  if (options.step_file.empty()) {
    const double flops = options.gflops > 0
                             ? options.gflops * 1e9
                             : kTypicalFractionOfPeak * cpu::measure_fma_peak(kPeakMeasurementSeconds);
    return profile_step(network, options.grain, options.grains, flops);
  }
  const auto measured = read_step_table(text_of(options.step_file), options.step_file);
  auto profile = profile_step(network, options.grain, options.grains, measured.flops_per_second);
  if (measured.until_left.size() != profile.ranges.size() || measured.grains != options.grains)
    return profile;
  return with_measured(profile, measured.until_left);
}

/// Beside the measured all-reduces: what the model says of them.
void print_all_reduces(const MeasuredAllReduce& measured, const NetworkConstants& network) {
  const Cluster node{.ranks = measured.ranks, .ranks_per_node = measured.ranks, .network = network};
  print("all-reduce of {} ranks on one node, int64\n{:>10} {:>12} {:>10} {:>9}\n", measured.ranks, "bytes",
        "measured us", "model us", "model off");
  for (const LatencyPoint& point : measured.points) {
    const double model = all_reduce_seconds(ReduceKind::kTrainer, node, point.bytes / 8, 8);
    print("{:>10} {:>12.1f} {:>10.1f} {:>+7.1f} %\n", point.bytes, point.seconds * 1e6, model * 1e6,
          100 * (model / point.seconds - 1));
  }
  print("\n");
}

void print_assumptions(const Network& network, const SimulationOptions& options, const StepProfile& profile) {
  const NetworkConstants& n = options.cluster.network;
  print("{}: {} parameters, {} bytes of int64 sums; {} of {} on each rank,\n", network.name(),
        with_thousands(static_cast<std::int64_t>(network.parameters().size)),
        with_thousands(static_cast<std::int64_t>(network.parameters().size * sizeof(std::int64_t))),
        counted(options.grains, "grain"), options.grain);
  print("{:.1f} us of computing, with {:.1f} % of spread among ranks\n", profile.computing() * 1e6,
        100 * options.spread);
  print("between nodes {:.2f} us + {:.2f} us a link, {:.1f} Gbit/s; inside {:.2f} us, {:.1f} GB/s;\n",
        n.latency * 1e6, n.link_latency * 1e6, n.bandwidth * 8e-9, n.local_latency * 1e6,
        n.local_bandwidth * 1e-9);
  print("sums {:.1f} GB/s; {} ranks a node, {} nodes a switch\n\n", n.sum_bandwidth * 1e-9,
        options.cluster.ranks_per_node, options.cluster.nodes_per_leaf);
}

std::vector<Scenario> plan_all(const SimulationOptions& options, const StepProfile& profile) {
  std::vector<Scenario> scenarios;
  for (const std::string& reduce : options.reduce) {
    for (const std::string& buckets : options.buckets) {
      for (const int ranks : options.ranks)
        scenarios.push_back(
            plan_scenario(cluster_of(options, ranks), reduce_named(reduce), bucket_count(buckets), profile));
    }
  }
  return scenarios;
}

/// As many at once as there are cores.
void simulate_all(std::vector<Scenario>& scenarios, const StepProfile& profile, double spread) {
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "lockstep_simulated_step").string();
  const std::size_t lanes = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::future<void>> running;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    running.push_back(start_async([&, lane] {
      for (std::size_t i = lane; i < scenarios.size(); i += lanes)
        scenarios[i].simulated = simulate(scenarios[i], profile, spread, program);
    }));
  }
  for (auto& lane : running) lane.get();
}

int run(SimulationOptions& options) {
  const Network network = Network::load(options.model, input_shape(options), options.classes);
  const StepProfile profile = profile_of(network, options);
  if (profile.ranges.empty())
    throw UsageError(fmt::format("--model {}: it has nothing to train", options.model));
  if (!options.reduce_file.empty()) {
    const auto measured = read_allreduce_table(text_of(options.reduce_file), options.reduce_file);
    NetworkConstants& constants = options.cluster.network;
    constants = fit_local(measured, constants, network.parameters().size * sizeof(std::int64_t));
    print_all_reduces(measured, constants);
  }
  auto scenarios = plan_all(options, profile);
  print_assumptions(network, options, profile);
  if (options.model_only) {
    for (const Scenario& s : scenarios)
      print("{} ranks, {}, {}: {:.1f} us\n", s.cluster.ranks, name_of(s.kind), s.plan.describe(),
            s.model_total() * 1e6);
    return 0;
  }
  simulate_all(scenarios, profile, options.spread);
  for (const std::string& line : scaling_table(scenarios)) print("{}\n", line);
  return 0;
}

}  // namespace
}  // namespace lockstep

// NOLINTNEXTLINE(bugprone-exception-escape): outside of the try only memory can run out
int main(int argc, char** argv) {
  lockstep::open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // ulimit -f is a full disk then: the write fails, and its error is told
  CLI::App app{
      "How a training step scales: its messages simulated (SimGrid, SMPI) on a fat tree,\n"
      "beside the alpha-beta model with which 'bucket_bytes: auto' plans.\n"};
  app.name("launch/simulate");
  lockstep::SimulationOptions options;
  lockstep::add_options(app, options);
  try {
    app.parse(argc, argv);
    const int code = lockstep::run(options);
    lockstep::finish_standard_output();
    return code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    lockstep::print_error(std::string("launch/simulate: ") + error.what() + "; see 'launch/simulate --help'");
    return static_cast<int>(lockstep::ExitCode::kUsage);
  } catch (const std::exception& error) {
    const auto [code, text] = lockstep::explain(error);
    lockstep::print_error(text);
    return static_cast<int>(code);
  }
}
