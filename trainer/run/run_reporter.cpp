// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The words of what a run tells of its course to people.
#include "trainer/run/run_reporter.hpp"

#include "common/env.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <fmt/format.h>

#include <sstream>
#include <string>
#include <utility>

namespace lockstep {

namespace {

/// "ema 97.31 %, swa 97.42 %"; "" where none are kept.
std::string averages_text(const Evaluations& evaluations, EvaluatedPart part) {
  std::string text;
  for (const AverageEvaluation& average : evaluations.averages)
    if (average.part == part)
      text += fmt::format("{}{} {} %", text.empty() ? "" : ", ", average.name,
                          percent_text(average.found.accuracy()));
  return text;
}

}  // namespace

void RunReporter::say(const std::string& text) {
  if (!run_.files) return;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    progress_.say(line);
    run_.files->log(line);
  }
}

void RunReporter::loss_is_due(const RunState& state, double /*learning_rate*/) {
  say(fmt::format("[{}, {:5}] loss: {:.3f}", state.epoch + 1, state.step_in_epoch, state.unprinted->mean()));
}

void RunReporter::evaluated(const RunState& state, const Evaluations& found) {
  const std::string averages = averages_text(found, run_.judge);
  say(fmt::format("epoch {:>2}/{}  step {}  {} loss {}  accuracy {} %{}{}", state.epoch + 1,
                  run_.job.train.epochs, with_thousands(state.step), found.validation ? "validation" : "test",
                  describe_loss(found.judged()), percent_text(found.judged().accuracy()),
                  averages.empty() ? "" : "  ", averages));
}

void RunReporter::epoch_finished(const FinishedEpoch& epoch) {
  const EpochClock& clock = *epoch.clock;
  const auto fields =
      epoch_fields(epoch, run_.job.train.epochs, averages_text(epoch.evaluations, run_.judge),
                   clock.train_seconds(), clock.samples_per_second(epoch.state.epoch_samples));
  progress_.say(fields);
  run_.files->log(join(fields));
  if (!run_.job.run.curve) return;
  const int columns = output_columns();
  if (!std::exchange(has_scale_, true))
    say(curve_scale(columns, epoch.evaluations.validation ? "validation accuracy" : "test accuracy"));
  say(curve_row(epoch.state.epoch + 1, epoch.evaluations.judged().accuracy(), columns,
                output_terminal().unicode));
}

void RunReporter::why_it_stops(const TimeLimit& limit) {
  if (stop_requested()) {  // its handler has spoken at once
    if (run_.files) run_.files->log(fmt::format("{} received: stopping", stop_signal_name(stop_signal())));
  } else if (limit.reached()) {
    say("the time is up (run.max_seconds, or the end of the allocation): stopping after this step");
  } else {
    say("another rank was told to stop: stopping after this step");
  }
}

void RunReporter::stopped() {
  say(fmt::format("stopped on request at step {} of {}, saved in {}; run {} to go on",
                  with_thousands(run_.state.step), with_thousands(run_.steps()), run_.job.run.dir,
                  way_to_go_on(run_.job)));
}

void RunReporter::run_finished(const FinishedRun& run) {
  const std::string& directory = run_.job.run.dir;
  if (run_.job.run.print_loss_every_steps > 0) say("Finished Training");
  if (run.stopped_early) {
    const auto& [best, without_better, from] = *run.state.patience;
    say(fmt::format("no better accuracy than {} %{} in {}: ended by train.patience at step {} of {}",
                    percent_text(best), from > 0 ? fmt::format(" since step {}", with_thousands(from)) : "",
                    counted(without_better, "evaluation"), with_thousands(run.state.step),
                    with_thousands(run_.steps())));
  }
  const Evaluation& tested = *run.evaluations.test;
  const std::string of_this_start =
      run.from_step > 0 ? fmt::format(", the last {}", with_thousands(run.state.step - run.from_step)) : "";
  say(fmt::format("done: {}{} in {}, accuracy {} % of {}, run directory {}", counted(run.state.step, "step"),
                  of_this_start, format_time(run.seconds), percent_text(tested.accuracy()),
                  counted(tested.samples, "test sample"), directory));
  for (const auto& [average, part, found] : run.evaluations.averages)
    if (part == EvaluatedPart::kTest)
      say(fmt::format("{}: accuracy {} % of {}, checkpoint {}@{}", average, percent_text(found.accuracy()),
                      counted(found.samples, "test sample"), directory, average));
  say(best_line(Env::posix(), directory));
  say_weights(run.sha256, run.published);
}

/// The last lines of the output. They are no part of the log.
void RunReporter::say_weights(const std::string& sha256, const PublishedComparison& published) {
  if (!published.line.empty()) progress_.say(published.line);
  progress_.say("weights sha256 " + sha256);
}

}  // namespace lockstep
