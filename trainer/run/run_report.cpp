// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The words and the fields of what a run tells of its course: to people, and as events.
#include "common/env.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/run/metrics.hpp"
#include "trainer/run/progress.hpp"
#include "trainer/run/training_run.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace lockstep {

/// To the person who watches, and to the log.
void TrainingRun::say(const std::string& line) {
  if (!directory_) return;
  progress_.say(line);
  directory_->log(line);
}

double TrainingRun::learning_rate() const {
  return strategy_->weight_update().learning_rate(state_.step - 1);
}

double TrainingRun::samples_per_second(double seconds) const {
  return static_cast<double>(state_.epoch_samples - epoch_start_samples_) / seconds;
}

void TrainingRun::tell_epoch_starts() {
  progress_.start_epoch(state_.epoch + 1, job_.train.epochs, state_.step_in_epoch, steps_per_epoch_,
                        steps_in_run() - state_.step);
  epoch_start_ = Clock::now();
  epoch_clock_.start(*strategy_);
  epoch_start_samples_ = state_.epoch_samples;
}

/// Moves the bar.
void TrainingRun::tell_series(const StepSeries& series) {
  progress_.steps(series.steps, series.samples,
                  series.last.loss() / static_cast<double>(series.last.samples));
  if (!rank_devices_.empty()) tell_batch_shapes(series.steps);
}

/// The line of PyTorch's tutorials, "[1,   100] loss: 0.123", and a "loss" event.
void TrainingRun::tell_loss() {
  if (!directory_) return;
  directory_->write(loss_event(state_, *state_.unprinted, learning_rate()));
  say(fmt::format("[{}, {:5}] loss: {:.3f}", state_.epoch + 1, state_.step_in_epoch,
                  state_.unprinted->mean()));
}

/// The "step" event of the last of the steps just taken. Collective.
void TrainingRun::tell_step(const StepTotals& totals) {
  const std::optional<double> gradient_norm = strategy_->measures().gradient_norm;
  const LossWindow window = std::exchange(state_.unlogged, {});
  if (!directory_) return;
  auto event = step_event(state_, totals, learning_rate());
  add_training_numbers(event, window, gradient_norm);
  event["samples_per_second"] = samples_per_second(seconds_since(epoch_start_));
  directory_->write(event);
}

namespace {

/// "ema 97.31 %, swa 97.42 %"; "" where none are kept.
std::string averages_text(const Evaluations& evaluations, EvaluatedPart part) {
  std::string text;
  for (const AverageEvaluation& average : evaluations.averages)
    if (average.part == part)
      text += fmt::format("{}{} {:.2f} %", text.empty() ? "" : ", ", average.name,
                          100 * average.found.accuracy());
  return text;
}

}  // namespace

/// Collective.
void TrainingRun::tell_epoch() {
  const auto ranks = epoch_clock_.all_ranks(*strategy_, setup_.device.gpu.get(), comm_);
  const std::optional<double> rounded_to_zero = strategy_->measures().rounded_to_zero;
  if (!directory_) return;
  auto event = epoch_event(state_, learning_rate(), evaluations_, epoch_seconds_);
  add_rounding(event, rounded_to_zero);
  event["epoch_seconds"] = seconds_since(epoch_start_);
  epoch_clock_.add_to(event, ranks);
  directory_->write(event);
  const auto fields = epoch_fields({.epoch = state_.epoch + 1,
                                    .epochs = job_.train.epochs,
                                    .train_loss = state_.epoch_so_far().mean(),
                                    .test_loss = describe_loss(evaluations_.judged()),
                                    .test_accuracy = evaluations_.judged().accuracy(),
                                    .validated = evaluations_.validation.has_value(),
                                    .averages = averages_text(evaluations_, judge_),
                                    .seconds = epoch_seconds_,
                                    .samples_per_second = samples_per_second(epoch_seconds_)});
  progress_.say(fields);
  directory_->log(join(fields));
  if (job_.run.curve) draw_curve();
}

