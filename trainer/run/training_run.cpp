// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loop of a training run: what it does in which order, on every rank alike.
#include "trainer/run/training_run.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "trainer/checkpoint/published_hash.hpp"
#include "trainer/config/job.hpp"
#include "trainer/engine/step_trial.hpp"
#include "trainer/run/announcements.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/stop_signal.hpp"
#include "trainer/strategies/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace lockstep {

TrainingRun::TrainingRun(const Job& job, Communicator& comm, const DatasetFuture& data,
                         Clock::time_point process_start, const TimeLimit& time_limit)
    : job_(job),
      comm_(comm),
      process_start_(process_start),
      setup_(set_up(job, comm, data, find_strategy(job).setup)),
      strategy_(find_strategy(job).make(job, setup_, comm)),
      report_(job_, setup_, *strategy_, comm),
      saver_(job_, setup_, comm, *strategy_),
      trail_(job_, setup_, *strategy_),
      time_limit_(time_limit),
      steps_per_epoch_(strategy_->sampler().steps_per_epoch()) {
  saver_.call_before_each([this] { trail_.flush(); });
}

int TrainingRun::run() {
  try {
    return run_to_the_end();
  } catch (...) {
    directory_.reset();  // A save that is under way is brought to its end, whatever happens to the rest.
    throw;
  }
}

int TrainingRun::run_to_the_end() {
  open_directory();
  restore_or_initialise();
  if (nothing_left_) return report_nothing_left();
  comm_.activity().set_device(setup_.device.description);
  comm_.activity().set_restart_advice(restart_advice(job_, comm_.size()));
  open_flight_record(comm_, job_.run.dir);
  if (job_.inject.is_given() && directory_) setup_.fingerprints->get();  // of the data before the fault
  if (job_.inject.is_given())
    faults_ = std::make_unique<FaultInjector>(job_, job_.run.dir, comm_, *strategy_);
  announce();
  while (!finished()) {
    train_epoch();
    if (!stopping_ && epoch_finished()) finish_epoch();
    if (stopping_) return stop_on_request();
  }
  return finish();
}

RunLength TrainingRun::length() const {
  return {.steps_per_epoch = steps_per_epoch_, .asked = steps_in_run(), .taken = state_.position.global_step};
}

std::string TrainingRun::whole_sha256() {
  return weights_sha256(strategy_->whole_state().weights);
}

std::int64_t TrainingRun::steps_in_run() const {
  return steps_asked(job_, steps_per_epoch_);
}

bool TrainingRun::epoch_finished() const {
  return state_.position.step_in_epoch == steps_per_epoch_;
}

bool TrainingRun::finished() const {
  return steps_finished() && !epoch_finished();
}

void TrainingRun::train_epoch() {
  report_.start_epoch(state_, length());
  while (!epoch_finished() && !steps_finished() && !stopping_) {
    if (faults_) faults_->before_series(state_.position.global_step);
    comm_.activity().begin_step(state_.position.global_step + 1);
    after_series(strategy_->run(state_.position, next_series(), stop_wanted()));
  }
  report_.end_epoch();
}

/// How many steps to go to whatever comes first: the end of the epoch or run, or something that is due.
std::int64_t TrainingRun::next_series() const {
  const auto step = state_.position.global_step;
  std::int64_t count = std::min(
      {strategy_->longest_series(), steps_per_epoch_ - state_.position.step_in_epoch, steps_in_run() - step});
  if (const std::int64_t every = job_.run.print_loss_every_steps; every > 0)
    count = std::min(count, every - state_.position.step_in_epoch % every);
  for (const std::int64_t every : {job_.run.log_every_steps, job_.run.checkpoint_every_steps,
                                   job_.parallel.check_replicas_every_steps}) {
    if (every > 0) count = std::min(count, every - step % every);
  }
  if (faults_) count = faults_->series_from(step, count);
  LOCKSTEP_CHECK(count > 0);  // or the epoch would never end
  return count;
}

