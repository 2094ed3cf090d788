// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the files of a run folder to what became of the run.
#include "trainer/reports/run_history.hpp"

#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "trainer/checkpoint/run_lock.hpp"
#include "trainer/checkpoint/run_status.hpp"
#include "trainer/checkpoint/trail.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/run_directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr std::array kStatusNames = {"running", "finished", "interrupted", "failed",
                                     "lost",    "damaged",  "no run"};

nlohmann::ordered_json yaml_as_json(const YAML::Node& node) {
  nlohmann::ordered_json json;  // null
  if (node.IsMap()) {
    json = nlohmann::ordered_json::object();
    for (const auto& entry : node) json[entry.first.Scalar()] = yaml_as_json(entry.second);
  } else if (node.IsSequence()) {
    json = nlohmann::ordered_json::array();
    for (const YAML::Node& item : node) json.push_back(yaml_as_json(item));
  } else if (node.IsScalar()) {
    const std::string& text = node.Scalar();
    const bool is_plain = node.Tag() != "!";
    if (is_plain && (text == "true" || text == "false")) return text == "true";
    if (const auto whole = parse_int64(text); is_plain && whole) return *whole;
    if (const auto whole = parse_uint64(text); is_plain && whole) return *whole;
    if (const auto number = parse_double(text); is_plain && number) return *number;
    json = text;
  }
  return json;
}

/// A finished run with a job that this program refuses is not damaged: an earlier version may have made it.
void read_job(Env& env, RunHistory& run, bool has_ended, std::string* damage) {
  const std::string path = run.path + "/job.yaml";
  try {
    const auto bytes = read_patiently(env, [&] { return env.read_first(path, kMaxYamlBytes + 1); });
    run.job_text = as_text(bytes);
    run.job = texts_of_keys(parse_job(run.job_text, path));
  } catch (const MissingDataError&) {
    *damage = run.why_no_job = "it has no job.yaml";
  } catch (const ConfigError& error) {
    run.why_no_job = error.what();
    (has_ended ? run.remark : *damage) = run.why_no_job;
  } catch (const Error& error) {
    *damage = run.why_no_job = error.what();
  }
}

// Events of metrics.jsonl.

/// Nothing where it cannot be read, too.
std::optional<CheckpointDoubt> doubt_about(Env& env, const std::string& path) {
  return or_if_unreadable([&] { return read_doubt(env, path); }, std::nullopt);
}

/// An evaluation in doubt is the last one, but never the best: RUN@best passes it over.
void add_evaluation(RunHistory& run, const MetricsEvent& event, const std::optional<CheckpointDoubt>& doubt) {
  if (doubt && event.integer("step").value_or(0) > doubt->sure_step)
    static_cast<ToldEvaluation&>(run) = told_evaluation(event);
  else
    run.add(event);
}

void add_event(RunHistory& run, const MetricsEvent& event, const std::optional<CheckpointDoubt>& doubt) {
  run.step = std::max(run.step, event.integer("step").value_or(0));
  const std::string_view name = event.name();
  if (name == "epoch" || name == "evaluation" || name == "end") add_evaluation(run, event, doubt);
  if (name == "step") {
    run.train_loss = event.number("loss");
  } else if (name == "epoch") {
    const std::int64_t epoch = event.integer("epoch").value_or(std::ssize(run.epochs) + 1);
    run.train_loss = event.number("train_loss");
    run.epochs.push_back(
        {told_evaluation(event), epoch, run.step, run.train_loss, event.number("train_seconds")});
  } else if (name == "start") {
    run.version = event.text("version").value_or("");
    run.model = event.text("model").value_or("");
    run.data = event.text("data").value_or("");
    run.device = event.text("device").value_or("");
    run.ranks = event.integer("world").value_or(0);
    run.hosts = event.integer("hosts").value_or(0);
    run.parameters = event.integer("parameters").value_or(0);
  } else if (name == "end") {
    run.seconds = event.number("seconds");
    run.from_step = event.integer("from_step").value_or(0);
    run.weights_sha256 = event.text("weights_sha256").value_or("");
    run.published = event.truth("published_hash");
  }
}

/// @returns the name of the last event
std::string read_events(Env& env, RunHistory& run, const OnMetricsEvent& on_event, std::string* damage) {
  const auto doubt = doubt_about(env, run.path);
  std::string last;
  try {
    run.lines = read_metrics(run.path + "/metrics.jsonl", [&](const MetricsEvent& event) {
      add_event(run, event, doubt);
      last.assign(event.name());
      if (on_event) on_event(event);
    });
    if (run.lines.damaged > 0)
      *damage = fmt::format("{} of metrics.jsonl damaged", counted(run.lines.damaged, "line"));
  } catch (const MissingDataError&) {
    if (!run.checkpoints.empty()) *damage = "it has checkpoints and no metrics.jsonl";
  } catch (const Error& error) {
    *damage = error.what();
  }
  return last;
}

