// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every number is one that `lockstep prove` promises to compare.
#include "common/buffers.hpp"
#include "tests/chaos/fault_campaign.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/support/forged_run.hpp"

namespace lockstep::chaos {
namespace {

using testing::forge_checkpoint;

const std::map<std::string, std::vector<std::string>> kNumbers = {
    {"start", {"parameters", "train_samples", "global_batch", "grain", "seed", "optimizer", "learning_rate"}},
    {"step", {"epoch", "step", "loss", "learning_rate"}},
    {"loss", {"epoch", "step", "steps", "mean_loss"}},
    {"epoch",
     {"epoch", "step", "train_loss", "train_samples", "learning_rate", "test_loss", "test_accuracy",
      "test_samples"}},
    {"end", {"step", "test_loss", "test_accuracy", "test_samples", "weights_sha256"}}};

/// The smallest change, or a large one.
double other_number(double number, Dice& dice) {
  return dice.percent(50) ? std::nextafter(number, 1e9) : number * 0.9 + 0.01;
}

void change_value(nlohmann::json& value, Dice& dice) {
  if (value.is_string()) {
    auto text = value.get<std::string>();
    char& letter = text[static_cast<std::size_t>(dice.between(0, std::ssize(text) - 1))];
    letter = letter == 'a' ? 'b' : 'a';
    value = text;
  } else if (value.is_number_integer()) {
    value = value.get<std::int64_t>() + 1;
  } else {
    value = other_number(value.get<double>(), dice);
  }
}

std::string forge_line(const std::string& run, Dice& dice) {
  std::string story;
  testing::forge_metrics(run, [&](std::vector<nlohmann::json>& events) {
    // As many of the few lines of an epoch as of the many of steps.
    auto kind = std::next(kNumbers.begin(), dice.between(0, std::ssize(kNumbers) - 1));
    std::vector<nlohmann::json*> lines;
    for (nlohmann::json& event : events)
      if (event.at("event") == kind->first) lines.push_back(&event);
    if (lines.empty()) throw Violation("the run wrote no event " + kind->first);
    nlohmann::json& event = *dice.pick(lines);
    const std::string& key = dice.pick(kind->second);
    const std::string before = event.at(key).dump();
    change_value(event.at(key), dice);
    story = fmt::format("{} of event {}: {} to {}", key, kind->first, before, event.at(key).dump());
  });
  return story;
}

std::string forge_label(const std::string& run, Dice& dice) {
  std::string story;
  std::vector<std::int64_t> labelled;
  for (const std::int64_t step : testing::checkpoint_steps(run))
    forge_checkpoint(run, step, [&](CheckpointState& state) {
      if (state.facts.test_accuracy) labelled.push_back(step);
    });
  if (labelled.empty()) throw Violation("no checkpoint of the run has a label");
  const std::int64_t step = dice.pick(labelled);
  forge_checkpoint(run, step, [&](CheckpointState& state) {
    const double before = *state.facts.test_accuracy;
    state.facts.test_accuracy = before < 0.5 ? other_number(before, dice) : before * 0.9;
    story = fmt::format("test_accuracy of step {}: {} to {}", step, before, *state.facts.test_accuracy);
  });
  return story;
}

using FactChange = std::pair<const char*, std::function<void(CheckpointFacts&, Dice&)>>;

const std::vector<FactChange>& fact_changes() {
  static const std::vector<FactChange> all = {
      {"epoch", [](auto& f, Dice&) { ++f.epoch; }},
      {"step_in_epoch", [](auto& f, Dice&) { ++f.step_in_epoch; }},
      {"seed", [](auto& f, Dice&) { ++f.seed; }},
      {"epoch_samples", [](auto& f, Dice&) { ++f.epoch_samples; }},
      {"epoch_correct", [](auto& f, Dice&) { f.epoch_correct += f.epoch_correct > 0 ? -1 : 1; }},
      {"epoch_loss_sum",
       [](auto& f, Dice& dice) { f.epoch_loss_sum = other_number(f.epoch_loss_sum, dice); }},
      {"epoch_loss_units", [](auto& f, Dice& dice) { ++f.epoch_loss_units.limbs[dice.between(0, 4)]; }},
      {"unprinted_loss.steps", [](auto& f, Dice&) { ++f.unprinted.value().steps; }},
      {"unprinted_loss.samples", [](auto& f, Dice&) { ++f.unprinted.value().samples; }},
      {"unlogged_answers.steps", [](auto& f, Dice&) { ++f.unlogged.steps; }},
      {"unprinted_loss.units", [](auto& f, Dice&) { ++f.unprinted.value().loss_units.limbs[0]; }},
      {"gradient_units.exponents", [](auto& f, Dice& dice) { ++dice.pick(f.gradient_units.exponents); }},
      {"gradient_units.changed_at", [](auto& f, Dice&) { ++f.gradient_units.changed_at; }},
      {"arithmetic.since", [](auto& f, Dice&) { ++f.arithmetic.since; }},
      {"job", [](auto& f, Dice&) { f.job.at("train.seed") += "1"; }},
      {"model", [](auto& f, Dice&) { f.model.at("classes") = "9"; }},
      {"trail.records", [](auto& f, Dice&) { ++f.trail->count; }},
      {"trail.sha256",
       [](auto& f, Dice&) { f.trail->sha256.front() = f.trail->sha256.front() == 'a' ? 'b' : 'a'; }},
      {"metrics.lines", [](auto& f, Dice&) { --f.metrics->count; }},
      {"metrics.sha256",
       [](auto& f, Dice&) { f.metrics->sha256.front() = f.metrics->sha256.front() == 'a' ? 'b' : 'a'; }}};
  return all;
}

std::string forge_fact(const std::string& run, Dice& dice) {
  const std::int64_t step = dice.pick(testing::checkpoint_steps(run));
  const FactChange& change = dice.pick(fact_changes());
  forge_checkpoint(run, step, [&](CheckpointState& state) { change.second(state.facts, dice); });
  return fmt::format("{} in the manifest of step {}", change.first, step);
}

/// Weights, running statistics, what the optimiser remembers: by one bit.
std::string forge_number(const std::string& run, Dice& dice) {
  const std::int64_t step = dice.pick(testing::checkpoint_steps(run));
  std::string story;
  forge_checkpoint(run, step, [&](CheckpointState& state) {
    auto& values = dice.percent(50) ? state.weights : dice.pick(state.optimizer).values;
    // Half of the time what is kept beside the parameters, which are few.
    const bool last = dice.percent(50);
    const auto at = static_cast<std::size_t>(
        dice.between(last ? std::max<std::int64_t>(std::ssize(values) - 20, 0) : 0, std::ssize(values) - 1));
    const auto bit = dice.between(0, 22);
    values[at] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(values[at]) ^ (1U << bit));
    story =
        fmt::format("bit {} of number {} of {} in the checkpoint of step {}", bit, at, values.size(), step);
  });
  return story;
}

std::string forge_record(const std::string& run, Dice& dice) {
  std::string story;
  testing::forge_trail(run, [&](TrailHead& head, std::vector<TrailRecord>& records) {
    TrailRecord& record = dice.pick(records);
    switch (dice.between(0, 6)) {
      case 0:
        records.push_back(records.back());
        ++records.back().step;
        story = "a record behind the last";
        return;
      case 1:
        record.apart += 12345;
        story = fmt::format("apart of step {}", record.step);
        return;
      case 2:
        head.facts.at("job.train.seed") += "1";
        story = "the seed in the head";
        return;
      case 3:
        dice.pick(head.trained).name += "x";
        story = "a tensor's name in the head";
        return;
      case 4:
        dice.pick(head.buffers) += "x";
        story = "a buffer's name in the head";
        return;
      default:
        dice.pick(record.fingerprints) += std::uint64_t{1} << dice.between(0, 63);
        story = fmt::format("a fingerprint of step {}", record.step);
    }
  });
  return story;
}

struct Forgery {
  const char* label;
  std::string (*forge)(const std::string& run, Dice& dice);
};
constexpr Forgery kForgeries[] = {{"a line of metrics.jsonl", forge_line},
                                  {"the label of a checkpoint", forge_label},
                                  {"another number of a manifest", forge_fact},
                                  {"weights or optimiser in a checkpoint", forge_number},
                                  {"the trail", forge_record}};

}  // namespace

std::vector<std::string> forgery_labels() {
  return labels_of(kForgeries);
}

std::string forge(const std::string& label, const std::string& run, Dice& dice) {
  const auto* kind =
      std::ranges::find(kForgeries, label, [](const Forgery& k) { return std::string(k.label); });
  return kind->forge(run, dice);
}

}  // namespace lockstep::chaos
