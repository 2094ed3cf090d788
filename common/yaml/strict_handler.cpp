// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The rules of strict YAML, one event at a time.
#include "common/yaml/strict_handler.hpp"

#include "common/yaml/strict_yaml.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

void StrictHandler::OnDocumentStart(const YAML::Mark& mark) {
  const bool marker =
      text_.substr(std::min(static_cast<std::size_t>(mark.pos), text_.size())).starts_with("---");
  if (in_document_ && marker) fail(mark, "a second document starts here; keep one document in a file");
  if (in_document_)
    fail(mark, "this does not belong to what stands before it; check quotes, brackets and indentation");
  in_document_ = true;
}

void StrictHandler::OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) {
  if (expects_key()) fail(mark, "a key is missing or null; write 'key: value'");
  value_is_complete();
}

void StrictHandler::OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) {
  fail(mark, "aliases (*name) are not accepted; write the value out");
}

void StrictHandler::OnAnchor(const YAML::Mark& mark, const std::string& name) {
  fail(mark, fmt::format("anchors (&name) are not accepted; remove {}", quoted_text("&" + name)));
}

void StrictHandler::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                             const std::string& value) {
  refuse_tag(mark, tag);
  if (expects_key()) {
    add_key(mark, value);
  } else {
    value_is_complete();
  }
}

void StrictHandler::OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                                    YAML::EmitterStyle::value /*style*/) {
  open(mark, tag, false);
}

void StrictHandler::OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                               YAML::EmitterStyle::value /*style*/) {
  open(mark, tag, true);
}

void StrictHandler::add_key(const YAML::Mark& mark, const std::string& key) {
  Level& level = levels_.back();
  const auto [existing, added] = level.first_line.emplace(key, mark.line + 1);
  if (!added) {
    fail(mark, fmt::format("key {} is given twice (first on line {}); remove one", quoted_text(key),
                           existing->second));
  }
  level.expects_key = false;
}

void StrictHandler::open(const YAML::Mark& mark, const std::string& tag, bool is_map) {
  refuse_tag(mark, tag);
  if (expects_key()) fail(mark, "a key must be text, not a list or a map");
  if (levels_.size() == kMaxYamlDepth)
    fail(mark, fmt::format("more than {} levels of nesting", kMaxYamlDepth));
  levels_.push_back({is_map, is_map, {}});
}

void StrictHandler::close() {
  levels_.pop_back();
  value_is_complete();
}

void StrictHandler::value_is_complete() {
  if (!levels_.empty() && levels_.back().is_map) levels_.back().expects_key = true;
}

/// yaml-cpp's own tags are "?" (plain) and "!" (quoted); a tag "!" in the text looks like the latter.
void StrictHandler::refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
  const auto at = static_cast<std::size_t>(mark.pos);
  const bool own_tag = tag.empty() || tag == "?" || tag == "!";
  const bool bare_tag = tag == "!" && at < text_.size() && text_[at] == '!';
  if (!own_tag || bare_tag) fail(mark, "tags (!name) are not accepted; write the plain value");
}

void StrictHandler::fail(const YAML::Mark& mark, const std::string& message) const {
  throw config_error(file_, mark, message);
}

}  // namespace lockstep
