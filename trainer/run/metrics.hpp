// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// metrics.jsonl: what happened in a run, one JSON object a line, in order.
#pragma once

#include "common/sha256.hpp"
#include "trainer/checkpoint/state.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace lockstep {

class AppendFile;
class Env;

/// Appends events to a file. A line is in it whole or not at all: what a full disk cut short is taken back,
/// kept in memory, and written before the next line. A default-constructed writer (ranks other than 0)
/// swallows everything.
class MetricsWriter {
 public:
  MetricsWriter();
  /// Opens for appending behind the lines that are there. @throws IoError
  MetricsWriter(Env& env, const std::string& path);
  ~MetricsWriter();
  MetricsWriter(MetricsWriter&&) noexcept;
  MetricsWriter& operator=(MetricsWriter&&) noexcept;

  /// @throws IoError if the line is not in the file yet
  void write(const nlohmann::ordered_json& event);
  /// Returns when all lines will survive a power loss. May run on another thread than write.
  /// @throws IoError also if a line is not in the file yet
  void sync();
  /// Whether every line is in the file.
  bool is_complete() const;
  /// What a checkpoint notes: all lines so far. They are in the file once sync() has returned.
  CheckpointMetrics position() const;

 private:
  std::int64_t lines_ = 0;
  Sha256 hash_;  ///< of the bytes of those lines
  std::unique_ptr<AppendFile> file_;
};

}  // namespace lockstep
