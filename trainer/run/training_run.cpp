// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/run/training_run.hpp"

#include "comm/agreement.hpp"
#include "trainer/engine/evaluator.hpp"
#include "trainer/engine/job_setup.hpp"
#include "trainer/engine/step_engine.hpp"
#include "trainer/engine/step_failure.hpp"
#include "trainer/ranks/launched_rank.hpp"
#include "trainer/ranks/leak_on_peer_loss.hpp"
#include "trainer/ranks/rank_facts.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/ranks/replicas.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/finished_run.hpp"
#include "trainer/run/progress.hpp"
#include "trainer/run/run_announcement.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_directory_choice.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/starting_weights.hpp"
#include "trainer/run/stop_signal.hpp"
#include "trainer/run/time_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One rank's view of a run. Every rank goes through the same steps; rank 0 alone speaks and writes.
class TrainingRun {
 public:
  TrainingRun(const Job& job, Communicator& comm, const DatasetFuture& data, Clock::time_point process_start,
              const TimeLimit& time_limit)
      : job_(job),
        comm_(comm),
        process_start_(process_start),
        setup_(set_up(job, comm, data)),
        engine_(make_step_engine(job, setup_, comm)),
        progress_(Progress::for_rank(comm.rank())),
        time_limit_(time_limit),
        steps_per_epoch_(engine_->sampler().steps_per_epoch()) {}

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
  void say(const std::string& line);
  void say(const std::vector<Field>& fields);
  bool steps_finished() const { return state_.position.global_step >= steps_in_run(); }
  bool epoch_finished() const;
  bool finished() const;
  bool is_due(std::int64_t every) const;
  void train_epoch();
  std::int64_t next_series() const;
  void after_series(const StepSeries& series);
  void check_replicas_now();
  void log_step(const StepTotals& totals);
  double last_learning_rate() const;
  bool stop_wanted() const { return stop_requested() || time_limit_.reached(); }
  bool leave_evaluation() const;
  void say_why_it_stops();
  void finish_epoch();
  bool evaluate_now();
  bool is_best() const;
  void save();
  void wait_until_saved(const char* what_ends);
  int stop_on_request();
  int finish();
  int report_nothing_left();
  RunLength length() const;
  std::int64_t steps_in_run() const;

  Job job_;  ///< run.dir as it was chosen, on rank 0
  Communicator& comm_;
  Clock::time_point process_start_;
  JobSetup setup_;
  std::unique_ptr<StepEngine> engine_;
  Progress progress_;
  TimeLimit time_limit_;
  std::int64_t steps_per_epoch_;
  std::optional<RunDirectory> directory_;  ///< rank 0's
  std::string first_line_;                 ///< which directory was chosen, and why
  RunState state_;
  std::optional<Evaluation> evaluation_;  ///< the last one
  Clock::time_point run_start_, epoch_start_;
  std::int64_t epoch_start_samples_ = 0;
  std::int64_t first_step_ = 0;   ///< where this start of the run began
  std::int64_t saved_step_ = -1;  ///< of the checkpoint that is saved, or being saved
  bool saved_evaluated_ = false;  ///< and whether it holds the evaluation of that step
  bool stopping_ = false;
  bool nothing_left_ = false;
  bool data_checked_ = true;  ///< rank 0: the checkpoint says what it was trained on
};

