// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Fills a Job from YAML and overrides, by the schema, and remembers where each value came from.
#pragma once

#include "trainer/config/job_key.hpp"

#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <string_view>

namespace lockstep {

class JobReader {
 public:
  /// @throws ConfigError  `file:line:column: ...`
  void read_file(const std::string& yaml, const std::string& file);
  /// @param override_text  "train.epochs=3", "train.optimizer={kind: sgd, lr: 0.1}"
  /// @throws ConfigError   naming the override
  void read_override(const std::string& override_text);
  /// Gives keys that were not given the defaults of the optimiser, schedule and so on that was chosen, and
  /// checks what must hold between keys: call once, after everything is read.
  void check();

  const Job& job() const { return job_; }

  /// Whether the file or an override gave this key.
  bool gives(std::string_view path) const { return places_.contains(path); }
  /// Throws ConfigError that points to where `path` was given, or only to the file where it was not.
  [[noreturn]] void fail_at(std::string_view path, const std::string& message) const;

 private:
  /// Where messages point to: a file, or an override.
  struct Source {
    std::string name;
    bool is_override;
  };
  struct Position {
    std::string source;
    YAML::Mark mark;  ///< null: the whole source
  };

  void read_section(const YAML::Node& node, const std::string& section, const Source& source);
  void read_node(const YAML::Node& node, const std::string& path, const YAML::Mark& key_mark,
                 const Source& source);
  void read_value(const YAML::Node& node, const JobKey& key, const Position& place);
  void settle(const JobKey& key);
  void settle_foreign(const JobKey& key);
  [[noreturn]] void fail_unknown(const std::string& path, const Position& place) const;
  static Position place_of(const YAML::Mark& mark, const Source& source);

  Job job_;
  std::string file_;
  std::map<std::string, Position, std::less<>> places_;
};

/// The rules that involve more than one key. @throws ConfigError
void check_job(const JobReader& reader);

}  // namespace lockstep
