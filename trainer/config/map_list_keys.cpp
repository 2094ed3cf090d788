// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Values that are lists of maps: data.augment and train.groups.
#include "common/printable.hpp"
#include "data/augmentation.hpp"
#include "trainer/config/key_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::job_keys {

// data.augment: each map is of one kind, read beside the table of kinds.

namespace {

/// @throws FoundFault  no kind has that name
const AugmentKindRow& kind_called(const std::string& name) {
  for (const AugmentKindRow& row : augment_kinds())
    if (row.name == name) return row;
  const auto names = names_of(augment_kinds(), &AugmentKindRow::name);
  std::string hint = did_you_mean(name, names);
  for (const AugmentKindRow& row : augment_kinds())
    if (hint.empty() && std::ranges::find(row.other_names, name) != row.other_names.end())
      hint = fmt::format(" (did you mean '{}'?)", row.name);
  throw FoundFault{
      fmt::format("unknown kind {}{}; expected one of {}", quoted_text(name), hint, fmt::join(names, ", "))};
}

double read_number(const YAML::Node& node, const AugmentKindRow& row, const AugmentOption& option) {
  const auto number = parse_double(plain_text(node));
  const bool fits = number && *number >= option.low && *number <= option.high;
  if (!fits || (option.is_whole && *number != std::floor(*number)))
    throw FoundFault{
        fmt::format("{}.{}: expected {}, got {}", row.name, option.name, option.expected(), shown(node))};
  return *number;
}

Augmentation::Range read_option(const YAML::Node& node, const AugmentKindRow& row,
                                const AugmentOption& option) {
  if (!option.is_range) {
    const double number = read_number(node, row, option);
    return {number, number};
  }
  if (!node.IsSequence() || node.size() != 2)
    throw FoundFault{
        fmt::format("{}.{}: expected {}, got {}", row.name, option.name, option.expected(), shown(node))};
  const Augmentation::Range range = {read_number(node[0], row, option), read_number(node[1], row, option)};
  if (range[0] > range[1])
    throw FoundFault{fmt::format("{0}.{1}: {2} is above {3}; write [{3}, {2}]", row.name, option.name,
                                 format_double(range[0]), format_double(range[1]))};
  return range;
}

std::size_t option_called(const std::string& name, const AugmentKindRow& row) {
  const auto names = names_of(row.options, &AugmentOption::name);
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw FoundFault{fmt::format("{}: unknown option {}{}; expected {}", row.name, quoted_text(name),
                                 did_you_mean(name, names), fmt::join(names, ", "))};
  return static_cast<std::size_t>(found - names.begin());
}

/// Refuses missing options, and entries without effect.
void check_options(const Augmentation& entry, const AugmentKindRow& row, const std::vector<bool>& given) {
  bool is_any_above_0 = false;
  for (std::size_t i = 0; i < row.options.size(); ++i) {
    const AugmentOption& option = row.options[i];
    is_any_above_0 |= entry.values[i][1] > 0;
    if (option.is_required && !given[i])
      throw FoundFault{fmt::format("{0} needs {1}, {2}: write {0}: {{{1}: ...}}", row.name, option.name,
                                   option.expected())};
  }
  if (!row.wants_one || is_any_above_0) return;
  throw FoundFault{fmt::format("{} changes nothing; give {} above 0", row.name,
                               fmt::join(names_of(row.options, &AugmentOption::name), " or "))};
}

Augmentation read_entry(const YAML::Node& node) {
  if (!node.IsMap() || node.size() != 1)
    throw FoundFault{
        fmt::format("expected one kind and its options, such as crop: {{padding: 4}}, got {}", shown(node))};
  const auto only = *node.begin();
  const AugmentKindRow& row = kind_called(only.first.Scalar());
  const YAML::Node& options = only.second;
  if (!options.IsMap() && !options.IsNull())
    throw FoundFault{fmt::format("{0}: expected its options, such as {0}: {{{1}: ...}}, got {2}", row.name,
                                 row.options.front().name, shown(options))};
  Augmentation entry = {.kind = row.kind};
  std::vector<bool> given(row.options.size());
  for (std::size_t i = 0; i < row.options.size(); ++i) entry.values[i] = row.options[i].usual;
  for (const auto& option : options) {
    const std::size_t i = option_called(option.first.Scalar(), row);
    entry.values[i] = read_option(option.second, row, row.options[i]);
    given[i] = true;
  }
  check_options(entry, row, given);
  return entry;
}

/// Pixels are moved first, all in one map; then they are changed, and images are mixed last.
void check_order(const std::vector<Augmentation>& before, const Augmentation& entry) {
  if (before.empty()) return;
  const Augmentation& last = before.back();
  const std::string_view name = row_of(entry.kind).name, last_name = row_of(last.kind).name;
  if (mixes_images(last.kind) && !mixes_images(entry.kind))
    throw FoundFault{fmt::format("{} comes after {}; put mixup and cutmix last", name, last_name)};
  if (mixes_images(last.kind) && last.values[1][0] == 1)
    throw FoundFault{fmt::format(
        "{0} comes after {1}, which mixes every image; give {1} a probability below 1", name, last_name)};
  if (moves_pixels(last.kind) || !moves_pixels(entry.kind)) return;
  throw FoundFault{fmt::format("{} comes after {}; put geometric entries before jitter, erase and cutout",
                               name, last_name)};
}

/// Fills a list that is empty. @returns the fault, in words; "": there is none
std::string parse(const YAML::Node& node, std::vector<Augmentation>& list) {
  if (!node.IsSequence())
    return fmt::format(
        "expected a list such as [{{crop: {{padding: 4}}}}, {{flip: {{horizontal: 0.5}}}}], or "
        "[] for none, got {}",
        shown(node));
  if (node.size() > kMostAugmentations)
    return fmt::format("{} entries; at most {}", node.size(), kMostAugmentations);
  try {
    for (const auto& entry : node) {
      const Augmentation next = read_entry(entry);
      check_order(list, next);
      list.push_back(next);
    }
  } catch (const FoundFault& fault) {
    return fmt::format("entry {}: {}", list.size() + 1, fault.text);
  }
  return "";
}

std::string text_of(const Augmentation& entry) {
  const AugmentKindRow& row = row_of(entry.kind);
  std::vector<std::string> options;
  for (std::size_t i = 0; i < row.options.size(); ++i) {
    const auto [least, largest] = entry.values[i];
    const std::string value = row.options[i].is_range
                                  ? fmt::format("[{}, {}]", format_double(least), format_double(largest))
                                  : format_double(least);
    options.push_back(fmt::format("{}: {}", row.options[i].name, value));
  }
  return fmt::format("{{{}: {{{}}}}}", row.name, fmt::join(options, ", "));
}

}  // namespace

