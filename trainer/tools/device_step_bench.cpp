// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ways to run the same steps take turns: with and without graphs, exact or not, native or the vendor's.
#include "comm/agreement.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "models/network.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/tools/allreduce_bench.hpp"
#include "trainer/tools/step_bench.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::bench {
namespace {

/// A way, and what its turns took.
struct Candidate : BenchedWay {
  using BenchedWay::BenchedWay;

  /// Runs the next full-batch steps; their time includes the waiting for the last of them.
  void turn(std::int64_t steps) {
    const double queued = strategy->times().queueing;
    const auto start = Clock::now();
    for (std::int64_t left = steps; left > 0;) {
      const std::int64_t count = std::min({left, strategy->longest_series(), full_steps - step % full_steps});
      take(count);
      left -= count;
    }
    const double total = seconds_since(start);
    seconds.push_back(total / static_cast<double>(steps));
    queueing.push_back((strategy->times().queueing - queued) / static_cast<double>(steps));
  }

  std::vector<double> seconds, queueing;  ///< a step, in each turn
};

nlohmann::ordered_json json_of(const Candidate& candidate) {
  const double seconds = median(candidate.seconds);
  const auto samples = static_cast<double>(candidate.batch);
  return {{"way", candidate.label},
          {"seconds", seconds},
          {"host_seconds", median(candidate.queueing)},
          {"samples_per_second", samples / seconds},
          {"flops", candidate.setup.network.training_flops_per_sample() * samples / seconds}};
}

void run_comparison(std::list<Candidate>& candidates, Communicator& comm, const Job& job,
                    const DatasetFuture& data, const StepBenchOptions& options, JobSetup setup) {
  const auto add = [&](const char* label, const Job& its_job) {
    candidates.emplace_back(label, its_job, comm, set_up(its_job, comm, data));
  };
  candidates.emplace_back("native, graph", with(job, &ParallelSection::graph, GraphUse::kOn), comm,
                          std::move(setup));
  add("native, no graph", with(job, &ParallelSection::graph, GraphUse::kOff));
  add("determinism off", with(job, &ParallelSection::determinism, Determinism::kOff));
  try {
    add("vendor, graph", with(job, &ParallelSection::kernels, Kernels::kVendor));
  } catch (const AgreedError& error) {  // cuDNN may not be installed
    if (comm.rank() == 0 && !options.json) print("without vendor, graph: {}\n", error.what());
  }

  for (Candidate& candidate : candidates) {
    candidate.turn(options.steps_per_round / 4 + 3);  // loads kernels, captures
    candidate.seconds.clear(), candidate.queueing.clear();
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Candidate& candidate : candidates) {
      comm.barrier();
      candidate.turn(options.steps_per_round);
    }
  }
  if (comm.rank() != 0) return;

  const nlohmann::ordered_json ways = json_list(candidates, json_of);
  const Network& network = candidates.front().setup.network;
  const DeviceChoice& device = candidates.front().setup.device;
  if (options.json)
    return print("{}\n", json_text_in_ascii({{"format", kBenchFormat},
                                             {"bench", "step"},
                                             {"model", network.name()},
                                             {"parameters", network.parameters().size},
                                             {"flops_per_sample", network.training_flops_per_sample()},
                                             {"global_batch", candidates.front().batch},
                                             {"grain", job.parallel.grain},
                                             {"ranks", comm.size()},
                                             {"device", device.description},
                                             {"ways", ways}}));
  print("{}: {}, {:.3f} MFLOP a sample; global batch {}, grain {}\n", network.name(),
        counted(network.parameters().size, "parameter"), network.training_flops_per_sample() * 1e-6,
        candidates.front().batch, job.parallel.grain);
  print("{}, {}; {}\n\n", counted(comm.size(), "rank"), device.description, device.communication);
  print("{:<22} {:>10} {:>10} {:>14} {:>10}\n", "", "us/step", "host us", "samples/s", "GFLOP/s");
  for (const auto& way : ways) print("{}", device_way_text(way));
}

}  // namespace

std::string device_way_text(const nlohmann::ordered_json& way) {
  const auto number = [&](const char* name) { return way[name].get<double>(); };
  return fmt::format("{:<22} {:>10.2f} {:>10.2f} {:>14} {:>10.1f}\n", way["way"].get<std::string>(),
                     number("seconds") * 1e6, number("host_seconds") * 1e6,
                     with_thousands(static_cast<std::int64_t>(number("samples_per_second"))),
                     number("flops") * 1e-9);
}

void bench_device_step(Communicator& comm, const Job& job, const DatasetFuture& data,
                       const StepBenchOptions& options, JobSetup setup) {
  run_leaking_on_peer_loss(std::make_unique<std::list<Candidate>>(), [&](std::list<Candidate>& candidates) {
    run_comparison(candidates, comm, job, data, options, std::move(setup));
  });
}

}  // namespace lockstep::bench
