// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// metrics.jsonl: what happened in a run, one JSON object a line, in order.
#pragma once

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace lockstep {

class AppendFile;

/// Appends events to a file. A line is in it whole or not at all: what a full disk cut short is taken back,
/// kept in memory, and written before the next line. A default-constructed writer (ranks other than 0)
/// swallows everything.
class MetricsWriter {
 public:
  MetricsWriter();
  /// Opens for appending. @throws IoError
  explicit MetricsWriter(const std::string& path);
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

 private:
  std::unique_ptr<AppendFile> file_;
};

}  // namespace lockstep
