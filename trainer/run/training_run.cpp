// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The loop over epochs and steps, which knows what is due when: it is the same on every rank.
#include "trainer/run/training_run.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "trainer/ranks/equal_ranks.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/epoch_clock.hpp"
#include "trainer/run/fault_injector.hpp"
#include "trainer/run/progress.hpp"
#include "trainer/run/rank_diagnosis.hpp"
#include "trainer/run/run_context.hpp"
#include "trainer/run/run_recorder.hpp"
#include "trainer/run/run_reporter.hpp"
#include "trainer/run/stop_signal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// Every rank goes through the same steps. What happens is told to listeners: rank 0's files, terminal and log.
class TrainingRun {
 public:
  TrainingRun(const Job& job, Communicator& comm, const DatasetFuture& data, Clock::time_point process_start,
              const TimeLimit& time_limit)
      : data_(data),
        process_start_(process_start),
        time_limit_(time_limit),
        data_watch_(comm.rank(), comm.host(), comm.backend() == "thread" && comm.rank() > 0),
        run_(job, comm, data),
        recorder_(run_),
        progress_(comm.rank()),
        reporter_(run_, progress_) {}

  /// To the end, or until it is asked to stop. @returns the exit code of train()
  int run() {
    try {
      return run_to_the_end();
    } catch (const WrongRankError& error) {
      end_wrong(error);
    } catch (...) {
      if (run_.files) run_.files->note({.state = "failed", .step = run_.state.step});
      run_.files.reset();  // A save that is under way is brought to its end, whatever happens to the rest.
      start_.directory.reset();
      throw;
    }
  }
  /// After run() has returned 0, on rank 0: its directory; "" where there was nothing left to do.
  std::string finished_directory() const { return run_.files || start_.lacks_page ? run_.job.run.dir : ""; }

 private:
  /// Rank 0 speaks: only it knows which checkpoints there are.
  [[noreturn]] void end_wrong(const WrongRankError& error) {
    const WrongNumbers& wrong = error.numbers();
    const std::int64_t sure = wrong.doubt == Doubt::kNone          ? std::numeric_limits<std::int64_t>::max()
                              : wrong.doubt == Doubt::kSinceReplay ? last_replay(wrong.step - 1)
                                                                   : run_.first_step;
    const std::string how =
        run_.files ? run_.files->note_doubt({.sure_step = sure, .found_step = wrong.step, .what = wrong.what})
                   : "";
    RunStatusNote failed{.state = "failed", .step = wrong.step};
    for (const int rank : wrong.ranks) failed.exclude_hosts.push_back(at(start_.hosts, rank));
    if (run_.files) run_.files->note(failed);
    throw AgreedError(error.code(), fmt::format("{}. {}", error.what(), how));
  }

  int run_to_the_end() {
    start_ = begin_run(run_);
    const Job& job = run_.job;
    run_.job.run.dir = tell_run_directory(run_.comm, job.run.dir);
    if (start_.nothing_left) {
      if (start_.directory) reporter_.nothing_left(start_);
      return 0;
    }
    if (start_.resumed) recorder_.note_saved();
    run_.comm.activity().restart_advice.set(restart_advice(job, run_.comm.size()));
    open_verdict(run_.comm, job.run.dir);
    if (job.inject.is_given()) {
      if (run_.files) run_.setup.fingerprints->get();  // taken before the fault changes the data
      faults_ =
          std::make_shared<FaultInjector>(job, run_.setup, *data_.get().sets, run_.comm, *run_.strategy);
      run_.strategy->observe(faults_);
    }
    announce();
    if (evaluates_here() && !accuracy_on(run_.judge, run_.state))
      evaluate_within_epoch();  // a stop came before it
    while (!stopping_ && (!run_.at_end() || run_.epoch_finished())) {
      train_epoch();
      if (!stopping_ && run_.epoch_finished()) finish_epoch();
    }
    return stopping_ ? stop_on_request() : finish();
  }

