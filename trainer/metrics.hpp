// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// metrics.jsonl: what happened in a run, one JSON object a line, in order.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <string>

namespace lockstep {

/// Appends events to a file; each line is written whole and flushed, so that a reader never sees half of one.
/// A default-constructed writer (ranks other than 0) swallows everything.
class MetricsWriter {
 public:
  MetricsWriter() = default;
  /// Opens for appending. @throws IoError
  explicit MetricsWriter(const std::string& path);

  /// @throws IoError
  void write(const nlohmann::ordered_json& event);
  /// Returns when what was written will survive a power loss. May run on another thread than write. @throws
  /// IoError
  void sync();

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace lockstep
