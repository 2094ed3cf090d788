// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Lines of metrics.jsonl, in the order of their keys.
#include "trainer/run/run_events.hpp"

#include <algorithm>

namespace lockstep {
namespace {

void add_evaluations(nlohmann::ordered_json& event, const Evaluations& evaluations) {
  for (const auto& [name, found] :
       {std::pair{"validation", &evaluations.validation}, {"test", &evaluations.test}}) {
    if (!*found) continue;
    const std::string of = name;
    event[of + "_loss"] = (*found)->loss;  // null if not finite
    event[of + "_accuracy"] = (*found)->accuracy();
    event[of + "_samples"] = (*found)->samples;
  }
  for (const auto& [average, part, found] : evaluations.averages) {
    const std::string of = average + (part == EvaluatedPart::kTest ? "_test" : "_validation");
    event[of + "_loss"] = found.loss;
    event[of + "_accuracy"] = found.accuracy();
  }
}

}  // namespace

nlohmann::ordered_json start_event(const Job& job, const JobSetup& setup, const ParallelStrategy& strategy,
                                   const Communicator& comm, int hosts) {
  nlohmann::ordered_json event = {{"event", "start"},
                                  {"version", LOCKSTEP_VERSION},
                                  {"world", comm.size()},
                                  {"hosts", hosts},
                                  {"threads", job.parallel.threads},
                                  {"device", setup.device.kind},
                                  {"backend", setup.device.backend},
                                  {"strategy", job.parallel.strategy}};
  for (const auto& [name, value] : strategy.describe().facts) event[name] = value;
  event.update({{"model", setup.network.name()},
                {"parameters", setup.network.parameters().size},
                {"data", job.data.set},
                {"data_origin", setup.data->origin},
                {"train_samples", setup.data->train.size()},
                {"test_samples", setup.data->test.size()}});
  if (const std::int64_t held_out = setup.data->validation.size(); held_out > 0)
    event["validation_samples"] = held_out;
  event.update({{"global_batch", job.data.global_batch},
                {"grain", job.parallel.grain},
                {"determinism", spelt(job.parallel.determinism)},
                {"seed", job.train.seed},
                {"optimizer", job.train.optimizer.kind},
                {"schedule", job.train.schedule.kind},
                {"learning_rate", strategy.weight_update().learning_rate(0)}});
  return event;
}

/// Lists only the first names if a file has far more tensors than the network.
void add_initial_weights(nlohmann::ordered_json& start, const StartingWeights& initial) {
  constexpr std::size_t kMostNames = 100;
  if (initial.source.empty()) return;
  start["initial_weights"] = initial.source;
  start["initial_tensors"] = initial.taken;
  start["initial_sha256"] = initial.sha256;
  if (!initial.fresh.empty()) start["new_tensors"] = initial.fresh;
  if (initial.left_over.empty()) return;
  const auto shown = std::min(initial.left_over.size(), kMostNames);
  start["unused_tensors"] =
      std::vector(initial.left_over.begin(), initial.left_over.begin() + static_cast<std::ptrdiff_t>(shown));
}

nlohmann::ordered_json step_event(const LoggedStep& step) {
  nlohmann::ordered_json event = {{"event", "step"},
                                  {"epoch", step.state.epoch + 1},
                                  {"step", step.state.step},
                                  {"loss", step.totals.loss() / static_cast<double>(step.totals.samples)},
                                  {"learning_rate", step.learning_rate}};
  if (step.answers.steps > 0) {
    event["train_accuracy"] = step.answers.accuracy();
    event["accuracy_steps"] = step.answers.steps;
  }
  if (step.gradient_norm) event["gradient_norm"] = *step.gradient_norm;
  if (step.samples_per_second) event["samples_per_second"] = *step.samples_per_second;
  return event;
}

nlohmann::ordered_json loss_event(const RunState& state, const LossWindow& window, double learning_rate) {
  return {{"event", "loss"},       {"epoch", state.epoch + 1},   {"step", state.step},
          {"steps", window.steps}, {"mean_loss", window.mean()}, {"learning_rate", learning_rate}};
}

nlohmann::ordered_json evaluation_event(const RunState& state, const Evaluations& evaluations) {
  nlohmann::ordered_json event = {{"event", "evaluation"}, {"epoch", state.epoch + 1}, {"step", state.step}};
  add_evaluations(event, evaluations);
  return event;
}

nlohmann::ordered_json epoch_event(const FinishedEpoch& epoch) {
  const RunState& state = epoch.state;
  nlohmann::ordered_json event = {
      {"event", "epoch"},
      {"epoch", state.epoch + 1},
      {"step", state.step},
      {"train_loss", state.epoch_so_far().mean()},
      {"train_accuracy", state.epoch_so_far().accuracy()},
      {"train_samples", state.epoch_samples},
      {"train_seconds", epoch.clock != nullptr ? epoch.clock->train_seconds() : 0},
      {"learning_rate", epoch.learning_rate}};
  add_evaluations(event, epoch.evaluations);
  if (epoch.rounded_to_zero) event["rounded_to_zero"] = *epoch.rounded_to_zero;
  if (epoch.clock == nullptr) return event;
  event["epoch_seconds"] = epoch.clock->seconds();
  if (const double rate = epoch.clock->samples_per_second(state.epoch_samples); rate > 0)
    event["samples_per_second"] = rate;  // 0: all of its steps were taken before this start
  epoch.clock->add_to(event, epoch.ranks);
  return event;
}

nlohmann::ordered_json end_event(const FinishedRun& run) {
  nlohmann::ordered_json event = {{"event", "end"}, {"step", run.state.step}, {"seconds", run.seconds}};
  if (run.from_step > 0) event["from_step"] = run.from_step;
  add_evaluations(event, run.evaluations);
  if (run.stopped_early) event["stopped_early"] = true;
  for (const auto& [name, number] : run.numbers) event[run.strategy][name] = number;
  event["weights_sha256"] = run.sha256;
  if (run.published.same) event["published_hash"] = *run.published.same;
  return event;
}

}  // namespace lockstep
