// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From RUN@best to a directory, by the manifests of the run's checkpoints and by its metrics.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"
#include "trainer/training/weight_averages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string_view>

namespace lockstep {
namespace {

/// @param on_epoch  is called with the number and the step of each epoch, also of those in doubt; may be empty
/// @returns the evaluations that the run's metrics tell of, without those in doubt
ToldEvaluations evaluations_told(const std::string& run_dir,
                                 const std::function<void(std::int64_t, std::int64_t)>& on_epoch = {}) {
  const auto read = [&] {
    ToldEvaluations told;
    const auto doubt = read_doubt(Env::posix(), run_dir);
    read_metrics(run_dir + "/metrics.jsonl", [&](const MetricsEvent& event) {
      const bool epoch = event.name() == "epoch";
      if (!epoch && event.name() != "end" && event.name() != "evaluation") return;
      const std::int64_t step = event.integer("step").value_or(0);
      if (epoch && on_epoch) on_epoch(event.integer("epoch").value_or(0), step);
      if (doubt && step > doubt->sure_step) return;
      told.add(event);
    });
    return told;
  };
  return or_if_unreadable(read, {});
}

std::string position_text(const CheckpointSummary& checkpoint) {
  if (std::string trouble = checkpoint.trouble(); !trouble.empty()) return trouble;
  std::string text = fmt::format("epoch {}", checkpoint.epoch);
  if (checkpoint.step_in_epoch > 0) text += fmt::format(" + {}", counted(checkpoint.step_in_epoch, "step"));
  if (checkpoint.accuracy()) text += fmt::format(", {} %", percent_text(*checkpoint.accuracy()));
  return text;
}

/// "there are step 1407 (epoch 3, 45.34 %), ..."
std::string those_there_are(const std::vector<CheckpointSummary>& newest_first) {
  constexpr std::size_t kMost = 6;
  if (newest_first.empty()) return "it has none";
  std::vector<std::string> texts;
  for (const CheckpointSummary& checkpoint : newest_first)
    texts.push_back(fmt::format("step:{} ({})", checkpoint.step, position_text(checkpoint)));
  const std::size_t left_out = texts.size() - std::min(texts.size(), kMost);
  texts.resize(texts.size() - left_out);
  return fmt::format("there {} {}{}", texts.size() + left_out == 1 ? "is" : "are", fmt::join(texts, ", "),
                     left_out == 0 ? "" : fmt::format(" and {} more", left_out));
}

constexpr const char* kHowToKeep =
    "run.keep.last and run.keep.every_steps keep more, run.checkpoint_every_steps saves more often";

/// After how many steps the epoch ended, as metrics or manifests tell it.
std::optional<std::int64_t> step_of_epoch(const std::string& run_dir, std::int64_t epoch,
                                          const std::vector<CheckpointSummary>& checkpoints) {
  std::optional<std::int64_t> step;
  evaluations_told(run_dir, [&](std::int64_t number, std::int64_t its_step) {
    if (number == epoch) step = its_step;
  });
  if (step) return step;
  const auto found = std::ranges::find_if(checkpoints, [&](const CheckpointSummary& checkpoint) {
    return checkpoint.trouble().empty() && checkpoint.epoch == epoch && checkpoint.step_in_epoch == 0;
  });
  return found == checkpoints.end() ? std::nullopt : std::optional(found->step);
}

/// @param run_dir  of these checkpoints, which leave out those in doubt
std::string of_step(const std::string& path, const std::string& run_dir, const std::string& what,
                    std::optional<std::int64_t> step, const std::vector<CheckpointSummary>& checkpoints) {
  const auto is_meant = [&](const auto& checkpoint) { return step == checkpoint.step; };
  const auto found = std::ranges::find_if(checkpoints, is_meant);
  if (found != checkpoints.end()) return found->path;
  const auto all = list_checkpoints(Env::posix(), run_dir);
  const auto doubt = read_doubt(Env::posix(), run_dir);
  if (const auto in_doubt = std::ranges::find_if(all, is_meant); doubt && in_doubt != all.end())
    throw DataError(fmt::format("{}: the checkpoint of {} is in doubt: it was {}; {} names it all the same",
                                path, what, why_in_doubt(*doubt), in_doubt->path));
  throw MissingDataError(fmt::format("{}: the run has no checkpoint of {}; {}; {}", path, what,
                                     those_there_are(checkpoints), kHowToKeep));
}

/// The best evaluation of a run, and its checkpoint.
struct BestOfRun {
  std::optional<BestRecord> record;               ///< nothing: none is known
  const CheckpointSummary* checkpoint = nullptr;  ///< null: it was not kept
};

/// A manifest may know of a better one than metrics, whose "end" is cut off where a run goes on.
BestOfRun find_best(const ToldEvaluations& evaluations, const std::vector<CheckpointSummary>& checkpoints) {
  const std::optional<BestRecord>& told = evaluations.best_accuracy;
  const CheckpointSummary* best = best_checkpoint(checkpoints);
  const bool is_of_another_set = best != nullptr && best->test_samples >= 0 &&
                                 evaluations.test_samples >= 0 &&
                                 best->test_samples != evaluations.test_samples;
  if (is_of_another_set) best = nullptr;
  if (best != nullptr && (!told || *best->accuracy() >= told->value)) {
    if (told && told->step == best->step) return {told, best};
    const std::int64_t epoch = best->step_in_epoch == 0 ? best->epoch : 0;
    return {BestRecord{.epoch = epoch, .step = best->step, .value = *best->accuracy()}, best};
  }
  if (!told) return {};
  const auto of_told = std::ranges::find(checkpoints, told->step, &CheckpointSummary::step);
  return {told, of_told == checkpoints.end() ? nullptr : &*of_told};
}

std::string best_of(const std::string& path, const std::string& run_dir,
                    const std::vector<CheckpointSummary>& checkpoints) {
  const auto [best, checkpoint] = find_best(evaluations_told(run_dir), checkpoints);
  if (checkpoint != nullptr) return checkpoint->path;
  if (!best)
    throw MissingDataError(
        fmt::format("{}: no checkpoint of this run was evaluated; {}", path, those_there_are(checkpoints)));
  throw MissingDataError(
      fmt::format("{}: the best of this run, {} % after {}, was not kept; {}; run.keep.best=true keeps it",
                  path, percent_text(best->value), best->place(), those_there_are(checkpoints)));
}

/// 3 of "epoch:3"; nothing for other texts.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  const auto number = parse_whole<std::int64_t>(text.substr(prefix.size()));
  return number && *number >= 0 ? number : std::nullopt;
}

}  // namespace

