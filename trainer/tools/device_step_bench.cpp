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
#include "trainer/setup/strategies.hpp"
#include "trainer/tools/allreduce_bench.hpp"
#include "trainer/tools/step_bench.hpp"
#include "trainer/training/data_parallel.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::bench {
namespace {

/// One way to run the job's steps, and what its turns took.
class Candidate {
 public:
  Candidate(std::string label, Job job, Communicator& comm, JobSetup setup)
      : label_(std::move(label)),
        job_(std::move(job)),
        setup_(std::move(setup)),
        strategy_(make_data_parallel(setup_, comm)) {
    check_ranks(*strategy_, setup_, comm);
    setup_.network.initialise(job_.train.seed, strategy_->whole_state().weights, job_.train.initial_scale);
    strategy_->distribute();
    const DistributedSampler& sampler = strategy_->sampler();
    const std::int64_t steps = sampler.steps_per_epoch();
    full_steps_ = steps - (sampler.batch_samples(steps - 1) < sampler.batch_samples(0) ? 1 : 0);
  }

  /// Runs the next full-batch steps; their time includes the waiting for the last of them.
  void turn(std::int64_t steps) {
    const double queued = strategy_->times().queueing;
    const auto start = Clock::now();
    for (std::int64_t left = steps; left > 0;) {
      const std::int64_t in_epoch = step_ % full_steps_;
      const std::int64_t count = std::min({left, strategy_->longest_series(), full_steps_ - in_epoch});
      strategy_->run({step_ / full_steps_, in_epoch, step_}, count, false);
      step_ += count;
      left -= count;
    }
    const double total = seconds_since(start);
    seconds_.push_back(total / static_cast<double>(steps));
    queueing_.push_back((strategy_->times().queueing - queued) / static_cast<double>(steps));
  }

  void forget_turns() {
    seconds_.clear();
    queueing_.clear();
  }

  void print() const {
    const double seconds = median(seconds_);
    const double samples = static_cast<double>(strategy_->sampler().batch_samples(0));
    lockstep::print("{:<22} {:>10.2f} {:>10.2f} {:>14} {:>10.1f}\n", label_, seconds * 1e6,
                    median(queueing_) * 1e6, with_thousands(static_cast<std::int64_t>(samples / seconds)),
                    setup_.network.training_flops_per_sample() * samples / seconds * 1e-9);
  }

  nlohmann::ordered_json json() const {
    const double seconds = median(seconds_);
    const double samples = static_cast<double>(strategy_->sampler().batch_samples(0));
    return {{"way", label_},
            {"seconds", seconds},
            {"host_seconds", median(queueing_)},
            {"samples_per_second", samples / seconds},
            {"flops", setup_.network.training_flops_per_sample() * samples / seconds}};
  }

  const JobSetup& setup() const { return setup_; }

 private:
  std::string label_;
  Job job_;
  JobSetup setup_;
  std::unique_ptr<ParallelStrategy> strategy_;
  std::int64_t full_steps_ = 0, step_ = 0;
  std::vector<double> seconds_, queueing_;
};

/// The job with one key changed.
template <class Section, typename Value>
Job with(Job job, Value Section::*key, Value value) {
  job.parallel.*key = value;
  return job;
}

/// A way that may not be there (cuDNN is not installed): then it is left out, with the reason.
void add_if_possible(std::list<Candidate>& candidates, const std::string& label, const Job& job,
                     Communicator& comm, const DatasetFuture& data, bool quiet) {
  try {
    candidates.emplace_back(label, job, comm, set_up(job, comm, data));
  } catch (const AgreedError& error) {
    if (comm.rank() == 0 && !quiet) lockstep::print("without {}: {}\n", label, error.what());
  }
}

void print_json(const std::list<Candidate>& candidates, const Communicator& comm, const Job& job) {
  const JobSetup& first = candidates.front().setup();
  nlohmann::ordered_json ways = nlohmann::ordered_json::array();
  for (const Candidate& candidate : candidates) ways.push_back(candidate.json());
  const nlohmann::ordered_json object = {{"format", kBenchFormat},
                                         {"bench", "step"},
                                         {"model", first.network.name()},
                                         {"parameters", first.network.parameters().size},
                                         {"flops_per_sample", first.network.training_flops_per_sample()},
                                         {"global_batch", job.data.global_batch},
                                         {"grain", job.parallel.grain},
                                         {"ranks", comm.size()},
                                         {"device", first.device.description},
                                         {"ways", ways}};
  lockstep::print("{}\n", json_text_in_ascii(object));
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
  add_if_possible(candidates, "vendor, graph", with(job, &ParallelSection::kernels, Kernels::kVendor), comm,
                  data, options.json);

  for (Candidate& candidate : candidates) {
    candidate.turn(options.steps_per_round / 4 + 3);  // loads kernels, captures
    candidate.forget_turns();
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Candidate& candidate : candidates) {
      comm.barrier();
      candidate.turn(options.steps_per_round);
    }
  }
  if (comm.rank() != 0) return;

  const JobSetup& first = candidates.front().setup();
  if (options.json) return print_json(candidates, comm, job);
  lockstep::print("{}: {}, {:.3f} MFLOP a sample; global batch {}, grain {}\n", first.network.name(),
                  counted(first.network.parameters().size, "parameter"),
                  first.network.training_flops_per_sample() * 1e-6, job.data.global_batch,
                  job.parallel.grain);
  lockstep::print("{}, {}; {}\n\n", counted(comm.size(), "rank"), first.device.description,
                  first.device.communication);
  lockstep::print("{:<22} {:>10} {:>10} {:>14} {:>10}\n", "", "us/step", "host us", "samples/s", "GFLOP/s");
  for (const Candidate& candidate : candidates) candidate.print();
}

}  // namespace

void bench_device_step(Communicator& comm, const Job& job, const DatasetFuture& data,
                       const StepBenchOptions& options, JobSetup setup) {
  run_leaking_on_peer_loss(std::make_unique<std::list<Candidate>>(), [&](std::list<Candidate>& candidates) {
    run_comparison(candidates, comm, job, data, options, std::move(setup));
  });
}

}  // namespace lockstep::bench