  void announce() {
    const Job& job = run_.job;
    warn_before_run(run_.comm, job, run_.setup.device);
    const int hosts = count_hosts(run_.comm);
    run_start_ = Clock::now();
    if (run_.files) {
      reporter_.announce(start_, hosts);
      if (run_.files->has_no_events())
        run_.files->write(first_event(run_, start_, hosts, seconds_since(process_start_)));
      listeners_ = {&progress_, run_.files.get(), &reporter_};  // files before reporter_: they have its words
      run_.setup.fingerprints->start();                         // the first checkpoint wants them, and this
      run_.setup.light_background =
          start_async([this] { return has_light_background(run_.job, run_.setup.data->train); }).share();
    }
    if (job.run.print_shapes) reporter_.devices();
  }

  void train_epoch() {
    const RunState& state = run_.state;
    tell(&RunListener::epoch_begins, BegunEpoch{.epoch = state.epoch + 1,
                                                .epochs = run_.job.train.epochs,
                                                .steps_taken = state.step_in_epoch,
                                                .steps = run_.steps_per_epoch,
                                                .steps_left_in_run = run_.steps() - state.step});
    clock_.start(*run_.strategy, state.epoch_samples);
    while (!run_.epoch_finished() && !run_.at_end() && !stopping_) {
      if (faults_) faults_->before_series(state.step);
      const std::int64_t step = state.step + 1;
      reporter_.say(run_.trace.before_step(step, run_.job.run.dir));
      run_.comm.activity().begin_step(step);
      const auto start = Clock::now();
      const StepSeries series =
          run_.strategy->run(position(state), next_series(), stop_requested() || time_limit_.reached());
      clock_.add(series.steps, seconds_since(start));
      after_series(series);
    }
    wipe_bar();
    clock_.end_steps();
  }

  /// Number of steps up to the next event: the end of the epoch or run, or something that is due.
  std::int64_t next_series() const {
    const auto step = run_.state.step;
    std::int64_t count = std::min({run_.strategy->longest_series(),
                                   run_.steps_per_epoch - run_.state.step_in_epoch, run_.steps() - step});
    if (const std::int64_t every = run_.job.run.print_loss_every_steps; every > 0)
      count = std::min(count, every - run_.state.step_in_epoch % every);
    for (const std::int64_t every :
         {log_spacing(run_.job, step), run_.job.run.checkpoint_every_steps,
          run_.job.parallel.check_replicas_every_steps, run_.job.train.evaluate_every_steps})
      if (every > 0) count = std::min(count, every - step % every);
    count = run_.trace.series_from(step, count);
    if (faults_) count = faults_->series_from(step, count);
    LOCKSTEP_CHECK(count > 0);  // or the epoch would never end
    return count;
  }

  void after_series(const StepSeries& series) {
    RunState& state = run_.state;
    LOCKSTEP_CHECK(series.steps > 0 || series.failure);
    state.add(sums_of(series));
    state.replayed = last_replay(state.step);
    recorder_.add(series);
    if (series.failure) fail(series);
    tell(&RunListener::steps_taken, series);
    if (run_.job.run.print_shapes) reporter_.batch_shapes(series);
    if (const auto every = run_.job.run.print_loss_every_steps;
        every > 0 && state.step_in_epoch % every == 0) {
      // Whole windows only: after a resume from a checkpoint that has none, the first would be short.
      if (state.unprinted->steps == every) tell(&RunListener::loss_is_due, state, run_.learning_rate());
      state.unprinted.emplace();
    }
    if (is_due(log_spacing(run_.job, state.step - 1)))
      tell(&RunListener::step_is_due,
           LoggedStep{.state = state,
                      .totals = series.last,
                      .learning_rate = run_.learning_rate(),
                      .answers = std::exchange(state.unlogged, {}),
                      .gradient_norm = run_.strategy->measures().gradient_norm,
                      .samples_per_second = clock_.samples_per_second(state.epoch_samples)});
    if (is_due(run_.job.parallel.check_replicas_every_steps)) recorder_.compare_copies();
    stopping_ = series.last.stop_requested && !run_.steps_finished();
    if (stopping_) reporter_.why_it_stops(time_limit_);
    if (run_.epoch_finished()) return;  // a checkpoint that is due comes after the evaluation
    if (evaluates_here() && !stopping_) return evaluate_within_epoch();
    // The last one comes after its evaluation, too, and carries what was measured on it.
    if (is_due(run_.job.run.checkpoint_every_steps) && !stopping_ && !run_.steps_finished()) {
      const auto start = Clock::now();
      recorder_.save();
      clock_.leave_out(Clock::now() - start);
    }
  }

