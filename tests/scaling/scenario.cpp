// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each row of the table gets a process: SimGrid simulates once in one, and has an MPI of its own.
#include "tests/scaling/scenario.hpp"

#include "comm/reduce/gradient_reducer.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"
#include "tests/scaling/step_plan.hpp"
#include "tests/support/prelude.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {

namespace {

constexpr std::size_t kBytes = sizeof(std::int64_t);

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

File unnamed_file() {
  File file(std::tmpfile());
  if (!file) throw IoError(std::string("a temporary file: ") + std::strerror(errno));
  return file;
}

std::string contents(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> bytes{};
  while (const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), file))
    text.append(bytes.data(), count);
  return text;
}

/// Standard input from and standard output to a text; standard error is ours.
std::string run(const std::string& program, const std::string& input) {
  const File in = unnamed_file(), out = unnamed_file();
  if (std::fwrite(input.data(), 1, input.size(), in.get()) != input.size() || std::fflush(in.get()) != 0)
    throw IoError(std::string("a temporary file: ") + std::strerror(errno));
  std::rewind(in.get());
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(in.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, fileno(out.get()), STDOUT_FILENO);
  std::string name = program;
  std::array<char*, 2> arguments{name.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, program.c_str(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw IoError(fmt::format("starting {}: {}", program, std::strerror(failed)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw InternalError(fmt::format("a simulation ended with {} {}; what it said stands above",
                                    WIFEXITED(status) ? "exit code" : "signal",
                                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
  }
  return contents(out.get());
}

}  // namespace

Scenario plan_scenario(const Cluster& cluster, ReduceKind kind, std::size_t buckets,
                       const StepProfile& profile) {
  std::size_t bytes = 0;
  for (const GradientRange& range : profile.ranges) bytes += range.size * kBytes;
  const auto latency = latency_of_model(kind, cluster, bytes, kBytes);
  return {
      .cluster = cluster,
      .kind = kind,
      .buckets_asked = buckets,
      .plan = plan_buckets_auto(profile.ranges, kBytes, latency, std::min(buckets, profile.ranges.size())),
      .computing = profile.computing(),
      .bound = all_reduce_bound(cluster, bytes / kBytes, kBytes),
      .simulated = {}};
}

SimulatedStep simulate(const Scenario& scenario, const StepProfile& profile, double spread,
                       const std::string& program) {
  StepPlan plan{.cluster = scenario.cluster,
                .kind = scenario.kind,
                .stretches = profile.stretches,
                .buckets = {},
                .spread = spread};
  for (const Bucket& bucket : scenario.plan.buckets) plan.buckets.push_back({bucket.size, bucket.last_range});
  plan.buckets.back().elements += std::size_t{kStepCounters} + 1;  // and the fingerprint of what was sent
  const std::string answer = run(program, to_text(plan));
  const auto json = parse_json_or_discard(answer);
  if (!json.is_object()) throw InternalError("a simulation said something else than its result: " + answer);
  return {json.value("total", 0.0), json.value("exposed", 0.0)};
}

// One walk over the layers, as Execution::backward goes.

double StepProfile::computing() const {
  double seconds = 0;
  for (const Stretch& stretch : stretches) seconds += stretch.seconds;
  return seconds;
}

StepProfile profile_step(const Network& network, int grain, int grains, double flops_per_second) {
  StepProfile profile;
  const auto seconds = [&](double flops_per_sample) { return flops_per_sample * grain / flops_per_second; };
  for (const BackwardRange& range : backward_ranges(network))
    profile.ranges.push_back({range.offset, range.size, seconds(range.flops)});
  const double all = network.training_flops_per_sample();
  double backward = 0;
  std::size_t done = 0;
  for (std::size_t i = network.layers().size(); i-- > 0;) {
    const Layer& layer = *network.layers()[i];
    if (layer.parameters().empty()) continue;
    const double flops = layer.flops_per_sample();
    const bool first = done + 1 == profile.ranges.size();  // its input gradient is not needed
    profile.stretches.push_back({seconds(flops), done++});
    if (!first) profile.stretches.push_back({seconds(flops), {}});
    backward += first ? flops : 2 * flops;
  }
  const double before = seconds(all) * (grains - 1) + seconds(all - backward);
  profile.stretches.insert(profile.stretches.begin(), {before, {}});
  return profile;
}

StepProfile with_measured(StepProfile profile, std::span<const double> done) {
  LOCKSTEP_CHECK(done.size() == profile.ranges.size() && std::ranges::is_sorted(done));
  auto first = profile.stretches.begin();
  double before = 0;
  for (std::size_t range = 0; range < done.size(); ++range) {
    auto last =
        std::find_if(first, profile.stretches.end(), [&](const Stretch& s) { return s.done == range; }) + 1;
    double reckoned = 0;
    for (auto stretch = first; stretch != last; ++stretch) reckoned += stretch->seconds;
    const double measured = done[range] - before;
    for (auto stretch = first; stretch != last; ++stretch)
      stretch->seconds =
          reckoned > 0 ? stretch->seconds * measured / reckoned : measured / double(last - first);
    if (range > 0) profile.ranges[range - 1].backward_seconds = measured;
    before = done[range];
    first = last;
  }
  return profile;
}

// Rows in fixed columns.

namespace {

std::string buckets_text(const Scenario& scenario) {
  const std::size_t count = scenario.plan.buckets.size();
  return scenario.buckets_asked == 0 ? fmt::format("auto: {}", count) : fmt::format("{}", count);
}

std::string row(const Scenario& s) {
  return fmt::format("{:>5} {:>5}  {:<9} {:>7} {:>9.1f} {:>10.1f} {:>5.1f} % {:>9.2f} {:>+7.1f} %",
                     s.cluster.ranks, s.cluster.nodes(), name_of(s.kind), buckets_text(s),
                     s.simulated.total * 1e6, s.simulated.exposed * 1e6, 100 * s.efficiency(),
                     s.simulated.exposed / s.bound, 100 * s.deviation());
}

}  // namespace

std::vector<std::string> scaling_table(std::span<const Scenario> scenarios) {
  std::vector<std::string> lines{fmt::format("{:>5} {:>5}  {:<9} {:>7} {:>9} {:>10} {:>7} {:>9} {:>9}",
                                             "ranks", "nodes", "reduce", "buckets", "step us", "exposed us",
                                             "effic.", "x bound", "model off")};
  double largest = 0, most = 0;
  for (const Scenario& scenario : scenarios) {
    lines.push_back(row(scenario));
    largest = std::max(largest, std::abs(scenario.deviation()));
    most = std::max(most, scenario.simulated.exposed / scenario.bound);
  }
  lines.push_back(
      fmt::format("the model's step is off the simulated one by at most {:.1f} %", 100 * largest));
  lines.push_back(fmt::format("at most {:.2f} times the bound of one all-reduce is exposed", most));
  return lines;
}

}  // namespace lockstep
