// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loop of a training run: what it does in which order, on every rank alike.
#include "trainer/run/training_run.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "trainer/setup/strategies.hpp"
#include "trainer/training/training_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>

namespace lockstep {

TrainingRun::TrainingRun(const Job& job, Communicator& comm, const DatasetFuture& data,
                         Clock::time_point process_start, const TimeLimit& time_limit)
    : job_(job),
      comm_(comm),
      data_(data),
      process_start_(process_start),
      data_watch_(comm.rank(), comm.host(), comm.backend() == "thread" && comm.rank() > 0),
      setup_(set_up(job, comm, data, find_strategy(job).setup)),
      trace_(job, comm),
      strategy_(find_strategy(job).make(setup_, comm)),
      checks_(check_ranks(*strategy_, setup_, comm)),
      time_limit_(time_limit),
      steps_per_epoch_(strategy_->sampler().steps_per_epoch()),
      progress_(comm.rank()),
      judge_(judging_part(job)),
      trail_slots_(
          keeps_trail(job) ? trail_head(job, setup_, strategy_->weight_update().buffer_names()).slots() : 0) {
  strategy_->unread().keep();
}

int TrainingRun::run() {
  try {
    return run_to_the_end();
  } catch (const WrongRankError& error) {
    end_wrong(error);
  } catch (...) {
    if (directory_) directory_->note({.state = "failed", .step = state_.step});
    directory_.reset();  // A save that is under way is brought to its end, whatever happens to the rest.
    throw;
  }
}

/// Rank 0 speaks: only it knows which checkpoints there are.
void TrainingRun::end_wrong(const WrongRankError& error) {
  const WrongNumbers& wrong = error.numbers();
  const std::int64_t sure = wrong.doubt == Doubt::kNone          ? std::numeric_limits<std::int64_t>::max()
                            : wrong.doubt == Doubt::kSinceReplay ? last_replay(wrong.step - 1)
                                                                 : first_step_;
  const std::string how =
      directory_ ? directory_->note_doubt({.sure_step = sure, .found_step = wrong.step, .what = wrong.what})
                 : "";
  RunStatusNote failed{.state = "failed", .step = wrong.step};
  for (const int rank : wrong.ranks) failed.exclude_hosts.push_back(at(hosts_, rank));
  if (directory_) directory_->note(failed);
  directory_.reset();
  throw AgreedError(error.code(), fmt::format("{}. {}", error.what(), how), 0);
}

std::int64_t TrainingRun::last_replay(std::int64_t step) const {
  const std::int64_t every = checks_->replays_every(), last = every > 0 ? step - step % every : 0;
  return last > first_step_ ? last : state_.replayed;
}

int TrainingRun::run_to_the_end() {
  open_directory();
  restore_or_initialise();
  tell_run_directory(comm_, job_.run.dir);
  if (nothing_left_) return tell_nothing_left();
  comm_.activity().device.set(setup_.device.description);
  comm_.activity().restart_advice.set(restart_advice(job_, comm_.size()));
  open_verdict(comm_, job_.run.dir);
  if (job_.inject.is_given() && directory_) setup_.fingerprints->get();  // of the data before the fault
  if (job_.inject.is_given()) {
    faults_ = std::make_shared<FaultInjector>(job_, setup_, *data_.get().sets, comm_, *strategy_);
    strategy_->observe(faults_);
  }
  announce();
  if (evaluates_here() && !accuracy_on(judge_, state_)) evaluate_within_epoch();  // a stop came before it
  while (!stopping_ && (!at_end() || epoch_finished())) {
    train_epoch();
    if (!stopping_ && epoch_finished()) finish_epoch();
  }
  return stopping_ ? stop_on_request() : finish();
}

void TrainingRun::train_epoch() {
  tell_epoch_starts();
  while (!epoch_finished() && !at_end() && !stopping_) {
    if (faults_) faults_->before_series(state_.step);
    const std::int64_t step = state_.step + 1;
    if (const std::string line = trace_.before_step(step, job_.run.dir); !line.empty()) say(line);
    comm_.activity().begin_step(step);
    const auto start = Clock::now();
    const StepSeries series = strategy_->run(position(state_), next_series(), stop_wanted());
    epoch_clock_.add(series.steps, seconds_since(start));
    after_series(series);
  }
  progress_.end_epoch();
  epoch_seconds_ = seconds_since(epoch_start_);  // what follows is not part of it
}

/// Number of steps up to the next event: the end of the epoch or run, or something that is due.
std::int64_t TrainingRun::next_series() const {
  const auto step = state_.step;
  std::int64_t count =
      std::min({strategy_->longest_series(), steps_per_epoch_ - state_.step_in_epoch, steps_in_run() - step});
  if (const std::int64_t every = job_.run.print_loss_every_steps; every > 0)
    count = std::min(count, every - state_.step_in_epoch % every);
  for (const std::int64_t every :
       {log_spacing(job_, step), job_.run.checkpoint_every_steps, job_.parallel.check_replicas_every_steps,
        job_.train.evaluate_every_steps}) {
    if (every > 0) count = std::min(count, every - step % every);
  }
  count = trace_.series_from(step, count);
  if (faults_) count = faults_->series_from(step, count);
  LOCKSTEP_CHECK(count > 0);  // or the epoch would never end
  return count;
}

void TrainingRun::after_series(const StepSeries& series) {
  LOCKSTEP_CHECK(series.steps > 0 || series.failure);
  state_.add(sums_of(series));
  state_.replayed = last_replay(state_.step);
  add_to_trail(series);
  if (series.failure) fail(series);
  tell_series(series);
  if (const auto every = job_.run.print_loss_every_steps; every > 0) print_loss(every);
  if (is_due(log_spacing(job_, state_.step - 1))) tell_step(series.last);
  if (is_due(job_.parallel.check_replicas_every_steps)) compare_copies();
  stopping_ = series.last.stop_requested && !steps_finished();
  if (stopping_) tell_why_it_stops();
  if (epoch_finished()) return;  // what is due now comes after the evaluation
  if (evaluates_here() && !stopping_) return evaluate_within_epoch();
  // The last one comes after its evaluation, too, and carries what was measured on it.
  if (is_due(job_.run.checkpoint_every_steps) && !stopping_ && !steps_finished()) save();
}

void TrainingRun::end_if_unread() {
  try {
    agree(comm_, [this] {
      if (const std::exception_ptr reason = strategy_->unread().take()) std::rethrow_exception(reason);
    });
  } catch (const AgreedError& error) {
    if (state_.step == 0) throw;  // nothing to lose
    save();
    wait_until_saved(error.what());
    end_trace();
    throw AgreedError(error.code(),
                      fmt::format("{}; step {} is saved, and the same command goes on from there",
                                  error.what(), with_thousands(state_.step)),
                      error.speaker());
  }
}

void TrainingRun::fail(const StepSeries& series) {
  end_if_unread();
  end_trace();
  compare_copies();  // a rank's memory may have made the number
  strategy_->collect();
  const std::string what =
      comm_.rank() == 0 ? describe_failure(*series.failure, series.last.samples, state_.step + 1,
                                           setup_.network.parameters(), strategy_->whole_state().weights)
                        : "";
  throw AgreedError(ExitCode::kInternal, what, 0);
}

/// Whole windows only: after a resume from a checkpoint that has none, the first would be short.
void TrainingRun::print_loss(std::int64_t every) {
  if (state_.step_in_epoch % every != 0) return;
  if (state_.unprinted->steps == every) tell_loss();
  state_.unprinted.emplace();
}

void TrainingRun::finish_epoch() {
  if (!evaluate_now(judge_)) return;
  state_.patience->count(evaluations_.judged().accuracy());
  tell_epoch();
  state_.start_next_epoch();
  if (is_due(job_.run.checkpoint_every_steps) || is_best()) save();
}

/// The last step of the run comes here, too: as if it went on.
void TrainingRun::evaluate_within_epoch() {
  const auto start = Clock::now();
  if (!evaluate_now(judge_)) return;
  epoch_start_ += Clock::now() - start;  // the epoch's seconds are those of its steps
  state_.patience->count(evaluations_.judged().accuracy());
  tell_evaluation();
  if (!at_end() && (is_due(job_.run.checkpoint_every_steps) || is_best())) save();
}

/// True if a signal ends an evaluation: the run is saved as before, and resumes with the evaluation. The
/// time limit does so only after a step, so that every start gets further; and not at the end of the
/// run.
bool TrainingRun::leave_evaluation() const {
  const bool got_further = state_.step > first_step_;
  return stop_requested() || (got_further && !at_end() && time_limit_.reached());
}

/// False if it was left, on all ranks: then the run is stopping.
bool TrainingRun::evaluate_now(EvaluatedPart part) {
  compare_copies();
  require_finite_weights();
  const InPhase phase(comm_.activity(), Phase::kEvaluating);
  const TimeSpan span(comm_.activity().timeline(), Work::kEvaluation);
  const auto leave = [this] { return leave_evaluation(); };
  const Evaluation evaluation = strategy_->evaluate(part, leave);
  if (part == judge_) evaluations_ = {};
  stopping_ = evaluation.interrupted;
  if (!stopping_) stopping_ = !evaluate_averages(*strategy_, state_.step, part, leave, evaluations_);
  if (stopping_) {
    end_if_unread();
    tell_why_it_stops();
    return false;
  }
  evaluations_.of(part) = evaluation;
  accuracy_on(part, state_) = evaluation.accuracy();
  return true;
}

int TrainingRun::stop_on_request() {
  save();
  wait_until_saved("stopped on request");
  end_trace();
  tell_stopped();
  return static_cast<int>(ExitCode::kSavedOnRequest);
}

int TrainingRun::finish() {
  const bool evaluated = evaluations_.of(judge_) && accuracy_on(judge_, state_);
  if (!evaluated && !evaluate_now(judge_)) return stop_on_request();
  if (judge_ != EvaluatedPart::kTest && !evaluate_now(EvaluatedPart::kTest)) return stop_on_request();
  if (is_saved()) compare_copies();
  save();
  wait_until_saved("the run ended");
  end_trace();
  tell_memory();
  tell_end();
  return 0;
}

}  // namespace lockstep
