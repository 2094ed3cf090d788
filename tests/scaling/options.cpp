// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Options, and what must fit together.
#include "tests/scaling/options.hpp"

#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "tests/support/prelude.hpp"

#include <charconv>

namespace lockstep {
namespace {

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

}  // namespace

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

std::size_t bucket_count(const std::string& text) {
  if (text == "auto") return 0;
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1)
    throw UsageError(fmt::format("--buckets '{}': write auto or a number from 1 on", text));
  return count;
}

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

}  // namespace lockstep
