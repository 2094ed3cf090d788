// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loop of a training run: what it does in which order, on every rank alike.
#include "trainer/run/training_run.hpp"

#include "comm/agreement.hpp"
#include "comm/gather.hpp"
#include "common/clock.hpp"
#include "trainer/checkpoint/published_hash.hpp"
#include "trainer/config/trail_choice.hpp"
#include "trainer/config/world_batch.hpp"
#include "trainer/doctor/diagnosis.hpp"
#include "trainer/engine/evaluator.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/engine/step_failure.hpp"
#include "trainer/faults/fault_injector.hpp"
#include "trainer/ranks/leak_on_peer_loss.hpp"
#include "trainer/ranks/rank_facts.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/batch_shapes.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/finished_run.hpp"
#include "trainer/run/flight_directory.hpp"
#include "trainer/run/memory_summary.hpp"
#include "trainer/run/run_announcement.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_directory_choice.hpp"
#include "trainer/run/run_report.hpp"
#include "trainer/run/run_saver.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/starting_weights.hpp"
#include "trainer/run/stop_signal.hpp"
#include "trainer/run/time_limit.hpp"
#include "trainer/run/trail_recorder.hpp"
#include "trainer/strategies/strategy_catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// One rank's view of a run. Every rank goes through the same steps; rank 0 alone speaks and writes.
class TrainingRun {
 public:
  TrainingRun(const Job& job, Communicator& comm, const DatasetFuture& data, Clock::time_point process_start,
              const TimeLimit& time_limit)
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

  int run() {
    try {
      return run_to_the_end();
    } catch (...) {
      directory_.reset();  // A save that is under way is brought to its end, whatever happens to the rest.
      throw;
    }
  }

 private:
  int run_to_the_end();
  void open_directory();
  void open_chosen(const std::string& path, bool wait);
  void restore_or_initialise();
  void announce();
  bool steps_finished() const { return state_.position.global_step >= steps_in_run(); }
  bool epoch_finished() const;
  bool finished() const;
  bool is_due(std::int64_t every) const;
  void train_epoch();
  std::int64_t next_series() const;
  void after_series(const StepSeries& series);
  void print_shapes(std::int64_t steps);
  void print_loss(std::int64_t every);
  bool stop_wanted() const { return stop_requested() || time_limit_.reached(); }
  bool leave_evaluation() const;
  void say_why_it_stops();
  void finish_epoch();
  bool evaluate_now();
  int stop_on_request();
  int finish();
  int report_nothing_left();
  RunLength length() const;
  std::int64_t steps_in_run() const;
  std::string whole_sha256() { return weights_sha256(strategy_->whole_state().weights); }
  TrainedWeights trained_weights();

  Job job_;  ///< run.dir as it was chosen, on rank 0
  Communicator& comm_;
  Clock::time_point process_start_;
  JobSetup setup_;
  std::unique_ptr<ParallelStrategy> strategy_;
  RunReport report_;
  RunSaver saver_;
  TrailRecorder trail_;
  TimeLimit time_limit_;
  std::int64_t steps_per_epoch_;
  std::optional<BatchShapes> shapes_;      ///< where the job wants them printed
  std::optional<RunDirectory> directory_;  ///< rank 0's
  std::unique_ptr<FaultInjector> faults_;  ///< none, unless the job asks for one
  std::string first_line_;                 ///< which directory was chosen, and why
  RunState state_;
  std::optional<Evaluation> evaluation_;  ///< the last one
  std::int64_t first_step_ = 0;           ///< where this start of the run began
  bool stopping_ = false;
  bool nothing_left_ = false;
  bool data_checked_ = true;  ///< rank 0: the checkpoint says what it was trained on
};

int TrainingRun::run_to_the_end() {
  open_directory();
  restore_or_initialise();
  if (nothing_left_) return report_nothing_left();
  comm_.activity().set_device(setup_.device.description);
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
      directory_->open(state_.position.global_step, evaluated);
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

RunLength TrainingRun::length() const {
  return {.steps_per_epoch = steps_per_epoch_, .asked = steps_in_run(), .taken = state_.position.global_step};
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

}  // namespace

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

}  // namespace lockstep
