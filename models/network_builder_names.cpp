// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// NetworkBuilder: the kind, name and option keys of a layer, checked before anything is made of them.
#include "common/yaml/strict_yaml.hpp"
#include "models/network_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr std::size_t kMaxNameLength = 64;

std::vector<std::string_view> all_kinds() {
  std::vector<std::string_view> kinds;
  for (const LayerKind& kind : layer_catalogue()) kinds.push_back(kind.kind);
  return kinds;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

}  // namespace

const LayerKind& NetworkBuilder::kind_of(const YAML::Node& entry) const {
  if (!entry.IsScalar() && !(entry.IsMap() && entry.size() == 1)) {
    fail(entry, "a layer must look like '- relu' or '- conv2d: {out: 10, kernel: 5}'");
  }
  const std::string written = entry.IsScalar() ? entry.Scalar() : entry.begin()->first.Scalar();
  const LayerKind* kind = find_layer_kind(written);
  if (kind == nullptr) {
    const std::vector<std::string_view> kinds = all_kinds();
    fail(entry, fmt::format("unknown layer {}{}; there are {}", quoted_text(written),
                            did_you_mean(written, kinds), fmt::join(kinds, ", ")));
  }
  return *kind;
}

std::string NetworkBuilder::name_of(const LayerKind& kind, const YAML::Node& options) {
  const int ordinal = ++layers_of_a_kind_[kind.default_name];
  std::string name = fmt::format("{}{}", kind.default_name, ordinal);
  YAML::Mark mark = last_mark_;
  if (options.IsMap()) {
    if (const YAML::Node given = options["name"]; given.IsDefined()) {
      check_identifier(given);
      name = given.Scalar();
      mark = given.Mark();
    }
  }
  const auto [earlier, is_new] = lines_.emplace(name, mark.line + 1);
  if (!is_new) {
    throw config_error(file_, mark,
                       fmt::format("layer {}: line {} has a layer of this name already; write name: ...",
                                   name, earlier->second));
  }
  return name;
}

void NetworkBuilder::check_options(const LayerKind& kind, const YAML::Node& options) const {
  if (options.IsMap()) return check_keys(options, kind.keys, kind.kind);
  if (options.IsNull() || !kind.main_key.empty()) return;
  fail(options, fmt::format("{} takes a map of options: {{{}}}", kind.kind, fmt::join(kind.keys, ", ")));
}

void NetworkBuilder::check_keys(const YAML::Node& map, std::span<const std::string_view> known,
                                std::string_view of) const {
  for (const auto& entry : map) {
    const std::string& key = entry.first.Scalar();
    if (std::ranges::find(known, key) != known.end()) continue;
    fail(entry.first, fmt::format("unknown key {}{}; {} has {}", quoted_text(key), did_you_mean(key, known),
                                  of, fmt::join(known, ", ")));
  }
}

void NetworkBuilder::check_identifier(const YAML::Node& node) const {
  if (node.IsScalar()) {
    const std::string& name = node.Scalar();
    if (!name.empty() && name.size() <= kMaxNameLength && std::ranges::all_of(name, is_name_character))
      return;
  }
  fail(node, fmt::format("a name must be 1 to {} letters, digits, '_', '-' or '.'", kMaxNameLength));
}

}  // namespace lockstep
