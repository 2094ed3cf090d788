// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Watches yaml-cpp's events go by and refuses what YAML::Load would silently accept.
#pragma once

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Throws ConfigError at the first event that breaks the contract of load_strict_yaml. Builds nothing.
class StrictHandler final : public YAML::EventHandler {
 public:
  /// Borrows both: the text that is being parsed, and its name for messages.
  StrictHandler(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override { close(); }

 private:
  /// A map or sequence that is open.
  struct Level {
    bool is_map;
    bool expects_key;                       ///< of a map: the next node is a key
    std::map<std::string, int> first_line;  ///< of a map: the keys so far, and the line of each
  };

  bool expects_key() const { return !levels_.empty() && levels_.back().expects_key; }
  void add_key(const YAML::Mark& mark, const std::string& key);
  void open(const YAML::Mark& mark, const std::string& tag, bool is_map);
  void close();
  void value_is_complete();
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const;
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const;

  std::string_view text_;
  const std::string& file_;
  std::vector<Level> levels_;
  bool in_document_ = false;
};

}  // namespace lockstep
