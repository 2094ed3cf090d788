// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The words and the fields of everything that a run tells.
#include "trainer/run/run_report.hpp"

#include "common/output.hpp"
#include "common/terminal.hpp"
#include "common/text_layout.hpp"
#include "trainer/run/announcements.hpp"
#include "trainer/run/progress.hpp"
#include "trainer/run/stop_signal.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr std::size_t kMostScoresShown = 16;

}  // namespace

RunReport::RunReport(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                     const Communicator& comm)
    : job_(job),
      setup_(setup),
      strategy_(strategy),
      comm_(comm),
      progress_(Progress::for_rank(comm.rank())) {}

/// To the person who watches, and to the log.
void RunReport::say(const std::string& line) {
  progress_.say(line);
  directory_->log(line);
}

void RunReport::say(const std::vector<Field>& fields) {
  progress_.say(fields);
  directory_->log(join(fields));
}

double RunReport::learning_rate(const RunState& state) const {
  return strategy_.weight_update().learning_rate(state.position.global_step - 1);
}

double RunReport::samples_per_second(const RunState& state, double seconds) const {
  return static_cast<double>(state.epoch_samples - epoch_start_samples_) / seconds;
}

void RunReport::start(const std::string& choice, int hosts) {
  run_start_ = Clock::now();
  if (directory_ == nullptr) return;
  if (!choice.empty()) say(choice);
  for (const auto& line : announcement(job_, setup_, strategy_, comm_, hosts)) say(line);
  if (const std::string line = strategy_.describe().for_log; !line.empty()) directory_->log(line);
}

void RunReport::new_run(int hosts, double setup_seconds) {
  if (directory_ == nullptr) return;
  auto event = start_event(job_, setup_, strategy_, comm_, hosts);
  event["setup_seconds"] = setup_seconds;
  directory_->write(event);
}

void RunReport::resumed_run(std::int64_t step, bool data_known, std::int64_t arithmetic_since) {
  if (directory_ == nullptr) return;
  say(fmt::format("going on from step {} in {}", with_thousands(step), job_.run.dir));
  if (arithmetic_since > 0) {
    say(fmt::format(
        "its steps up to {} were computed by a version of this program that rounded sums in other places: it "
        "goes on from there, to other last digits than either version alone",
        with_thousands(arithmetic_since)));
  }
  if (!data_known) say("its checkpoint does not say which data it was trained on: they were not compared");
}

void RunReport::say_weights(const TrainedWeights& weights) {
  if (!weights.published.line.empty()) progress_.say(weights.published.line);
  progress_.say("weights sha256 " + weights.sha256);
}

void RunReport::nothing_left(const RunLength& length, const TrainedWeights& weights) {
  progress_.say(nothing_left_text(job_, length));
  say_weights(weights);
}

void RunReport::start_epoch(const RunState& state, const RunLength& length) {
  progress_.start_epoch(state.position.epoch + 1, job_.train.epochs, state.position.step_in_epoch,
                        length.steps_per_epoch, length.asked - length.taken);
  epoch_start_ = Clock::now();
  epoch_start_samples_ = state.epoch_samples;
}

void RunReport::steps(const StepSeries& series) {
  progress_.steps(series.steps, series.samples,
                  series.last.loss() / static_cast<double>(series.last.samples));
}

void RunReport::say_lines(const std::vector<std::string>& lines) {
  if (directory_ == nullptr) return;
  for (const std::string& line : lines) say(line);
}

void RunReport::mean_loss(const RunState& state) {
  if (directory_ == nullptr) return;
  const StepPosition& at = state.position;
  directory_->write(loss_event(state, state.unprinted));
  say(fmt::format("[{}, {:5}] loss: {:.3f}", at.epoch + 1, at.step_in_epoch, state.unprinted.mean()));
}

void RunReport::log_step(const RunState& state, const StepTotals& totals) {
  if (directory_ == nullptr) return;
  auto event = step_event(state, totals, learning_rate(state));
  event["samples_per_second"] = samples_per_second(state, seconds_since(epoch_start_));
  directory_->write(event);
}

void RunReport::end_epoch() {
  progress_.end_epoch();
  epoch_seconds_ = seconds_since(epoch_start_);
}

