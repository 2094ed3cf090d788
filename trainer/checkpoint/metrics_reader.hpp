// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A run's metrics.jsonl: read line by line, of whatever length, without trust in it; and cut back at a resume.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/state.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// "2026-11-23T16:07:41.123Z", as in each line of a run, in seconds since 1970. Nothing: other text.
std::optional<double> seconds_since_1970(std::string_view time);

/// One line that is a JSON object. A view: valid as long as the line that it was read from.
class MetricsEvent {
 public:
  /// Takes the place of the event that was read before. False, and no event, where the line is not a JSON object.
  bool read(std::string_view line);

  /// Event: "start", "step", "loss", "epoch", "end", ...; "" where the line has none.
  std::string_view name() const { return name_; }
  /// Finite number under this key; nothing if there is none, such as null for a loss that is not finite.
  std::optional<double> number(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<bool> truth(std::string_view key) const;
  /// May hold any characters: to be printed by common/output.hpp.
  std::optional<std::string> text(std::string_view key) const;
  /// The value as written in the line, lists and objects among them; "" where there is none.
  std::string_view raw(std::string_view key) const;
  std::string_view line() const { return line_; }
  /// The line; discarded (is_discarded()) where JSON's reader takes it for none, such as one that is no UTF-8.
  nlohmann::ordered_json json() const;
  /// True if a key is written with escapes, as no run writes one: the calls above do not find it.
  bool has_escaped_keys() const;

 private:
  std::string_view line_, name_;
  std::vector<std::pair<std::string_view, std::string_view>> fields_;
};

/// The numbers of an evaluation that an event tells; what is null there, or absent, is nothing here. Accuracies are from 0 to 1.
struct ToldEvaluation {
  std::optional<double> test_loss, test_accuracy, validation_loss, validation_accuracy;
  std::optional<double> ema_accuracy = {}, swa_accuracy = {};  ///< as accuracy(), of averages of the weights

  /// Accuracy that a run is judged by: on held-out samples, or on the test set.
  std::optional<double> loss() const { return validation_accuracy ? validation_loss : test_loss; }
  std::optional<double> accuracy() const { return validation_accuracy ? validation_accuracy : test_accuracy; }
};
ToldEvaluation told_evaluation(const MetricsEvent& event);

/// The best value of a number, and its place.
struct BestRecord {
  std::int64_t epoch = 0;  ///< 0: within an epoch
  std::int64_t step = 0;
  double value = 0;

  /// "epoch 3", "step 500"
  std::string place() const {
    return epoch > 0 ? "epoch " + std::to_string(epoch) : "step " + std::to_string(step);
  }
};

/// The last evaluation that events tell of, how many there are, and the best: by accuracy(), the first among equals.
/// Where the number of test samples that a run is judged on has changed (data.test_samples), those since then.
struct ToldEvaluations : ToldEvaluation {
  std::int64_t test_samples = -1;  ///< that the run is judged on; -1: on held-out samples, or it is not told
  std::int64_t count = 0;  ///< with an accuracy; what "end" says again of the last step is not counted
  std::optional<BestRecord> best_accuracy, best_loss;

  /// @param event  "epoch", "evaluation" or "end"
  void add(const MetricsEvent& event);

 private:
  std::int64_t counted_step_ = -1;
};

using OnMetricsEvent = std::function<void(const MetricsEvent&)>;
using OnDamagedLine = std::function<void(std::string_view)>;

/// A longer line is damaged: it is passed over without being kept.
inline constexpr std::size_t kLongestMetricsLine = std::size_t{1} << 20;

struct MetricsLines {
  std::int64_t whole = 0;
  std::int64_t damaged = 0;  ///< no JSON objects
  friend bool operator==(const MetricsLines&, const MetricsLines&) = default;
};

/// Calls `on_event` for each whole line in its order. Memory is bounded for a file of any size.
/// @param on_damaged  is called for each damaged line in its order, with "" for one that is too long; may be empty
/// @throws MissingDataError: it is not there; DataError: it is not a regular file; IoError
MetricsLines read_metrics(const std::string& path, const OnMetricsEvent& on_event,
                          const OnDamagedLine& on_damaged = {});

// Back to the checkpoint that a run goes on from, so that no step appears twice: metrics_cut.cpp.

/// Compares metrics.jsonl with what the checkpoint that a run goes on from noted of it. Lines that are lost were told
/// at an earlier start if the file has an event "lost" of this step; one of a later step is cut off.
/// @returns what is lost and what goes on, in one line; nothing: all that was noted is there
/// A file whose noted lines were changed is first copied to metrics.jsonl.damaged.
std::optional<std::string> lost_metrics(Env& env, const std::string& path, std::int64_t step,
                                        const CheckpointPosition& noted);

/// The bytes of so many whole lines; all whole lines, if there are fewer.
std::string_view first_lines(std::string_view text, std::int64_t lines);

/// Keeps the lines of metrics.jsonl before the first one that comes after `step`. That is one whose "step" is
/// larger, {"event":"end"}, or text that is not a JSON object (the torn end that a crash leaves). A line without
/// "step" belongs to the ones before it. The line of an epoch, or of an evaluation within one, at exactly
/// `step` stays only if `evaluated`: the checkpoint was taken after that evaluation.
///
/// The file is replaced in one step, and only if something must go. A file that is not there is an empty one.
void truncate_metrics(Env& env, const std::string& path, std::int64_t step, bool evaluated = true);

struct RecordedEnd {
  std::optional<std::int64_t> step;
  std::optional<std::string> weights_sha256;
};
/// The last whole line, if it is the end of a run. Nothing also where there is no such file. @throws IoError
std::optional<RecordedEnd> recorded_end(Env& env, const std::string& path);

}  // namespace lockstep
