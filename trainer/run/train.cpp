// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a job to a run on every rank.
#include "trainer/run/train.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/announcements.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/fault_injector.hpp"
#include "trainer/run/rank_diagnosis.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/run/stop_signal.hpp"
#include "trainer/run/training_run.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

int train(const Job& job) {
  const auto process_start = Clock::now();
  refuse_faults_unless_allowed(job);
  catch_stop_signals();
  const TimeLimit time_limit(process_start, job.run.max_seconds, allocation_end_ahead());
  hash_program_in_advance();
  const auto data = load_in_advance(job, recorded_directory(job));
  return run_on_ranks(job.parallel, [&](Communicator& comm) {
    expect_equal_ranks(comm, program_facts("train", comm) + job_facts(job));
    Job on_ranks;
    agree(comm, [&] { on_ranks = for_ranks(job, comm.size()); });
    return run_leaking_on_peer_loss(
        std::make_unique<TrainingRun>(on_ranks, comm, data, process_start, time_limit),
        [](TrainingRun& run) { return run.run(); });
  });
}

// How a training run begins: in which directory, from which checkpoint or weights, and what it says first.

void TrainingRun::open_directory() {
  agree(comm_, [&] {
    if (comm_.rank() != 0) return;
    if (!chooses_run_directory(job_)) {
      directory_.emplace(Env::posix(), job_);
      return;
    }
    const Job asked = job_;
    const auto choice = choose_run_directory(
        Env::posix(), asked, [this](const std::string& path, bool wait) { open_chosen(path, wait); });
    first_line_ = choice.line;
  });
}

/// One of several that come into question: whether this job can go on there must be known before it is taken.
void TrainingRun::open_chosen(const std::string& path, bool wait) {
  directory_.reset();
  job_.run.dir = path;
  directory_.emplace(Env::posix(), job_, wait);
  const auto checkpoint = directory_->resume_point();
  if (!checkpoint) return;
  // Copies: it is only looked at.
  const ParameterLayout& layout = setup_.network.parameters();
  std::vector<float> weights(layout.weights_size());
  OptimizerBuffers buffers(strategy_->weight_update().buffer_names(), layout.size);
  GradientUnits units = strategy_->whole_state().units;
  const auto state =
      restore(checkpoint->state, job_, setup_, strategy_->sampler(), {weights, buffers.views(), units});
  if (state.position.global_step > steps_in_run()) {
    throw ConfigError(fmt::format("it is at step {}, beyond the {} that are asked for",
                                  with_thousands(state.position.global_step),
                                  with_thousands(steps_in_run())));
  }
}

void TrainingRun::restore_or_initialise() {
  std::optional<FoundCheckpoint> checkpoint;
  agree(comm_, [&] {
    if (directory_) checkpoint = directory_->resume_point();
    if (checkpoint) {
      state_ = restore(checkpoint->state, job_, setup_, strategy_->sampler(), strategy_->whole_state());
      data_checked_ = read_data_record(checkpoint->state.facts, checkpoint->path).can_be_checked();
      nothing_left_ = nothing_left(Env::posix(), job_.run.dir, length(), whole_sha256());
    } else if (comm_.rank() == 0) {
      initialise_weights(job_, setup_.network, strategy_->whole_state().weights);
    }
    if (directory_ && !nothing_left_) {
      const bool evaluated = state_.position.step_in_epoch < steps_per_epoch_;
      directory_->open(state_.position.global_step, evaluated,
                       checkpoint ? checkpoint->state.facts.metrics : std::nullopt);
      directory_->open_trail(trail_.head(), state_.position.global_step,
                             checkpoint ? checkpoint->state.facts.trail : std::nullopt);
      trail_.write_to(*directory_);
      report_.write_to(*directory_);
      saver_.write_to(*directory_);
    }
  });
  bool resumed = checkpoint.has_value();
  comm_.broadcast(std::as_writable_bytes(std::span(&resumed, 1)), 0);
  comm_.broadcast(std::as_writable_bytes(std::span(&nothing_left_, 1)), 0);
  comm_.broadcast(std::as_writable_bytes(std::span(&state_, 1)), 0);
  if (resumed) saver_.is_saved(state_);
  first_step_ = state_.position.global_step;
  strategy_->distribute();
}

void TrainingRun::announce() {
  warn_before_run(comm_, job_, setup_.device);
  const int hosts = count_hosts(comm_);
  report_.start(first_line_, hosts);
  if (state_.position.global_step == 0) {
    report_.new_run(hosts, seconds_since(process_start_));
  } else {
    report_.resumed_run(state_.position.global_step, data_checked_, state_.arithmetic_since);
  }
  if (job_.run.trail && !keeps_trail(job_))
    report_.say_lines({"trail: none, since sums are not exact (parallel.determinism: off)"});
  if (job_.run.print_shapes) {
    shapes_.emplace(setup_.network, setup_.device, comm_);
    if (const std::string line = shapes_->devices_line(); !line.empty()) report_.say_lines({line});
  }
  if (directory_) setup_.fingerprints->start();  // the first checkpoint wants them
}

}  // namespace lockstep