void TrainingRun::after_series(const StepSeries& series) {
  LOCKSTEP_CHECK(series.steps > 0 || series.failure);
  state_.add(series);
  const auto step = state_.position.global_step;
  trail_.add(series, step);
  if (series.failure) {
    trail_.flush();
    strategy_->collect();
    const std::string what =
        comm_.rank() == 0 ? describe_failure(*series.failure, series.last.samples, step + 1,
                                             setup_.network.parameters(), strategy_->whole_state().weights)
                          : "";
    throw AgreedError(ExitCode::kInternal, what, 0);
  }
  report_.steps(series);
  if (shapes_) print_shapes(series.steps);
  if (const auto every = job_.run.print_loss_every_steps; every > 0) print_loss(every);
  if (is_due(job_.run.log_every_steps)) report_.log_step(state_, series.last);
  if (is_due(job_.parallel.check_replicas_every_steps)) strategy_->check_copies(step);
  stopping_ = series.last.stop_requested && !steps_finished();
  if (stopping_) say_why_it_stops();
  if (epoch_finished()) return;  // what is due now comes after the evaluation
  // The last one comes after its evaluation, too, and carries what was measured on it.
  if (is_due(job_.run.checkpoint_every_steps) && !stopping_ && !steps_finished()) saver_.save(state_);
}

/// Of the steps just taken.
void TrainingRun::print_shapes(std::int64_t steps) {
  for (std::int64_t step = state_.position.step_in_epoch - steps; step < state_.position.step_in_epoch;
       ++step)
    report_.say_lines(shapes_->lines(strategy_->sampler(), step));
}

/// Whole windows only: after a resume from a checkpoint that has none, the first would be short.
void TrainingRun::print_loss(std::int64_t every) {
  if (state_.position.step_in_epoch % every != 0) return;
  if (state_.unprinted.steps == every) report_.mean_loss(state_);
  state_.unprinted = {};
}

void TrainingRun::say_why_it_stops() {
  using Reason = RunReport::StopReason;
  const Reason otherwise = time_limit_.reached() ? Reason::kTimeLimit : Reason::kOtherRank;
  report_.stopping(stop_requested() ? Reason::kSignal : otherwise);
}

bool TrainingRun::stop_wanted() const {
  return stop_requested() || time_limit_.reached();
}

bool TrainingRun::is_due(std::int64_t every) const {
  return every > 0 && state_.position.global_step % every == 0;
}

void TrainingRun::finish_epoch() {
  if (!evaluate_now()) return;
  report_.evaluated(state_, *evaluation_);
  state_.start_next_epoch();
  if (is_due(job_.run.checkpoint_every_steps) || saver_.is_best(state_)) saver_.save(state_);
}

/// A signal ends an evaluation: the run is saved as it was before, and starts with the evaluation when it
/// goes on. The time limit does so only after a step, so that every start gets further; and not at the end of
/// the run.
bool TrainingRun::leave_evaluation() const {
  const bool got_further = state_.position.global_step > first_step_;
  return stop_requested() || (got_further && !steps_finished() && time_limit_.reached());
}

/// False if it was left, on all ranks: then the run is stopping.
bool TrainingRun::evaluate_now() {
  saver_.require_finite_weights(state_);
  const InPhase phase(comm_.activity(), Phase::kEvaluating);
  const Evaluation evaluation = strategy_->evaluate([this] { return leave_evaluation(); });
  stopping_ = evaluation.interrupted;
  if (stopping_) {
    say_why_it_stops();
    return false;
  }
  evaluation_ = evaluation;
  state_.test_accuracy = evaluation.accuracy();
  state_.evaluated_step = state_.position.global_step;
  return true;
}

int TrainingRun::stop_on_request() {
  saver_.save(state_);
  saver_.wait_until_saved("stopped on request");
  report_.stopped(length());
  return static_cast<int>(ExitCode::kSavedOnRequest);
}

int TrainingRun::report_nothing_left() {
  if (directory_) report_.nothing_left(length(), trained_weights());
  return 0;
}

TrainedWeights TrainingRun::trained_weights() {
  const auto facts = checkpoint_facts(state_, job_, setup_, comm_, strategy_->whole_state().units);
  const std::string digest = whole_sha256();
  return {.sha256 = digest, .published = compare_with_published(facts, digest)};
}

int TrainingRun::finish() {
  if (comm_.watch() != nullptr) comm_.watch()->report_now();
  const bool evaluated = evaluation_ && state_.position.step_in_epoch == 0;
  if (!evaluated && !evaluate_now()) return stop_on_request();
  strategy_->check_copies(state_.position.global_step);
  saver_.save(state_);
  saver_.wait_until_saved("the run ended");
  report_.summary(memory_summary(comm_, setup_.device));
  const StrategySummary of_strategy = strategy_->summary();
  report_.summary(of_strategy.lines);
  if (comm_.watch() != nullptr) report_.ranks(comm_.watch()->scores(), state_.position.global_step);
  if (directory_) report_.done(state_, *evaluation_, of_strategy, trained_weights());
  return 0;
}

}  // namespace lockstep
