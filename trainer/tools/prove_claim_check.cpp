// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Check of a run's claims. Events and facts are made by the run's own code, and compared key by key.
#include "common/text_layout.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/published_hash.hpp"
#include "trainer/run/run_events.hpp"
#include "trainer/tools/prove_replay.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace lockstep {
namespace {

std::optional<std::int64_t> whole_number(const nlohmann::json& event, const char* key) {
  const auto value = event.value(key, nlohmann::json());
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

/// True if train.patience counts this line.
bool is_counted(const ClaimedLine& line) {
  return line.event == "epoch" || line.event == "evaluation";
}

void take_away(LossWindow& from, const LossWindow& part) {
  from.samples -= part.samples;
  from.correct -= part.correct;
  for (std::size_t i = 0; i < from.loss_units.limbs.size(); ++i)
    from.loss_units.limbs[i] -= part.loss_units.limbs[i];
}

}  // namespace

void ClaimCheck::read() {
  for (const ClaimedLine& line : run_.metrics.lines()) {
    const bool in_interval = interval_.steps().contains(line.step);
    if (line.event == "start") {
      if (const auto samples = whole_number(run_.metrics.event(line), "test_samples"))
        test_sizes_.insert(*samples);
    } else if ((line.event == "loss" || line.event == "step") && in_interval) {
      const char* key = line.event == "loss" ? "steps" : "accuracy_steps";
      if (const auto steps = whole_number(run_.metrics.event(line), key); steps && *steps > 0)
        windows_.insert(line.step - std::min(*steps, line.step));
    }
  }
  if (interval_.end.empty()) return;
  const CheckpointFacts there = load_manifest(Env::posix(), interval_.end).facts;
  end_is_tested_ = there.test_accuracy.has_value();
  end_is_validated_ = there.validation_accuracy.has_value();
  end_patience_ = there.patience;
  if (there.unprinted) windows_.insert(interval_.last - std::min(there.unprinted->steps, interval_.last));
  windows_.insert(interval_.last - std::min(there.unlogged.steps, interval_.last));
  if (const auto samples = evaluated_test_samples(there); samples >= 0) test_sizes_.insert(samples);
}

std::string ClaimCheck::initial_weights() const {
  for (const ClaimedLine& line : run_.metrics.of_step(0)) {
    const auto said = run_.metrics.event(line).value("initial_sha256", nlohmann::json());
    if (line.event == "start" && said.is_string()) return said.get<std::string>();
  }
  return "";
}

/// Restores sums that began before the checkpoint: it has their part up to there. A loss lacks the right
/// answers, an accuracy lacks the loss.
void ClaimCheck::begin(const RunState& state) {
  const std::int64_t step = state.step;
  LossWindow so_far = state.epoch_so_far();
  sums_at_[step] = answers_at_[step] = so_far;
  for (const auto& [window, sums] :
       {std::pair(&*state.unprinted, &sums_at_), std::pair(&state.unlogged, &answers_at_)}) {
    LossWindow before = so_far;
    take_away(before, *window);
    (*sums)[step - window->steps] = before;
  }
  start_patience_ = *state.patience;
  if (accuracy_on(judging_part(run_.job), state)) return;
  // Saved by a stop before its evaluation, which the interval before compares.
  for (const ClaimedLine& line : run_.metrics.of_step(step)) {
    const auto event = run_.metrics.event(line);
    const auto said = event.value(
        run_.setup.data->validation.size() > 0 ? "validation_accuracy" : "test_accuracy", nlohmann::json());
    if (is_counted(line) && said.is_number()) judged_.emplace_back(step, said.get<double>());
  }
}

std::int64_t ClaimCheck::next_stop(std::int64_t step) const {
  const auto window = windows_.upper_bound(step);
  return std::min(run_.metrics.next_step(step),
                  window == windows_.end() ? std::numeric_limits<std::int64_t>::max() : *window);
}

void ClaimCheck::remember(const RunState& state) {
  if (windows_.contains(state.step)) sums_at_[state.step] = answers_at_[state.step] = state.epoch_so_far();
}

bool ClaimCheck::wants_gradient_norm(std::int64_t step) const {
  return std::ranges::any_of(run_.metrics.of_step(step),
                             [](const ClaimedLine& line) { return line.event == "step"; });
}

bool ClaimCheck::wants_evaluation(std::int64_t step, EvaluatedPart part) const {
  if (!interval_.steps().contains(step) || run_.setup.data->part(part).size() == 0) return false;
  const bool is_labelled = part == EvaluatedPart::kTest ? end_is_tested_ : end_is_validated_;
  return (is_labelled && step == interval_.last) ||
         std::ranges::any_of(run_.metrics.of_step(step), [&](const ClaimedLine& line) {
           return line.event == "end" || (is_counted(line) && part == judging_part(run_.job));
         });
}

void ClaimCheck::compare_lines(const RunState& state, const StepNumbers& numbers) {
  const std::int64_t step = state.step;
  if (step > 0 && !interval_.steps().contains(step)) return;  // the interval before compares them
  for (const ClaimedLine& line : run_.metrics.of_step(step)) {
    if (is_counted(line)) judged_.emplace_back(step, numbers.evaluations.judged().accuracy());
    const auto wrong = wrong_in(line, state, numbers);
    if (wrong.empty()) continue;
    refute(verdict_, step, "metrics",
           fmt::format("line {} of metrics.jsonl (event {}) differs from the computed values: {}",
                       line.number, line.event, fmt::join(wrong, ", ")),
           "metrics.jsonl was changed, or is of another run");
  }
}

/// The accuracy is that of as many steps as the event says.
std::vector<std::string> ClaimCheck::wrong_in_step(const nlohmann::json& said, const RunState& state,
                                                   const StepNumbers& numbers) {
  const auto steps = whole_number(said, "accuracy_steps");
  const auto answers = window(answers_at_, state, steps.value_or(0));
  if (said.contains("train_accuracy") && (!answers || answers->steps == 0))
    return {"accuracy_steps is not a number of steps after which an accuracy is told here"};
  return differing_event(said,
                         step_event({.state = state,
                                     .totals = numbers.totals,
                                     .learning_rate = learning_rate(state),
                                     .answers = answers.value_or(LossWindow()),
                                     .gradient_norm = numbers.gradient_norm}),
                         {});
}

std::vector<std::string> ClaimCheck::wrong_in(const ClaimedLine& line, const RunState& state,
                                              const StepNumbers& numbers) {
  const auto said = run_.metrics.event(line);
  if (line.event == "start") {
    auto own = start_event(run_.job, run_.setup, strategy_, comm_, 1);
    for (const auto& fact : strategy_.describe().facts) own.erase(fact.first);
    add_initial_weights(own, initial_);
    auto place = kOfThePlace;
    for (const char* key : {"initial_weights", "unused_tensors"})
      if (!initial_.source.empty()) place.insert(key);
    return differing_event(said, own, place);
  }
  const double rate = learning_rate(state);
  if (line.event == "step") return wrong_in_step(said, state, numbers);
  if (line.event == "loss") {
    const auto loss = window(sums_at_, state, whole_number(said, "steps").value_or(0));
    if (!loss || loss->steps == 0)
      return {"steps is not a number of steps after which a loss is printed here"};
    return differing_event(said, loss_event(state, *loss, rate), {});
  }
  if (line.event == "epoch" && state.step_in_epoch != strategy_.sampler().steps_per_epoch())
    return {"no epoch ends with this step"};
  if (line.event == "evaluation" && state.step_in_epoch == strategy_.sampler().steps_per_epoch())
    return {"an epoch ends with this step"};
  std::set<std::string> leave_out = kTimes;
  if (is_of_another_test_set(state.step, whole_number(said, "test_samples").value_or(-1)))
    leave_out.insert(kOfTheTestSet.begin(), kOfTheTestSet.end());
  if (!numbers.rounded_to_zero && run_.job.train.precision == Precision::kInt16)
    leave_out.insert("rounded_to_zero");  // a GPU does not count it
  if (line.event == "end") {
    if (run_.job.train.patience > 0 && (!end_patience_ || state.step < interval_.last))
      leave_out.insert("stopped_early");
    if (or_if_unreadable([] { return published_hashes().empty(); }, true)) leave_out.insert("published_hash");
  }
  const Evaluations& evaluations = numbers.evaluations;
  const FinishedEpoch epoch{.state = state,
                            .evaluations = evaluations,
                            .learning_rate = rate,
                            .rounded_to_zero = numbers.rounded_to_zero};
  const auto own = line.event == "evaluation" ? evaluation_event(state, evaluations)
                   : line.event == "end"      ? end_of_run(state, evaluations)
                                              : epoch_event(epoch);
  return differing_event(said, own, leave_out);
}

nlohmann::ordered_json ClaimCheck::end_of_run(const RunState& state, const Evaluations& evaluations) const {
  const TrainedState trained = strategy_.whole_state();
  const std::string digest = weights_sha256(trained.weights);
  const auto facts = checkpoint_facts(state, run_.job, run_.setup, comm_, trained.units);
  return end_event({.state = state,
                    .evaluations = evaluations,
                    .sha256 = digest,
                    .published = compare_with_published(facts, digest),
                    .stopped_early = run_.job.train.patience > 0 && end_patience_ &&
                                     end_patience_->without_better >= run_.job.train.patience});
}

/// Sums over so many steps up to this one. Nothing if they do not lie in one epoch, or if no checkpoint knows
/// their beginning.
std::optional<LossWindow> ClaimCheck::window(const SumsAtSteps& sums, const RunState& state,
                                             std::int64_t steps) {
  if (steps == 0) return LossWindow();
  if (steps < 0 || steps > state.step_in_epoch) return std::nullopt;
  LossWindow window = state.epoch_so_far();
  window.steps = steps;
  if (steps < state.step_in_epoch) {
    const auto before = sums.find(state.step - steps);
    if (before == sums.end()) return std::nullopt;
    take_away(window, before->second);
  }
  window.loss_units.carry();
  return window;
}

/// The run may have been tested on another number of samples when the line was written.
bool ClaimCheck::is_of_another_test_set(std::int64_t step, std::int64_t samples) {
  const std::int64_t here = run_.setup.data->test.size();
  const bool other = samples > 0 && samples != here &&
                     (test_sizes_.contains(samples) || is_size_of_a_later_start(step, samples));
  if (other) test_sizes_.insert(samples);
  if (other && !std::exchange(test_size_was_told_, true))
    verdict_.not_proved.push_back(
        {{step, step},
         fmt::format("its test accuracy was measured on {}, and data.test_samples is {} here",
                     counted(samples, "sample"), here)});
  return other;
}

/// True if the start that evaluated this step had one test set, of so many samples. Of the first start the event "start"
/// says the number. The last step of a start may be evaluated by the next one, after a stop.
bool ClaimCheck::is_size_of_a_later_start(std::int64_t step, std::int64_t samples) const {
  const auto starts = or_if_unreadable(
      [&] { return first_steps_of_starts(run_.job.run.dir + "/" + kRankFile); }, std::vector<std::int64_t>());
  const auto is_of_start_that_took = [&](std::int64_t taken) {
    const auto next = std::ranges::upper_bound(starts, taken);
    if (next == starts.begin() || *std::prev(next) == 1) return false;
    const std::int64_t last = next == starts.end() ? std::numeric_limits<std::int64_t>::max() : *next - 2;
    const StepRange sure{*std::prev(next), last};
    return std::ranges::none_of(run_.metrics.lines(), [&](const ClaimedLine& line) {
      return sure.contains(line.step) &&
             whole_number(run_.metrics.event(line), "test_samples").value_or(samples) != samples;
    });
  };
  return is_of_start_that_took(step) || is_of_start_that_took(step + 1);
}

/// Facts that a checkpoint of this state would have.
CheckpointFacts ClaimCheck::facts_here(const CheckpointFacts& there, const RunState& state,
                                       const Evaluations& evaluations) {
  RunState now = state;
  const bool epoch_ended = now.step_in_epoch == strategy_.sampler().steps_per_epoch();
  if (epoch_ended && there.step_in_epoch == 0) now.start_next_epoch();
  CheckpointFacts facts = checkpoint_facts(now, run_.job, run_.setup, comm_, strategy_.whole_state().units);
  const LossWindow unknown{.steps = -1, .samples = -1, .correct = -1, .loss_units = {}};
  if (there.unprinted) facts.unprinted = window(sums_at_, state, there.unprinted->steps).value_or(unknown);
  if (there.unlogged != LossWindow())
    facts.unlogged = window(answers_at_, state, there.unlogged.steps).value_or(unknown);
  const bool of_another_set = is_of_another_test_set(there.step, evaluated_test_samples(there));
  if (evaluations.test && !of_another_set) facts.test_accuracy = evaluations.test->accuracy();
  if (evaluations.validation) facts.validation_accuracy = evaluations.validation->accuracy();
  const bool is_counted_here = !of_another_set || judging_part(run_.job) != EvaluatedPart::kTest;
  facts.patience = is_counted_here ? patience_here(there) : std::nullopt;
  return facts;
}

/// Counted from the start of the interval, or from where the run began to count anew. Nothing: it is not claimed, or
/// the lines of its evaluations are gone.
std::optional<CheckpointPatience> ClaimCheck::patience_here(const CheckpointFacts& there) const {
  const std::int64_t start = interval_.start.step;
  if (!there.patience || run_.metrics.text().empty() || run_.metrics.lost_up_to() > start) return {};
  const std::int64_t from = there.patience->counted_from;
  CheckpointPatience patience = start_patience_;
  const bool begins_here =
      from == start - 1 && from > patience.counted_from;  // the evaluation of `start` is to come
  if (from >= start || begins_here) patience = {.counted_from = from};
  for (const auto& [step, accuracy] : judged_)
    if (step > from && (step < there.step || there.accuracy())) patience.count(accuracy);
  return patience;
}

void ClaimCheck::compare_manifest(const CheckpointFacts& there, const RunState& state,
                                  const Evaluations& evaluations) {
  auto wrong = differing_facts(there, facts_here(there, state, evaluations));
  if (there.validation_accuracy && !evaluations.validation)
    wrong.emplace_back("validation_accuracy is of nothing that this run evaluates");
  if (wrong.empty()) return;
  refute(verdict_, state.step, "manifest",
         fmt::format("the manifest of its checkpoint differs from the computed values: {}",
                     fmt::join(wrong, ", ")),
         "the manifest was changed, with its checksum");
}

}  // namespace lockstep
