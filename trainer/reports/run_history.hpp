// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A run read from its folder. Nothing is written, and nothing in a folder is believed; a run that trains meanwhile may be
/// read.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/metrics_reader.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class RunStatus {
  kRunning,      ///< a process holds its lock, or one of another host says so
  kFinished,     ///< its metrics end with "end"
  kInterrupted,  ///< saved on request, or a copy of a run that was not at its end
  kFailed,       ///< it gave its lock back without having come to an end
  kLost,         ///< its process has gone without a word, or a rank was lost
  kDamaged,      ///< job.yaml or metrics.jsonl is not as a run writes it
  kNoRun,        ///< a folder of something else, or of checkpoints alone
};
/// "running"; "no run"
std::string_view spelt(RunStatus status);

/// An epoch as its line tells it; what is null there, or absent, is nothing here.
struct EpochRecord : ToldEvaluation {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t step = 0;   ///< after which it was evaluated
  std::optional<double> train_loss, train_seconds;
};

struct RunHistory : ToldEvaluations {
  std::string path;
  RunStatus status = RunStatus::kNoRun;
  std::string remark;  ///< why that status, in a few words; may be empty

  std::string job_text;                    ///< job.yaml
  std::map<std::string, std::string> job;  ///< texts_of_keys() of it; empty: it cannot be read
  std::string why_no_job;                  ///< it cannot be read: why

  // As the event "start" has it.
  std::string version, model, data, device;
  std::int64_t ranks = 0, hosts = 0, parameters = 0;  ///< 0: it does not say

  MetricsLines lines;
  std::vector<EpochRecord> epochs;
  std::int64_t step = 0;             ///< the last that is told of
  std::optional<double> train_loss;  ///< loss of the last training step or epoch that is told of
  std::optional<double> seconds;  ///< duration of the start that came to the end, or of the epochs' training
  std::int64_t from_step = 0;     ///< that this start went on from: the seconds of those before are not known
  std::string weights_sha256;     ///< "": it did not come to its end
  std::optional<bool> published;  ///< true: it is the published hash; nothing: none was published

  std::vector<CheckpointEntry> checkpoints;  ///< newest first, by their names alone
  std::optional<std::int64_t> when;          ///< seconds since 1970: when the run last wrote down what it did

  /// The value of a key of job.yaml, or nothing.
  std::optional<std::string> key(std::string_view path) const;
  /// The job as nested objects, lists, numbers and texts; null where job.yaml cannot be read.
  nlohmann::ordered_json config() const;
  /// train.epochs; 0: not known.
  std::int64_t epochs_asked() const;
  /// The number of the last epoch that is told of. A run that began with a checkpoint of another has no lines of those
  /// before.
  std::int64_t epochs_done() const { return epochs.empty() ? 0 : epochs.back().epoch; }
};

/// Reads a folder. What cannot be read makes the status kDamaged, with a remark; nothing is thrown for its sake.
/// Memory holds the epochs and the job, never the steps.
/// @param on_event  is called with every whole line of metrics.jsonl, in order; may be empty
RunHistory read_run_history(Env& env, const std::string& path, const OnMetricsEvent& on_event = {});

/// True if a folder has parts of a run: records, checkpoints or a lock. False where it cannot be looked at.
bool has_parts_of_run(Env& env, const std::string& path);

}  // namespace lockstep