std::vector<CheckpointSummary> summarise_checkpoints(Env& env, const std::string& run_dir) {
  std::vector<CheckpointSummary> checkpoints;
  for (const CheckpointEntry& entry : sure_checkpoints(env, run_dir)) {
    CheckpointSummary checkpoint;
    checkpoint.path = entry.path;
    try {
      const CheckpointFacts facts = load_manifest(env, entry.path).facts;
      static_cast<RunState&>(checkpoint) = facts;
      checkpoint.test_samples = judged_accuracy(facts).test_samples;
    } catch (const MissingDataError& error) {
      if (!env.exists(entry.path)) continue;  // the run has pruned it meanwhile
      checkpoint.damage = error.what();
    } catch (const DataError& error) {
      checkpoint.damage = error.what();
    } catch (const Error& error) {
      checkpoint.unreadable = error.what();
    }
    checkpoint.step = entry.step;
    checkpoints.push_back(std::move(checkpoint));
  }
  return checkpoints;
}

const CheckpointSummary* best_checkpoint(const std::vector<CheckpointSummary>& newest_first) {
  const CheckpointSummary* best = nullptr;
  for (const CheckpointSummary& checkpoint : newest_first) {
    if (!checkpoint.accuracy()) continue;
    if (best != nullptr && checkpoint.test_samples != best->test_samples) continue;
    if (best == nullptr || *checkpoint.accuracy() >= *best->accuracy()) best = &checkpoint;
  }
  return best;
}