/// Duration of a run without "end"; its start is not timed.
std::optional<double> seconds_of_epochs(const std::vector<EpochRecord>& epochs) {
  std::optional<double> sum;
  for (const EpochRecord& epoch : epochs)
    if (epoch.train_seconds) sum = sum.value_or(0) + *epoch.train_seconds;
  return sum;
}

// Outcome of a run.

std::optional<std::int64_t> modified(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? std::optional<std::int64_t>(info.st_mtime) : std::nullopt;
}

struct Outcome {
  RunStatus status = RunStatus::kDamaged;
  std::string remark;
};

/// Outcome of a run that no process holds and whose metrics have no end.
Outcome outcome_without_end(Env& env, const RunHistory& run, bool lock_names_one, const std::string& event) {
  const auto status = read_status(env, run.path);
  const std::string goes_on = train_command(run.path) + " goes on";
  const bool all_is_saved = !run.checkpoints.empty() && run.checkpoints.front().step >= run.step;
  if (status ? status->state == "saved" : all_is_saved && !lock_names_one)  // an older run has no status.json
    return {RunStatus::kInterrupted, "saved on request; " + goes_on};
  if (env.exists(run.path + "/" + kVerdictFile))
    return {RunStatus::kLost, fmt::format("a rank was lost: see its {}; {}", kVerdictFile, goes_on)};
  if (lock_names_one) return {RunStatus::kLost, "its process ended without a message; " + goes_on};
  if (!env.exists(run.path + "/lock")) return {RunStatus::kInterrupted, "not at its end"};
  if (status && status->state == "running")  // its lock was taken over, or the disk was full
    return {RunStatus::kLost, "ended before it could note how; " + goes_on};
  if (event.empty()) return {RunStatus::kFailed, "ended before its first step"};
  if (const auto doubt = doubt_about(env, run.path))
    return {RunStatus::kFailed, fmt::format("what followed step {} is in doubt: at step {} {}",
                                            doubt->sure_step, doubt->found_step, doubt->what)};
  return {RunStatus::kFailed, "ended with an error, which it has printed"};
}

Outcome outcome_of(Env& env, const RunHistory& run, const std::string& last_event,
                   const std::string& damage) {
  const auto owner = or_if_unreadable([&] { return lock_owner(env, run.path); }, std::nullopt);
  if (owner && is_running(*owner)) return {RunStatus::kRunning, fmt::format("process {}", owner->pid)};
  const bool elsewhere = owner && !on_same_host(*owner, LockOwner::self());
  if (elsewhere && last_event != "end")
    return {RunStatus::kRunning, fmt::format("on {}, says its lock", owner->host)};
  const auto has = [&](const char* name) { return env.exists(run.path + "/" + name); };
  if (!run.checkpoints.empty() && !has("job.yaml") && !has("metrics.jsonl"))
    return {RunStatus::kNoRun, "checkpoints without a run, such as imported weights"};
  if (!damage.empty() && !(last_event.empty() && run.checkpoints.empty() && run.job_text.empty()))
    return {RunStatus::kDamaged, damage};
  if (last_event == "end") return {RunStatus::kFinished, ""};
  return outcome_without_end(env, run, owner.has_value(), last_event);
}

}  // namespace

std::string_view spelt(RunStatus status) {
  return kStatusNames.at(static_cast<std::size_t>(status));
}

std::optional<std::string> RunHistory::key(std::string_view path_of_key) const {
  const auto found = job.find(std::string(path_of_key));
  return found == job.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t RunHistory::epochs_asked() const {
  return parse_int64(key("train.epochs").value_or("")).value_or(0);
}

nlohmann::ordered_json RunHistory::config() const {
  return or_if_unreadable(  // null: the run is damaged, and its remark says how
      [&] { return yaml_as_json(load_strict_yaml(job_text, path + "/job.yaml")); }, nullptr);
}

bool has_parts_of_run(Env& env, const std::string& path) {
  const auto has = [&](const char* name) { return env.exists(path + "/" + name); };
  return or_if_unreadable(
      [&] { return has("metrics.jsonl") || has(kTrailFile) || has(kCheckpointsDirectory) || has("lock"); },
      false);
}

RunHistory read_run_history(Env& env, const std::string& path, const OnMetricsEvent& on_event) {
  RunHistory run;
  run.path = path;
  run.when = modified(path);
  if (!has_parts_of_run(env, path)) return run;
  std::string job_damage, damage;
  try {
    run.checkpoints = list_checkpoints(env, path);
  } catch (const Error& error) {
    damage = error.what();
  }
  const std::string last_event = read_events(env, run, on_event, &damage);
  read_job(env, run, last_event == "end", &job_damage);
  if (!run.seconds) run.seconds = seconds_of_epochs(run.epochs);
  if (const auto when = modified(path + "/metrics.jsonl")) run.when = when;
  Outcome outcome;
  try {
    outcome = outcome_of(env, run, last_event, damage.empty() ? job_damage : damage);
  } catch (const Error& error) {
    outcome.remark = error.what();
  }
  run.status = outcome.status;
  if (!outcome.remark.empty()) run.remark = outcome.remark;
  return run;
}

}  // namespace lockstep