int TrainingRun::run_to_the_end() {
  open_directory();
  restore_or_initialise();
  if (nothing_left_) return report_nothing_left();
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
  const std::size_t parameters = engine_->weights().size();
  std::vector<float> weights(parameters);
  OptimizerBuffers buffers(engine_->weight_update().buffer_names(), parameters);
  GradientUnits units = engine_->gradient_units();
  const auto state =
      restore(checkpoint->state, job_, setup_, engine_->sampler(), {weights, buffers.views(), units});
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
      state_ = restore(checkpoint->state, job_, setup_, engine_->sampler(), trained_state(*engine_));
      saved_step_ = state_.position.global_step;
      saved_evaluated_ = state_.is_evaluated();
      data_checked_ = read_data_record(checkpoint->state.facts, checkpoint->path).can_be_checked();
      nothing_left_ = nothing_left(Env::posix(), job_.run.dir, length(), weights_sha256(engine_->weights()));
    } else {
      initialise_weights(job_, setup_.network, engine_->weights());
    }
    if (directory_ && !nothing_left_) {
      const bool evaluated = state_.position.step_in_epoch < steps_per_epoch_;
      directory_->open(state_.position.global_step, evaluated);
    }
  });
  comm_.broadcast(std::as_writable_bytes(std::span(&nothing_left_, 1)), 0);
  comm_.broadcast(std::as_writable_bytes(std::span(&state_, 1)), 0);
  first_step_ = state_.position.global_step;
  comm_.broadcast(std::as_writable_bytes(engine_->weights()), 0);
  for (const OptimizerBufferView& buffer : engine_->optimizer_buffers())
    comm_.broadcast(std::as_writable_bytes(buffer.values), 0);
  broadcast(comm_, engine_->gradient_units());
  engine_->commit_state();
}

/// To the person who watches, and to the log.
void TrainingRun::say(const std::string& line) {
  progress_.say(line);
  directory_->log(line);
}

void TrainingRun::say(const std::vector<Field>& fields) {
  progress_.say(fields);
  directory_->log(join(fields));
}

void TrainingRun::announce() {
  const int hosts = count_hosts(comm_);
  run_start_ = Clock::now();
  if (!directory_) return;
  if (!first_line_.empty()) say(first_line_);
  for (const auto& line : announcement(job_, setup_, comm_, hosts, engine_->weight_update())) say(line);
  if (state_.position.global_step == 0) {
    auto event = start_event(job_, setup_, comm_, hosts, engine_->weight_update());
    event["setup_seconds"] = seconds_since(process_start_);
    directory_->write(event);
  } else {
    say(fmt::format("going on from step {} in {}", with_thousands(state_.position.global_step),
                    job_.run.dir));
    if (!data_checked_)
      say("its checkpoint does not say which data it was trained on: they were not compared");
  }
  setup_.fingerprints->start();  // the first checkpoint wants them
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
  progress_.start_epoch(state_.position.epoch + 1, job_.train.epochs, state_.position.step_in_epoch,
                        steps_per_epoch_, steps_in_run() - state_.position.global_step);
  epoch_start_ = Clock::now();
  epoch_start_samples_ = state_.epoch_samples;
  while (!epoch_finished() && !steps_finished() && !stopping_) {
    after_series(engine_->run(state_.position, next_series(), stop_wanted()));
  }
  progress_.end_epoch();
}

/// How many steps to go to whatever comes first: the end of the epoch or run, or something that is due.
std::int64_t TrainingRun::next_series() const {
  const auto step = state_.position.global_step;
  std::int64_t count = std::min(
      {engine_->longest_series(), steps_per_epoch_ - state_.position.step_in_epoch, steps_in_run() - step});
  for (const std::int64_t every : {job_.run.log_every_steps, job_.run.checkpoint_every_steps,
                                   job_.parallel.check_replicas_every_steps}) {
    if (every > 0) count = std::min(count, every - step % every);
  }
  LOCKSTEP_CHECK(count > 0);  // or the epoch would never end
  return count;
}

void TrainingRun::after_series(const StepSeries& series) {
  LOCKSTEP_CHECK(series.steps > 0 || series.failure);
  state_.add(series);
  const auto step = state_.position.global_step;
  if (series.failure) {
    engine_->fetch_state();
    throw AgreedError(ExitCode::kInternal,
                      describe_failure(*series.failure, series.last.samples, step + 1,
                                       setup_.network.parameters(), engine_->weights()),
                      0);
  }
  progress_.steps(series.steps, series.samples,
                  series.last.loss() / static_cast<double>(series.last.samples));
  if (is_due(job_.run.log_every_steps)) log_step(series.last);
  if (is_due(job_.parallel.check_replicas_every_steps)) check_replicas_now();
  stopping_ = series.last.stop_requested && !steps_finished();
  if (stopping_) say_why_it_stops();
  if (epoch_finished()) return;  // what is due now comes after the evaluation
  // The last one comes after its evaluation, too, and carries what was measured on it.
  if (is_due(job_.run.checkpoint_every_steps) && !stopping_ && !steps_finished()) save();
}