  /// Ends the run if a rank could not read samples, after saving the state before the step or evaluation. Collective.
  /// @throws AgreedError  that rank's
  void end_if_unread() {
    try {
      agree(run_.comm, [this] {
        if (const std::exception_ptr reason = run_.strategy->unread().take()) std::rethrow_exception(reason);
      });
    } catch (const AgreedError& error) {
      if (run_.state.step == 0) throw;  // nothing to lose
      save_at_end(error.what());
      throw AgreedError(error.code(),
                        fmt::format("{}; step {} is saved, and {} goes on from there", error.what(),
                                    with_thousands(run_.state.step), way_to_go_on(run_.job)),
                        error.speaker());
    }
  }

  [[noreturn]] void fail(const StepSeries& series) {
    end_if_unread();
    reporter_.say(run_.trace.end(run_.state.step, run_.job.run.dir));
    recorder_.compare_copies();  // a rank's memory may have made the number
    run_.strategy->collect();
    const std::string what =
        run_.comm.rank() == 0
            ? describe_failure(*series.failure, series.last.samples, run_.state.step + 1,
                               run_.setup.network.parameters(), run_.strategy->whole_state().weights)
            : "";
    throw AgreedError(ExitCode::kInternal, what);
  }

  void finish_epoch() {
    if (!evaluate_now(run_.judge)) return;
    run_.state.patience->count(run_.evaluations.judged().accuracy());
    tell(&RunListener::epoch_finished,
         FinishedEpoch{.state = run_.state,
                       .evaluations = run_.evaluations,
                       .learning_rate = run_.learning_rate(),
                       .rounded_to_zero = run_.strategy->measures().rounded_to_zero,
                       .clock = &clock_,
                       .ranks = clock_.all_ranks(*run_.strategy, run_.setup.device.gpu.get(), run_.comm)});
    run_.state.start_next_epoch();
    if (is_due(run_.job.run.checkpoint_every_steps) || recorder_.is_best()) recorder_.save();
  }

  /// The last step of the run comes here, too: as if it went on.
  void evaluate_within_epoch() {
    const auto start = Clock::now();
    if (!evaluate_now(run_.judge)) return;
    run_.state.patience->count(run_.evaluations.judged().accuracy());
    tell(&RunListener::evaluated, run_.state, run_.evaluations);
    if (!run_.at_end() && (is_due(run_.job.run.checkpoint_every_steps) || recorder_.is_best()))
      recorder_.save();
    clock_.leave_out(Clock::now() - start);
  }

  /// True if a signal ends an evaluation: the run is saved as before, and resumes with the evaluation. The
  /// time limit does so only after a step, so that every start gets further; and not at the end of the
  /// run.
  bool leave_evaluation() const {
    const bool got_further = run_.state.step > run_.first_step;
    return stop_requested() || (got_further && !run_.at_end() && time_limit_.reached());
  }

  /// False if it was left, on all ranks: then the run is stopping.
  bool evaluate_now(EvaluatedPart part) {
    recorder_.check_state();
    const InPhase phase(run_.comm.activity(), Phase::kEvaluating);
    const TimeSpan span(run_.comm.activity().timeline(), Work::kEvaluation);
    const auto leave = [this] { return leave_evaluation(); };
    const Evaluation evaluation = run_.strategy->evaluate(part, leave);
    if (part == run_.judge) run_.evaluations = {};
    stopping_ = evaluation.interrupted;
    if (!stopping_)
      stopping_ = !evaluate_averages(*run_.strategy, run_.state.step, part, leave, run_.evaluations);
    if (stopping_) {
      end_if_unread();
      reporter_.why_it_stops(time_limit_);
      return false;
    }
    run_.evaluations.of(part) = evaluation;
    accuracy_on(part, run_.state) = evaluation.accuracy();
    return true;
  }