void RunReport::evaluated(const RunState& state, const Evaluation& evaluation) {
  if (directory_ == nullptr) return;
  directory_->write(epoch_event(state, learning_rate(state), evaluation, epoch_seconds_));
  say(epoch_fields({.epoch = state.position.epoch + 1,
                    .epochs = job_.train.epochs,
                    .train_loss = state.mean_epoch_loss(),
                    .test_loss = describe_loss(evaluation),
                    .test_accuracy = evaluation.accuracy(),
                    .seconds = epoch_seconds_,
                    .samples_per_second = samples_per_second(state, epoch_seconds_)}));
  if (job_.run.curve) draw_curve(state, evaluation);
}

/// From the metrics, which tell of the epochs before a resume, too. A picture that cannot be written stops no
/// run.
void RunReport::draw_curve(const RunState& state, const Evaluation& evaluation) {
  const OutputTerminal output = output_terminal();
  const int columns = output_columns();
  const CurvePoint now{state.position.epoch + 1, evaluation.accuracy()};
  if (!curve_is_drawn_) say(curve_scale(columns));
  curve_is_drawn_ = true;
  say(curve_row(now, columns, output.unicode));
  try {
    directory_->write_curve(fmt::format("{} on {}: test accuracy", setup_.network.name(), job_.data.set));
  } catch (const Error& error) {
    if (!curve_failed_) print_error(fmt::format("warning: {}; the run goes on without it", error.what()));
    curve_failed_ = true;
  }
}

/// Of a signal to this rank its handler has spoken at once.
void RunReport::stopping(StopReason reason) {
  if (directory_ == nullptr) return;
  switch (reason) {
    case StopReason::kSignal:
      return directory_->log(fmt::format("{} received: stopping", stop_signal_name(stop_signal())));
    case StopReason::kTimeLimit:
      return say("the time is up (run.max_seconds, or the end of the allocation): stopping after this step");
    case StopReason::kOtherRank:
      return say("another rank was told to stop: stopping after this step");
  }
}

void RunReport::stopped(const RunLength& length) {
  if (directory_ == nullptr) return;
  say(fmt::format("stopped on request at step {} of {}, saved in {}; run the same command to go on",
                  with_thousands(length.taken), with_thousands(length.asked), job_.run.dir));
}

void RunReport::summary(const std::vector<std::string>& lines) {
  if (directory_ == nullptr) return;
  for (const std::string& line : lines) say(line);
}

void RunReport::ranks(const std::vector<RankScore>& scores, std::int64_t step) {
  if (directory_ == nullptr || scores.empty()) return;
  std::string line = "speed of each rank, 1.00: as fast as the best rank and as its own best 80 steps:";
  for (const RankScore& score : scores) line += fmt::format(" {:.2f}", score.score);
  if (scores.size() <= kMostScoresShown) directory_->log(line);
  for (const RankScore& score : scores) {
    if (!score.is_straggler()) continue;
    say(fmt::format("{}; score {:.2f}, named first at step {}", describe(score), score.score,
                    with_thousands(score.first_named_step)));
    directory_->write({{"event", "straggler"},
                       {"step", step},
                       {"rank", score.rank},
                       {"host", score.host},
                       {"first_named_step", score.first_named_step},
                       {"last_share", score.last_share},
                       {"late_seconds", score.late_seconds},
                       {"cause", score.cause},
                       {"score", score.score}});
  }
}

void RunReport::done(const RunState& state, const Evaluation& evaluation, const StrategySummary& of_strategy,
                     const TrainedWeights& weights) {
  if (directory_ == nullptr) return;
  const double seconds = seconds_since(run_start_);
  nlohmann::ordered_json event = end_event(state, evaluation, seconds);
  for (const auto& [name, number] : of_strategy.numbers) event[job_.parallel.strategy][name] = number;
  add_weights(event, weights.sha256, weights.published);
  directory_->write_durably(event);
  if (job_.run.print_loss_every_steps > 0) say(std::string("Finished Training"));
  say(fmt::format("done: {} in {}, accuracy {:.2f} % of {}, run directory {}",
                  counted(state.position.global_step, "step"),
                  seconds < 60 ? format_seconds(seconds) : format_duration(seconds),
                  100 * evaluation.accuracy(), counted(evaluation.samples, "test sample"), job_.run.dir));
  say_weights(weights);
}

}  // namespace lockstep