/// Of a signal to this rank its handler has spoken at once.
void TrainingRun::say_why_it_stops() {
  if (!directory_) return;
  if (stop_requested()) {
    directory_->log(fmt::format("{} received: stopping", stop_signal_name(stop_signal())));
  } else {
    say(time_limit_.reached()
            ? "the time is up (run.max_seconds, or the end of the allocation): stopping after this step"
            : "another rank was told to stop: stopping after this step");
  }
}

void TrainingRun::check_replicas_now() {
  engine_->fetch_state();
  expect_equal_replicas(comm_, setup_.network.parameters(), engine_->weights(), state_.position.global_step);
}

bool TrainingRun::is_due(std::int64_t every) const {
  return every > 0 && state_.position.global_step % every == 0;
}

void TrainingRun::log_step(const StepTotals& totals) {
  if (!directory_) return;
  const double rate =
      static_cast<double>(state_.epoch_samples - epoch_start_samples_) / seconds_since(epoch_start_);
  directory_->write({{"event", "step"},
                     {"epoch", state_.position.epoch + 1},
                     {"step", state_.position.global_step},
                     {"loss", totals.loss() / static_cast<double>(totals.samples)},
                     {"learning_rate", last_learning_rate()},
                     {"samples_per_second", rate}});
}

/// Of the step taken last.
double TrainingRun::last_learning_rate() const {
  return engine_->weight_update().learning_rate(state_.position.global_step - 1);
}

void TrainingRun::finish_epoch() {
  const double seconds = seconds_since(epoch_start_);
  if (!evaluate_now()) return;
  if (directory_) {
    const double train_loss = state_.epoch_loss() / static_cast<double>(state_.epoch_samples);
    const auto rate = static_cast<double>(state_.epoch_samples - epoch_start_samples_) / seconds;
    directory_->write({{"event", "epoch"},
                       {"epoch", state_.position.epoch + 1},
                       {"step", state_.position.global_step},
                       {"train_loss", train_loss},
                       {"train_samples", state_.epoch_samples},
                       {"train_seconds", seconds},
                       {"learning_rate", last_learning_rate()},
                       {"test_loss", evaluation_->loss},  // null if not finite
                       {"test_accuracy", evaluation_->accuracy()},
                       {"test_samples", evaluation_->samples}});
    say(epoch_fields({.epoch = state_.position.epoch + 1,
                      .epochs = job_.train.epochs,
                      .train_loss = train_loss,
                      .test_loss = describe_loss(*evaluation_),
                      .test_accuracy = evaluation_->accuracy(),
                      .seconds = seconds,
                      .samples_per_second = rate}));
  }
  state_.start_next_epoch();
  if (is_due(job_.run.checkpoint_every_steps) || is_best()) save();
}

