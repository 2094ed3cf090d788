// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Event files, which TensorBoard reads while they grow: the numbers of metrics.jsonl as scalars.
#pragma once

#include "common/env.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Format: a list of records, all numbers little-endian. A record is its length (8 bytes), the length's masked
// CRC-32C, the bytes, and their masked CRC-32C. It is TensorFlow's TFRecord.

/// Castagnoli's polynomial.
std::uint32_t crc32c(std::string_view bytes);
std::string event_record(std::string_view bytes);

/// "events.out.tfevents.SECONDS.lockstep": TensorBoard reads the files of a folder by their names' order.
bool is_event_file(std::string_view name);
/// The path of a file that sorts after all event files of the directory. @throws IoError
std::string next_event_file(Env& env, const std::string& directory);

/// A new file in the folder of a run. Each call is in the file when it returns.
/// All throw IoError: then the file ends with a record that may be torn, and no more is to be written.
class EventFile {
 public:
  /// @throws IoError
  EventFile(Env& env, const std::string& directory);

  /// Declares this step and later ones in earlier files void.
  void start_again_at(std::int64_t step);
  /// A line of metrics.jsonl: each number of a "step", "loss", "evaluation" or "epoch" becomes the scalar EVENT/KEY
  /// of its step. Others are passed over.
  void add_line(const nlohmann::ordered_json& event);

 private:
  AppendFile file_;
};

/// The event file of a run under way: hears of each line of metrics.jsonl. Where it cannot be written, that is a warning,
/// and the run goes on without it.
class TensorBoard {
 public:
  /// Begins a file after those of earlier starts, whose events after `step` are void. The lines of that step
  /// itself are written again, and all that the newest of these files lacks. Where there are none, a new file gets
  /// all lines.
  TensorBoard(Env& env, const std::string& run_dir, std::int64_t step);

  void add_line(const nlohmann::ordered_json& line);

 private:
  void write(const std::function<void()>& action);

  std::optional<EventFile> file_;
};

}  // namespace lockstep
