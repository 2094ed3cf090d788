// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From the text of a file to a word, and from all words to classes.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "common/yaml.hpp"
#include "data/sets/names.hpp"
#include "data/sets/shards.hpp"
#include "data/sets/tar_samples.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace lockstep {
namespace {

/// The parts of a word: numbers or names, in their order there.
struct Label {
  bool is_list = false;
  std::vector<std::uint32_t> numbers{};
  std::vector<std::string> names{};
};

/// @returns false: it is none of the two
bool add_one(const nlohmann::json& one, Label& label) {
  if (one.is_string()) {
    label.names.push_back(one.get<std::string>());
    return trouble_with_class_name(label.names.back()) == nullptr;
  }
  if (!one.is_number_unsigned() || one.get<std::uint64_t>() >= std::uint64_t{kMostShardClasses}) return false;
  label.numbers.push_back(one.get<std::uint32_t>());
  return true;
}

std::optional<Label> label_of(const nlohmann::json& json) {
  Label label{.is_list = json.is_array()};
  const bool fits = label.is_list
                        ? std::ranges::all_of(json, [&](const auto& one) { return add_one(one, label); })
                        : add_one(json, label);
  return fits ? std::optional(std::move(label)) : std::nullopt;
}

/// Most words are a few digits.
std::optional<Label> label_of_word(std::string_view word) {
  if (const auto number = parse_int64(word); number && *number >= 0 && *number < kMostShardClasses)
    return Label{.numbers = {static_cast<std::uint32_t>(*number)}};
  return label_of(parse_json_or_discard(word));
}

std::string word_of(const nlohmann::json& json) {
  return json_text_in_ascii(nlohmann::ordered_json(json));
}

/// Facts that all labels of a set have in common.
struct Vocabulary {
  bool has_lists = false;
  std::string first_number{}, first_name{};  ///< the words, with their samples; empty: there are none
  std::int64_t classes = 0;                  ///< that numbers need
  std::unordered_map<std::string, std::uint32_t> names{};
};

/// @param name_of_sample  asked for the first words alone
void look_at(const std::string& word, Vocabulary& all, const std::function<std::string()>& name_of_sample) {
  const auto label = label_of_word(word);
  LOCKSTEP_CHECK(label.has_value());
  all.has_lists = all.has_lists || label->is_list;
  for (const std::uint32_t number : label->numbers)
    all.classes = std::max<std::int64_t>(all.classes, number + 1);
  for (const std::string& name : label->names) all.names.try_emplace(name, 0);
  if (!label->numbers.empty() && all.first_number.empty()) all.first_number = word + name_of_sample();
  if (!label->names.empty() && all.first_name.empty()) all.first_name = word + name_of_sample();
}

/// Gives each name its number. @returns the names of all classes
std::vector<std::string> number_names(Vocabulary& all, std::vector<std::string> known,
                                      const std::string& what) {
  if (known.empty()) {
    for (const auto& [name, number] : all.names) known.push_back(name);
    std::ranges::sort(known);
  }
  for (std::uint32_t i = 0; i < known.size(); ++i)
    if (const auto name = all.names.find(known[i]); name != all.names.end()) name->second = i;
  for (const auto& [name, number] : all.names)
    if (number >= known.size() || known[number] != name)
      throw DataError(
          fmt::format("{}: a sample has the label {}, which is not in its list of classes; add it", what,
                      quoted_text(name)));
  return known;
}

std::vector<std::string> class_names_of(Vocabulary& all, std::vector<std::string> known,
                                        const std::string& what) {
  if (!all.first_name.empty() && !all.first_number.empty())
    throw DataError(fmt::format("{}: labels are names ({}) and numbers ({}); write all of them alike", what,
                                printable_line(all.first_name), printable_line(all.first_number)));
  if (!all.first_name.empty()) {
    known = number_names(all, std::move(known), what);
  } else if (known.empty()) {
    known = numbered_classes(static_cast<int>(all.classes));
  } else if (std::ssize(known) < all.classes) {
    throw DataError(fmt::format("{}: names {}, and the labels go up to {}; add the others", what,
                                counted(known.size(), "class"), all.classes - 1));
  }
  const std::int64_t most = all.has_lists ? kMostClassesOfLabelSets : kMostShardClasses;
  if (known.empty() || std::ssize(known) > most)
    throw DataError(fmt::format("{}: {}, and there may be 1 to {}", what, counted(known.size(), "class"),
                                with_thousands(most)));
  return known;
}

/// Ascending, each once.
std::vector<std::uint32_t> classes_of(const std::string& word, const Vocabulary& all) {
  auto label = label_of_word(word);
  for (const std::string& name : label->names) label->numbers.push_back(all.names.at(name));
  std::ranges::sort(label->numbers);
  label->numbers.erase(std::unique(label->numbers.begin(), label->numbers.end()), label->numbers.end());
  return std::move(label->numbers);
}

TarHalfLabels labels_of_half(const std::vector<std::string>& words, const Vocabulary& all, LabelSets* sets) {
  TarHalfLabels half;
  std::vector<std::uint32_t> numbers;
  for (const std::string& word : words) {
    const auto classes = classes_of(word, all);
    half.labels.push_back(sets != nullptr ? sets->row_of(classes)
                                          : static_cast<std::int32_t>(classes.front()));
    if (sets == nullptr) continue;
    numbers.push_back(static_cast<std::uint32_t>(classes.size()));
    numbers.insert(numbers.end(), classes.begin(), classes.end());
  }
  if (sets != nullptr) half.sha256 = hex(sha256(std::as_bytes(std::span(numbers))));
  return half;
}

}  // namespace