Kind<std::vector<Augmentation>> augmentations() {
  const auto read = [](const YAML::Node& node) -> std::optional<std::vector<Augmentation>> {
    std::vector<Augmentation> list;
    return parse(node, list).empty() ? std::optional(std::move(list)) : std::nullopt;
  };
  const auto fault = [](const YAML::Node& node) -> FoundFault {
    std::vector<Augmentation> list;
    return {parse(node, list)};
  };
  const auto write = [](const std::vector<Augmentation>& list) {
    std::vector<std::string> texts;
    for (const Augmentation& entry : list) texts.push_back(text_of(entry));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  };
  return {
      .expected = fmt::format(
          "a list of at most {} entries such as [{{crop: {{padding: 4}}}}, {{flip: {{horizontal: 0.5}}}}] "
          "(docs/augmentation.md), or [] for none",
          kMostAugmentations),
      .read = read,
      .write = write,
      .fault = fault};
}

// The groups of tensors.

namespace {

/// {match: fc*, lr_factor: 0.1, weight_decay: 0}
std::optional<GroupSection> read_group(const YAML::Node& node) {
  if (!node.IsMap()) return std::nullopt;
  const auto factor = real(kRates), decay = real(kDecays);
  GroupSection group;
  for (const auto& entry : node) {
    const std::string& key = entry.first.Scalar();
    const auto match = key == "match" ? pattern().read(entry.second) : std::nullopt;
    const auto number = key == "lr_factor" ? factor.read(entry.second) : std::nullopt;
    const auto share = key == "weight_decay" ? decay.read(entry.second) : std::nullopt;
    if (match) group.match = *match;
    if (number) group.lr_factor = *number;
    if (share) group.weight_decay = share;
    if (!match && !number && !share) return std::nullopt;
  }
  return group.match.empty() ? std::nullopt : std::optional(group);
}

/// The first key of a group that groups do not have.
FoundFault unknown_key_of_group(const YAML::Node& list) {
  const std::vector<std::string_view> names = {"match", "lr_factor", "weight_decay"};
  const std::vector<std::pair<std::string_view, std::string_view>> others = {
      {"lr", "lr_factor"}, {"lr_mult", "lr_factor"}, {"params", "match"}, {"name", "match"}};
  if (!list.IsSequence()) return {};
  for (const auto& group : list) {
    if (!group.IsMap()) continue;
    for (const auto& entry : group) {
      const std::string& key = entry.first.Scalar();
      if (std::ranges::find(names, key) != names.end()) continue;
      const auto other = std::ranges::find(others, key, [](const auto& pair) { return pair.first; });
      const std::string hint = other == others.end() ? did_you_mean(key, names)
                                                     : fmt::format(" (did you mean '{}'?)", other->second);
      return {fmt::format("unknown key {}{}; a group has {}", quoted_text(key), hint, fmt::join(names, ", ")),
              entry.first.Mark()};
    }
  }
  return {};
}

std::string group_text(const GroupSection& group) {
  std::string text = "{match: " + format_yaml_text(group.match);
  if (group.lr_factor != 1) text += ", lr_factor: " + format_double(group.lr_factor);
  if (group.weight_decay) text += ", weight_decay: " + format_double(*group.weight_decay);
  return text + "}";
}

}  // namespace

Kind<std::vector<GroupSection>> groups() {
  Kind<GroupSection> one;
  one.read = read_group;
  one.write = group_text;
  auto kind = list_of(
      one,
      "a list of groups, each with match and as a rule with lr_factor (above 0, at most 1e6) or weight_decay "
      "(from 0, at most 1e6), such as [{match: fc*, lr_factor: 0.1, weight_decay: 0}]",
      0, kMostPatterns);
  kind.fault = unknown_key_of_group;
  return kind;
}

}  // namespace lockstep::job_keys
