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
#include "tests/scaling/scenario.hpp"
#include "tests/support/prelude.hpp"

#include <CLI/CLI.hpp>

#include <charconv>
#include <future>
#include <iostream>

namespace lockstep {
namespace {

struct SimulationOptions {
  std::string model = "net";
  std::string input = "1x28x28";
  int classes = 10;
  int grain = 32;
  int grains = 1;  ///< per rank
  std::int64_t samples = 60'000;
  double spread = 0;  ///< standard deviation of the ranks' computing, as a share of it
  std::vector<int> ranks{8, 64, 1024};
  std::vector<std::string> buckets{"auto", "1", "4"};
  std::vector<std::string> reduce{"trainer", "leaders"};
  Cluster cluster;          ///< but for the ranks
  double gflops = 0;        ///< a rank's, while it computes; 0: 75 % of this core's peak
  std::string step_file;    ///< output of bench step; empty: none
  std::string reduce_file;  ///< output of bench allreduce; empty: none
  bool model_only = false;  ///< simulates nothing
};

constexpr int kMostRanks = 4096;

/// In place of CLI::PositiveNumber, whose message prints the largest double there is.
std::string above_zero(const std::string& text) {
  double value = 0;
  const bool is_number = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
  return is_number && value > 0 ? "" : fmt::format("'{}' is not a number above 0", text);
}

/// A number given in a unit of people.
void add_scaled(CLI::App& app, const std::string& name, double& value, double unit, const std::string& what) {
  app.add_option_function<double>(
         name, [&value, unit](const double& given) { value = given * unit; },
         fmt::format("{} [{:.4g}]", what, value / unit))
      ->check(above_zero);
}

/// Microseconds and Gbit/s on the command line are seconds and bytes a second afterwards.
void add_options(CLI::App& app, SimulationOptions& o) {
  constexpr double kMicrosecond = 1e-6, kGbit = 1e9 / 8, kGigabyte = 1e9;
  NetworkConstants& network = o.cluster.network;
  app.add_option("--model", o.model, "net, lenet, ... or a YAML network")->capture_default_str();
  app.add_option("--input", o.input, "Its input: channels x height x width")->capture_default_str();
  app.add_option("--classes", o.classes, "And classes")->check(CLI::Range(2, 256))->capture_default_str();
  app.add_option("--ranks", o.ranks, "How many, one row each: 8,64,1024")
      ->delimiter(',')
      ->check(CLI::Range(2, kMostRanks));
  app.add_option("--buckets", o.buckets, "auto or a number, one row each: auto,1,4")->delimiter(',');
  app.add_option("--all-reduce", o.reduce, "trainer, far-first, leaders; one row each: trainer,leaders")
      ->delimiter(',');
  app.add_option("--grain", o.grain, "Samples of a grain")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--grains", o.grains, "Grains of each rank in a step")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--samples", o.samples, "Of the training set: a global batch has no more")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  app.add_option_function<double>(
         "--spread", [&o](const double& percent) { o.spread = percent / 100; },
         "Standard deviation of the ranks' computing, per cent [0]")
      ->check(CLI::Range(0.0, 30.0));
  app.add_option("--ranks-per-node", o.cluster.ranks_per_node, "Ranks of a node")
      ->check(CLI::Range(1, kMostRanks))
      ->capture_default_str();
  app.add_option("--nodes-per-switch", o.cluster.nodes_per_leaf,
                 "Nodes under a switch of the lower level; as many switches stand above")
      ->check(CLI::Range(1, kMostRanks))
      ->capture_default_str();
  add_scaled(app, "--latency-us", network.latency, kMicrosecond, "A message between nodes, microseconds");
  add_scaled(app, "--link-us", network.link_latency, kMicrosecond, "More for each link on its way");
  add_scaled(app, "--gbit", network.bandwidth, kGbit, "A link, in each direction, Gbit/s");
  add_scaled(app, "--local-latency-us", network.local_latency, kMicrosecond,
             "A message inside a node, microseconds");
  add_scaled(app, "--local-gb", network.local_bandwidth, kGigabyte, "Two ranks of a node, GB/s");
  add_scaled(app, "--sum-gb", network.sum_bandwidth, kGigabyte, "Adding up, GB/s");
  app.add_option("--gflops", o.gflops,
                 "What a rank computes in a second, in 10^9 operations; default: 75 % of this core's peak")
      ->check(above_zero);
  app.add_option("--step", o.step_file,
                 "In place of --gflops: what 'lockstep bench step' printed; with parallel.bucket_bytes=8 it "
                 "also tells when "
                 "the gradients of each layer are there");
  app.add_option("--allreduce", o.reduce_file,
                 "What 'mpirun -np N lockstep bench allreduce' printed: gives the constants inside a node");
  app.add_flag("--model-only", o.model_only, "Simulate nothing: print what the model says");
}

ImageShape input_shape(const SimulationOptions& options) {
  ImageShape shape;
  const char* at = options.input.data();
  const char* const end = at + options.input.size();
  for (int* size : {&shape.channels, &shape.height, &shape.width}) {
    if (size != &shape.channels && at != end && *at == 'x') ++at;
    at = std::from_chars(at, end, *size).ptr;
  }
  if (at != end || shape.channels < 1 || shape.height < 1 || shape.width < 1)
    throw UsageError(fmt::format("--input '{}': write channels, height and width as 1x28x28", options.input));
  return shape;
}

/// 0 for auto.
std::size_t bucket_count(const std::string& text) {
  if (text == "auto") return 0;
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1)
    throw UsageError(fmt::format("--buckets '{}': write auto or a number from 1 on", text));
  return count;
}

/// The cluster with so many ranks.
Cluster cluster_of(const SimulationOptions& options, int ranks) {
  Cluster cluster = options.cluster;
  cluster.ranks = ranks;
  cluster.ranks_per_node = std::min(cluster.ranks_per_node, ranks);
  const std::int64_t batch = std::int64_t{ranks} * options.grains * options.grain;
  if (batch > options.samples) {
    throw UsageError(fmt::format(
        "--ranks {} with {} of {} each: a global batch of {}, and no set of {} has so many; give a smaller "
        "--grain, fewer --grains, or more --samples",
        ranks, counted(options.grains, "grain"), options.grain, with_thousands(batch),
        with_thousands(options.samples)));
  }
  return cluster;
}

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