std::optional<std::string> label_of_cls(std::string_view text) {
  nlohmann::json numbers = nlohmann::json::array();
  constexpr std::string_view kBetween = ", \t\r\n";
  for (auto at = text.find_first_not_of(kBetween); at != text.npos; at = text.find_first_not_of(kBetween)) {
    text.remove_prefix(at);
    const std::string_view one = text.substr(0, text.find_first_of(kBetween));
    const auto number = parse_int64(one.substr(std::min(one.find_first_not_of('0'), one.size() - 1)));
    if (numbers.empty() && !number && !parse_double(one)) {
      const std::string_view name = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
      return trouble_with_class_name(name) == nullptr ? std::optional(word_of(name)) : std::nullopt;
    }
    if (!number || *number < 0 || *number >= kMostShardClasses) return std::nullopt;
    numbers.push_back(static_cast<std::uint64_t>(*number));
    text.remove_prefix(one.size());
  }
  if (numbers.empty()) return std::nullopt;
  return word_of(numbers.size() == 1 ? numbers.front() : numbers);
}

std::optional<std::string> label_of_json(std::string_view text, const std::string& key) {
  const nlohmann::json json = parse_json_or_discard(text);
  if (!json.is_object() || !json.contains(key) || !label_of(json[key])) return std::nullopt;
  return word_of(json[key]);
}

TarLabels classes_of_words(std::span<const std::vector<std::string>> halves, std::vector<std::string> names,
                           const std::string& what, const NameOfSample& name_of) {
  Vocabulary all;
  for (std::size_t half = 0; half < halves.size(); ++half)
    for (std::size_t i = 0; i < halves[half].size(); ++i)
      look_at(halves[half][i], all, [&] { return name_of ? " of " + name_of(half, i) : std::string(); });
  TarLabels found{.class_names = class_names_of(all, std::move(names), what),
                  .are_names = !all.first_name.empty()};
  if (all.has_lists) found.sets.emplace(found.class_names.size(), what);
  for (const auto& words : halves)
    found.halves.push_back(labels_of_half(words, all, found.sets ? &*found.sets : nullptr));
  return found;
}

}  // namespace lockstep