/// "epoch  1/10  step 200: validation loss 0.3121, accuracy 90.88 %", and an "evaluation" event.
void TrainingRun::tell_evaluation() {
  if (!directory_) return;
  directory_->write(evaluation_event(state_, evaluations_));
  const Evaluation& found = evaluations_.judged();
  const std::string averages = averages_text(evaluations_, judge_);
  say(fmt::format("epoch {:>2}/{}  step {}  {} loss {}  accuracy {:.2f} %{}{}", state_.epoch + 1,
                  job_.train.epochs, with_thousands(state_.step),
                  evaluations_.validation ? "validation" : "test", describe_loss(found),
                  100 * found.accuracy(), averages.empty() ? "" : "  ", averages));
}

void TrainingRun::draw_curve() {
  const OutputTerminal output = output_terminal();
  const int columns = output_columns();
  const CurvePoint now{state_.epoch + 1, evaluations_.judged().accuracy()};
  const std::string what = evaluations_.validation ? "validation accuracy" : "test accuracy";
  if (!curve_is_drawn_) say(curve_scale(columns, what));
  curve_is_drawn_ = true;
  say(curve_row(now, columns, output.unicode));
}

void TrainingRun::tell_why_it_stops() {
  if (stop_requested()) {  // its handler has spoken at once
    if (directory_) directory_->log(fmt::format("{} received: stopping", stop_signal_name(stop_signal())));
  } else if (time_limit_.reached()) {
    say("the time is up (run.max_seconds, or the end of the allocation): stopping after this step");
  } else {
    say("another rank was told to stop: stopping after this step");
  }
}

void TrainingRun::tell_stopped() {
  if (directory_) directory_->note({.state = "saved", .step = state_.step});
  say(fmt::format("stopped on request at step {} of {}, saved in {}; run the same command to go on",
                  with_thousands(state_.step), with_thousands(steps_in_run()), job_.run.dir));
}

/// Prints the results of the run. Collective.
void TrainingRun::tell_end() {
  const StrategySummary of_strategy = strategy_->summary();
  for (const std::string& line : of_strategy.lines) say(line);
  if (!directory_) return;
  const std::string sha256 = weights_sha256(strategy_->whole_state().weights);
  const PublishedComparison published = compare_weights(sha256);
  const double seconds = seconds_since(run_start_);
  nlohmann::ordered_json event = end_event(state_, evaluations_, seconds);
  if (out_of_patience()) event["stopped_early"] = true;
  for (const auto& [name, number] : of_strategy.numbers) event[job_.parallel.strategy][name] = number;
  add_weights(event, sha256, published);
  directory_->write_durably(event);
  directory_->note({.state = "ended", .step = state_.step});
  if (job_.run.print_loss_every_steps > 0) say("Finished Training");
  if (out_of_patience()) say(why_it_ended_early());
  const Evaluation& tested = *evaluations_.test;
  say(fmt::format("done: {} in {}, accuracy {:.2f} % of {}, run directory {}", counted(state_.step, "step"),
                  seconds < 60 ? format_seconds(seconds) : format_duration(seconds), 100 * tested.accuracy(),
                  counted(tested.samples, "test sample"), job_.run.dir));
  for (const auto& [average, part, found] : evaluations_.averages)
    if (part == EvaluatedPart::kTest)
      say(fmt::format("{}: accuracy {:.2f} % of {}, checkpoint {}@{}", average, 100 * found.accuracy(),
                      counted(found.samples, "test sample"), job_.run.dir, average));
  if (const std::string best = best_line(Env::posix(), job_.run.dir); !best.empty()) say(best);
  say_weights(sha256, published);
}

std::string TrainingRun::why_it_ended_early() const {
  return fmt::format("no better accuracy than {:.2f} % in {}: ended by train.patience at step {} of {}",
                     100 * state_.patience->best, counted(state_.patience->without_better, "evaluation"),
                     with_thousands(state_.step), with_thousands(steps_in_run()));
}

PublishedComparison TrainingRun::compare_weights(const std::string& sha256) {
  const auto facts = checkpoint_facts(state_, job_, setup_, comm_, strategy_->whole_state().units);
  return compare_with_published(facts, sha256);
}

/// The last lines of the output. They are no part of the log.
void TrainingRun::say_weights(const std::string& sha256, const PublishedComparison& published) {
  if (!published.line.empty()) progress_.say(published.line);
  progress_.say("weights sha256 " + sha256);
}

}  // namespace lockstep