std::string best_line(Env& env, const std::string& run_dir) {
  const ToldEvaluations told = evaluations_told(run_dir);
  if (told.count < 2) return "";
  const auto checkpoints = summarise_checkpoints(env, run_dir);
  const BestOfRun best = find_best(told, checkpoints);
  const auto [epoch, step, accuracy] = *best.record;
  return fmt::format(
      "best: {}accuracy {} % after {}, {}", told.validation_accuracy ? "validation " : "",
      percent_text(accuracy),
      epoch > 0 ? fmt::format("epoch {}", epoch) : fmt::format("step {}", with_thousands(step)),
      best.checkpoint == nullptr ? "not kept (run.keep.best=true keeps it)"
      : epoch > 0                ? fmt::format("checkpoint {}@epoch:{}", run_dir, epoch)
                                 : fmt::format("checkpoint {}@step:{}", run_dir, step));
}

NamedAverage split_average(Env& env, const std::string& path) {
  for (const std::string name : {kEmaBuffer, kSwaBuffer}) {
    const std::string ending = "@" + name;
    if (path.size() <= ending.size() || !path.ends_with(ending)) continue;
    if (read_patiently(env, [&] { return env.exists(path); })) continue;
    return {path.substr(0, path.size() - ending.size()), name};
  }
  return {path, ""};
}

void take_average(CheckpointState& state, const std::string& average, const std::string& path) {
  const auto found = std::ranges::find(state.optimizer, average, &OptimizerBuffer::name);
  const char* key = average == kEmaBuffer ? "train.ema=0.999" : "train.swa.from_epoch=N";
  if (found == state.optimizer.end())
    throw MissingDataError(fmt::format("{}: it keeps no average of its weights named {}; a run with {} does",
                                       path, average, key));
  if (std::ranges::all_of(found->values, [](float number) { return number == 0; }))
    throw MissingDataError(fmt::format(
        "{}: nothing is averaged yet: {} ({})", path,
        average == kEmaBuffer ? "no step was trained" : "the first epoch that counts has not ended", key));
  std::ranges::copy(found->values, state.weights.begin());
  state.facts.average = average;
  state.facts.test_accuracy.reset();
  state.facts.validation_accuracy.reset();
}

std::string named_checkpoint(Env& env, const std::string& path) {
  if (const NamedAverage average = split_average(env, path); !average.name.empty())
    return named_checkpoint(env, average.path) + "@" + average.name;
  const std::size_t at = path.rfind('@');
  if (at == path.npos || at == 0 || read_patiently(env, [&] { return env.exists(path); })) return path;
  std::string run_dir = path.substr(0, at);
  const std::string name = path.substr(at + 1);
  const auto epoch = number_behind(name, "epoch:"), step = number_behind(name, "step:");
  const bool is_name = name == "best" || name == "last" || epoch || step;
  const bool has_run = is_run(env, run_dir) || !list_checkpoints(env, run_dir).empty();
  if (!is_name && !has_run) return path;
  if (!is_name)
    throw UsageError(fmt::format("{}: after @ write best, last, epoch:N, step:N, ema or swa, not {}", path,
                                 quoted_text(name)));
  if (!has_run) throw MissingDataError(why_no_run(env, run_dir));
  if (name == "last") return run_dir;
  const auto checkpoints = summarise_checkpoints(env, run_dir);
  if (name == "best") return best_of(path, run_dir, checkpoints);
  if (step) return of_step(path, run_dir, fmt::format("step {}", *step), step, checkpoints);
  return of_step(path, run_dir, fmt::format("epoch {}", *epoch), step_of_epoch(run_dir, *epoch, checkpoints),
                 checkpoints);
}

}  // namespace lockstep
