// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cuts a run's metrics back to the checkpoint that it goes on from, so that no step appears in them twice.
#pragma once

#include "common/env.hpp"
#include "trainer/checkpoint/state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// Compares metrics.jsonl with what the checkpoint that a run goes on from noted of it. Lines that are lost were told
/// at an earlier start if an event "lost" of this step or a later one stands in the file.
/// @returns what is lost and what goes on, in one line; nothing: all that was noted is there
/// A file whose noted lines were changed is first copied to metrics.jsonl.damaged.
std::optional<std::string> lost_metrics(Env& env, const std::string& path, std::int64_t step,
                                        const CheckpointMetrics& noted);

/// The bytes of so many whole lines; all whole lines, if there are fewer.
std::string_view first_lines(std::string_view text, std::int64_t lines);

struct MetricsCut {
  std::size_t kept_lines = 0;
  std::size_t dropped_lines = 0;  ///< a torn last line counts
};

/// Keeps the lines from the start of metrics.jsonl up to the first that comes after `step`: one whose "step"
/// is larger, {"event":"end"}, or text that is no JSON object (the torn end that a crash leaves). A line
/// without "step" belongs to the ones before it. The line of an epoch, or of an evaluation within one, at exactly
/// `step` stays only if `evaluated`: the checkpoint was taken after that evaluation.
///
/// The file is replaced in one step, and only if something must go. A file that is not there is an empty one.
MetricsCut truncate_metrics(Env& env, const std::string& path, std::int64_t step, bool evaluated = true);

/// True if the last whole line is the end of a run. False if there is no such file. @throws IoError
bool ends_a_run(Env& env, const std::string& path);
/// The weights_sha256 that the last line gives, if that line is the end of a run of so many steps. @throws IoError
std::optional<std::string> recorded_end(Env& env, const std::string& path, std::int64_t steps);

}  // namespace lockstep