  /// No step follows: the state is on disk, and what is traced is written. As RunRecorder::save_at_end().
  void save_at_end(const char* what_ends) {
    recorder_.save_at_end(what_ends);
    reporter_.say(run_.trace.end(run_.state.step, run_.job.run.dir));
  }

  int stop_on_request() {
    save_at_end("stopped on request");
    if (run_.files) run_.files->note({.state = "saved", .step = run_.state.step});
    reporter_.stopped();
    return static_cast<int>(ExitCode::kSavedOnRequest);
  }

  int finish() {
    const bool evaluated = run_.evaluations.of(run_.judge) && accuracy_on(run_.judge, run_.state);
    if (!evaluated && !evaluate_now(run_.judge)) return stop_on_request();
    if (run_.judge != EvaluatedPart::kTest && !evaluate_now(EvaluatedPart::kTest)) return stop_on_request();
    save_at_end("the run ended");
    reporter_.memory();
    const StrategySummary summary = run_.strategy->summary();
    for (const std::string& line : summary.lines) reporter_.say(line);
    if (!run_.files) return 0;
    const std::string sha256 = weights_sha256(run_.strategy->whole_state().weights);
    tell(&RunListener::run_finished, FinishedRun{.state = run_.state,
                                                 .evaluations = run_.evaluations,
                                                 .sha256 = sha256,
                                                 .published = run_.compare_with_published(sha256),
                                                 .seconds = seconds_since(run_start_),
                                                 .from_step = run_.first_step,
                                                 .stopped_early = !run_.steps_finished(),
                                                 .strategy = run_.job.parallel.strategy,
                                                 .numbers = summary.numbers});
    return 0;
  }

  // Questions about the state.

  bool is_due(std::int64_t every) const { return every > 0 && run_.state.step % every == 0; }
  /// True if train.evaluate_every_steps wants an evaluation after this step, within an epoch.
  bool evaluates_here() const {
    return run_.state.step_in_epoch > 0 && !run_.epoch_finished() &&
           is_due(run_.job.train.evaluate_every_steps);
  }

  /// The last step up to this one whose shares were computed again, in this start or one before; 0: none.
  std::int64_t last_replay(std::int64_t step) const {
    const std::int64_t every = run_.checks->replays_every(), last = every > 0 ? step - step % every : 0;
    return last > run_.first_step ? last : run_.state.replayed;
  }

  template <typename Event, typename... Facts>
  void tell(Event event, const Facts&... facts) {
    for (RunListener* listener : listeners_) (listener->*event)(facts...);
  }

  DatasetFuture data_;
  Clock::time_point process_start_, run_start_{};
  TimeLimit time_limit_;
  DataWatch data_watch_;  ///< from before the data are there
  RunContext run_;
  RunStart start_;
  RunRecorder recorder_;
  Progress progress_;
  RunReporter reporter_;
  std::vector<RunListener*> listeners_;    ///< in the order in which they are told
  std::shared_ptr<FaultInjector> faults_;  ///< none, unless the job asks for one
  EpochClock clock_;                       ///< times the epoch under way, since this start of the run
  bool stopping_ = false;
};

}  // namespace

int train(const Job& job, const WhenFinished& when_finished) {
  const auto process_start = Clock::now();
  refuse_faults_unless_allowed(job);
  catch_stop_signals(OnStop::kSave);
  const TimeLimit time_limit(process_start, job.run.max_seconds, allocation_end_ahead());
  const auto data = load_in_advance(job, DataCopy::kOfHost, recorded_directory(job));
  std::string finished;  // as rank 0 has it
  const int code = run_on_ranks(job.parallel, [&](Communicator& comm) {
    expect_equal_ranks(comm, program_facts("train", comm) + job_facts(job));
    Job on_ranks;
    agree(comm, [&] { on_ranks = for_ranks(job, comm.size()); });
    return run_leaking_on_peer_loss(
        std::make_unique<TrainingRun>(on_ranks, comm, data, process_start, time_limit),
        [&](TrainingRun& run) {
          const int code_of_run = run.run();
          if (comm.rank() == 0 && code_of_run == 0) finished = run.finished_directory();
          return code_of_run;
        });
  });
  if (!finished.empty() && when_finished) when_finished(finished, *data.get().sets);
  return code;
}

}  // namespace lockstep