/// The weights that are best are those that were evaluated: they are saved now, in the background, or they
/// are gone.
bool TrainingRun::is_best() const {
  return job_.run.keep.best && directory_ && directory_->would_be_best(state_.test_accuracy);
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
  const Evaluation evaluation = engine_->evaluate([this] { return leave_evaluation(); });
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

void TrainingRun::save() {
  const bool saved = saved_step_ == state_.position.global_step && saved_evaluated_ == state_.is_evaluated();
  if (!directory_ || saved) return;
  engine_->fetch_state();
  directory_->save(snapshot(state_, job_, setup_, comm_, trained_state(*engine_)));
  saved_step_ = state_.position.global_step;
  saved_evaluated_ = state_.is_evaluated();
}

/// Returns when the last save is safely on disk. Ranks other than 0 hear of it every second, so that a slow
/// disk is not taken for a lost rank. @throws AgreedError if it is not: then this is no end of a run
void TrainingRun::wait_until_saved(const char* what_ends) {
  const auto pulse = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::min<std::chrono::duration<double>>(std::chrono::seconds(1), comm_.timeout() / 4));
  for (char saved = 0; saved == 0;) {
    saved = directory_ && directory_->finished_within(pulse) ? 1 : 0;
    comm_.broadcast(std::as_writable_bytes(std::span(&saved, 1)), 0);
  }
  agree(comm_, [&] {
    if (!directory_) return;
    try {
      directory_->finish();
    } catch (const IoError& error) {
      throw IoError(fmt::format(
          "{} at step {}, but that step is not saved: {}; the same command goes on from the newest "
          "checkpoint in {}, if there is one",
          what_ends, with_thousands(state_.position.global_step), error.what(), job_.run.dir));
    }
  });
}

int TrainingRun::stop_on_request() {
  save();
  wait_until_saved("stopped on request");
  if (directory_) {
    say(fmt::format("stopped on request at step {} of {}, saved in {}; run the same command to go on",
                    with_thousands(state_.position.global_step), with_thousands(steps_in_run()),
                    job_.run.dir));
  }
  return static_cast<int>(ExitCode::kSavedOnRequest);
}

int TrainingRun::report_nothing_left() {
  if (!directory_) return 0;
  progress_.say(nothing_left_text(job_, length()));
  progress_.say("weights sha256 " + weights_sha256(engine_->weights()));
  return 0;
}

int TrainingRun::finish() {
  const bool evaluated = evaluation_ && state_.position.step_in_epoch == 0;
  if (!evaluated && !evaluate_now()) return stop_on_request();
  check_replicas_now();
  save();
  wait_until_saved("the run ended");
  if (!directory_) return 0;
  const auto digest = weights_sha256(engine_->weights());
  directory_->write_durably({{"event", "end"},
                             {"step", state_.position.global_step},
                             {"seconds", seconds_since(run_start_)},
                             {"test_loss", evaluation_->loss},  // null if not finite
                             {"test_accuracy", evaluation_->accuracy()},
                             {"test_samples", evaluation_->samples},
                             {"weights_sha256", digest}});
  say(fmt::format("done: {} steps in {}, accuracy {:.2f} % of {} test samples, run directory {}",
                  with_thousands(state_.position.global_step), format_duration(seconds_since(run_start_)),
                  100 * evaluation_->accuracy(), with_thousands(evaluation_->samples), job_.run.dir));
  say("weights sha256 " + digest);
  return 0;
}

/// The end of the Slurm allocation, unless it has passed: then the variable was left by another job, or the
/// administrator lets jobs overrun, and it says nothing.
std::optional<std::int64_t> allocation_end() {
  const auto end = slurm_allocation_end();
  if (!end || !has_passed(*end)) return end;
  if (speaks_for_all()) {
    print_error(
        fmt::format("warning: SLURM_JOB_END_TIME={} is in the past: ignored; unset it, or set "
                    "run.max_seconds for a limit",
                    *end));
  }
  return std::nullopt;
}

}  // namespace

int train(const Job& job) {
  const auto process_start = Clock::now();
  catch_stop_signals();
  const TimeLimit time_limit(process_start, job.run.max_seconds, allocation_end());
  hash_program_in_advance();
  const auto data = load_in_advance(job, recorded_directory(job));
  return run_on_ranks(job.parallel, [&](Communicator& comm) {
    expect_equal_ranks(comm, program_facts("train", comm) + job_facts(job));
    return run_leaking_on_peer_loss(std::make_unique<TrainingRun>(job, comm, data, process_start, time_limit),
                                    [](TrainingRun& run) { return run.run(); });
  });
}

}  // namespace lockstep
