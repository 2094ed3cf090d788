// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Walks the YAML of a job file beside the schema.
#include "trainer/config/job_reader.hpp"

#include "common/yaml.hpp"
#include "trainer/config/job_schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

std::string joined(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

ScalarText scalar_text(const YAML::Node& node) {
  if (node.IsNull()) return {"", ScalarText::Style::kNull};
  return {node.Scalar(), node.Tag() == "!" ? ScalarText::Style::kQuoted : ScalarText::Style::kPlain};
}

/// A list as the text "[1, 2]"; one that has anything but plain scalars in it counts as quoted.
ScalarText list_text(const YAML::Node& node) {
  ScalarText list;
  for (const auto& element : node) {
    if (!element.IsScalar() || element.Tag() == "!") return {"", ScalarText::Style::kQuoted};
    list.text += (list.text.empty() ? "" : ", ") + element.Scalar();
  }
  list.text = "[" + list.text + "]";
  return list;
}

std::string shown(const YAML::Node& node) {
  if (node.IsMap()) return "a map";
  if (node.IsSequence()) {
    constexpr std::size_t kLongest = 60;
    const std::string list = list_text(node).text;
    return list.empty() || list.size() > kLongest ? "a list" : list;
  }
  if (node.IsNull()) return "nothing";
  return quoted_text(node.Scalar()) + (node.Tag() == "!" ? " in quotes" : "");
}

bool read_lists_into(const YAML::Node& node, const JobKey& key, Job& job) {
  std::vector<std::vector<ScalarText>> lists;
  for (const auto& list : node) {
    if (!list.IsSequence()) return false;
    lists.emplace_back();
    for (const auto& entry : list) {
      if (!entry.IsScalar()) return false;
      lists.back().push_back(scalar_text(entry));
    }
  }
  return key.read_lists(lists, job);
}

/// Whether the key takes what stands there, which is in the job then.
bool read_into(const YAML::Node& node, const JobKey& key, Job& job) {
  if (key.is_list) return node.IsSequence() && key.read(list_text(node), job);
  if (node.IsScalar() || node.IsNull()) return key.read(scalar_text(node), job);
  if (!node.IsSequence()) return false;
  if (key.read_lists && node.size() > 0 && node[0].IsSequence()) return read_lists_into(node, key, job);
  if (!key.read_list) return false;
  std::vector<ScalarText> list;
  for (const auto& entry : node) {
    if (!entry.IsScalar()) return false;
    list.push_back(scalar_text(entry));
  }
  return key.read_list(list, job);
}

/// What is to be said behind a value that a key refuses.
std::string hint_for(const YAML::Node& node, const JobKey& key) {
  if (node.IsSequence() && key.hint) {
    for (const auto& element : node) {
      if (const std::string hint = element.IsScalar() ? key.hint(element.Scalar()) : ""; !hint.empty())
        return hint;
    }
  }
  if (!node.IsScalar()) return "";
  return key.hint ? key.hint(node.Scalar()) : did_you_mean(node.Scalar(), key.choices);
}

/// " (did you mean train.optimizer.kind=adam?)" for a value of one of a section's keys that was given to the section.
std::string key_that_takes(const YAML::Node& node, std::string_view section) {
  if (!node.IsScalar()) return "";
  for (const JobKey& key : job_schema()) {
    if (key.section() != section || std::ranges::find(key.choices, node.Scalar()) == key.choices.end())
      continue;
    return fmt::format(" (did you mean {}={}?)", key.path, node.Scalar());
  }
  return "";
}

/// Whether the value of an override is YAML: nothing, a list, a map, or text in quotes. Anything else is taken
/// literally.
bool is_yaml_value(std::string_view value) {
  static constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
  return std::ranges::find(kNull, value) != kNull.end() || value.find_first_of("[{\"'") == 0;
}

/// Refuses what YAML would drop: a comment, and white space at the ends.
YAML::Node load_yaml_value(const std::string& value, const std::string& source) {
  constexpr const char* kSpace = " \t\r\n";
  const bool padded = !value.empty() && (std::strchr(kSpace, value.front()) != nullptr ||
                                         std::strchr(kSpace, value.back()) != nullptr);
  std::size_t comment = value.find('#');
  while (comment != value.npos && comment > 0 && std::strchr(kSpace, value[comment - 1]) == nullptr)
    comment = value.find('#', comment + 1);
  if (padded || comment != value.npos) {
    throw ConfigError(
        fmt::format("{}: {}; remove it", source,
                    padded ? "white space at an end of the value" : "in YAML a comment begins with the '#'"));
  }
  return load_strict_yaml(value, source);
}

/// The section that unknown path lies in, as far as it exists, and the name that is unknown there.
std::pair<std::string_view, std::string_view> split_unknown(std::string_view path) {
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', begin)) {
    if (!is_job_section(path.substr(0, dot))) break;
    begin = dot + 1;
  }
  return {path.substr(0, begin == 0 ? 0 : begin - 1), path.substr(begin)};
}

/// What is named after the job file: "mnist" for "launch/jobs/mnist.yaml".
std::string name_of_job(const std::string& file) {
  const auto stem = std::filesystem::path(file).stem().string();
  return stem.empty() || stem.starts_with('.') ? Job().name : stem;
}

std::vector<std::string_view> all_paths() {
  std::vector<std::string_view> paths;
  for (const JobKey& key : job_schema()) paths.push_back(key.path);
  return paths;
}

/// A key elsewhere in the job that is called `name`, here or in other programs.
std::string key_elsewhere(std::string_view section, std::string_view name) {
  const auto is_called = [&](const JobKey& key) {
    return key.leaf() == name ||
           std::find(key.other_names.begin(), key.other_names.end(), name) != key.other_names.end();
  };
  const JobKey* found = nullptr;
  for (const JobKey& key : job_schema()) {
    if (is_called(key) && (found == nullptr || key.section() == section)) found = &key;
  }
  return found == nullptr ? std::string() : fmt::format(" (did you mean '{}'?)", found->path);
}

/// A section of a section that is called nearly so.
std::string section_elsewhere(const std::string& name) {
  for (const JobKey& key : job_schema()) {
    const std::string_view section = key.section();
    const std::size_t dot = section.rfind('.');
    if (dot == section.npos) continue;
    const std::string_view leaf = section.substr(dot + 1);
    if (!did_you_mean(name, std::span(&leaf, 1)).empty())
      return fmt::format(" (did you mean '{}'?)", section);
  }
  return "";
}

}  // namespace

void JobReader::read_file(const std::string& yaml, const std::string& file) {
  file_ = file;
  job_.name = name_of_job(file);
  const YAML::Node root = load_strict_yaml(yaml, file);
  if (root.IsNull()) return;
  if (!root.IsMap()) throw config_error(file, root.Mark(), "a job file is a map such as 'model: net'");
  if (const YAML::Node layers = root["layers"]; layers.IsDefined()) {
    throw config_error(
        file, layers.Mark(),
        fmt::format("this file describes a network, not a job; a job names it: 'model: {}', or "
                    "'model={}' behind another job file",
                    file, file));
  }
  read_section(root, "", {file, false});
}

void JobReader::read_override(const std::string& override_text) {
  const Source source{"override " + quoted_text(override_text), true};
  const std::size_t equals = override_text.find('=');
  if (equals == override_text.npos || equals == 0) {
    throw ConfigError(source.name + ": expected key=value such as train.epochs=3");
  }
  const std::string path = override_text.substr(0, equals), value = override_text.substr(equals + 1);
  const bool is_scalar = find_job_key(path) != nullptr && !is_yaml_value(value);
  read_node(is_scalar ? YAML::Node(value) : load_yaml_value(value, source.name), path,
            YAML::Mark::null_mark(), source);
}

void JobReader::check() {
  for (const JobKey& key : job_schema()) settle(key);
  check_job(*this);
}

void JobReader::settle(const JobKey& key) {
  if (!belongs(key, job_)) {
    if (!choice_path(key).empty()) settle_foreign(key);
    return;
  }
  const MemberKey* own = member_key(key, job_);
  if (own == nullptr || gives(key.path)) return;
  if (own->required) {
    const JobKey& choice = *find_job_key(choice_path(key));
    fail_at(choice.path, fmt::format("{} {} needs {}: {}; expected {}", choice.path, choice.write(job_),
                                     key.path, key.meaning, key.expected));
  }
  if (!own->fallback.empty()) key.read({std::string(own->fallback)}, job_);
}

/// A key that another choice has is an error, unless the choice itself was overridden: then the file meant it
/// for what it chose.
void JobReader::settle_foreign(const JobKey& key) {
  if (!gives(key.path)) return;
  const JobKey& choice = *find_job_key(choice_path(key));
  const auto is_override = [&](const std::string& path) {
    const auto place = places_.find(path);
    return place != places_.end() && place->second.mark.is_null();
  };
  if (!is_override(choice.path) || is_override(key.path)) {
    fail_at(key.path, fmt::format("{} is for {} {}; remove it for {}", key.path, choice.leaf(),
                                  owners_text(key), choice.write(job_)));
  }
  key.read({key.write(Job())}, job_);
  places_.erase(places_.find(key.path));
  job_.places.erase(key.path);
}

void JobReader::read_section(const YAML::Node& node, const std::string& section, const Source& source) {
  for (const auto& entry : node) {
    const std::string& name = entry.first.Scalar();
    const YAML::Mark mark = entry.first.Mark();
    if (name.find('.') != name.npos) {
      const Position place = place_of(mark, source);
      throw config_error(
          place.source, place.mark,
          fmt::format("{} has a dot; nest keys instead: 'train: {{epochs: 3}}'", quoted_text(name)));
    }
    read_node(entry.second, joined(section, name), mark, source);
  }
}

void JobReader::read_node(const YAML::Node& node, const std::string& path, const YAML::Mark& key_mark,
                          const Source& source) {
  if (const JobKey* key = find_job_key(path)) {
    read_value(node, *key, place_of(node.IsNull() ? key_mark : node.Mark(), source));
    return;
  }
  if (path.empty() || !is_job_section(path)) fail_unknown(path, place_of(key_mark, source));
  if (node.IsMap()) {
    read_section(node, path, source);
  } else if (!node.IsNull() || source.is_override) {
    const Position place = place_of(node.Mark(), source);
    throw config_error(
        place.source, place.mark,
        fmt::format("{}: expected a map with some of {}, got {}{}", path,
                    fmt::join(names_in_section(path), ", "), shown(node), key_that_takes(node, path)));
  }
}

void JobReader::read_value(const YAML::Node& node, const JobKey& key, const Position& place) {
  if (!read_into(node, key, job_)) {
    const std::string guess = hint_for(node, key);
    throw config_error(place.source, place.mark,
                       fmt::format("{}: expected {}, got {}{}", key.path, key.expected, shown(node), guess));
  }
  places_[key.path] = place;
  job_.places[key.path] = config_error(place.source, place.mark, "").what();
}

void JobReader::fail_unknown(const std::string& path, const Position& place) const {
  const auto [section, name] = split_unknown(path);
  const std::vector<std::string_view> known = names_in_section(section);
  std::string hint = did_you_mean(std::string(name), known);
  if (hint.empty()) hint = key_elsewhere(section, name);
  const bool is_dotted = name.find('.') != name.npos;  // else a long section would make any name look near
  if (hint.empty() && !is_dotted) hint = section_elsewhere(std::string(name));
  if (hint.empty() && is_dotted) hint = did_you_mean(path, all_paths());
  if (hint.empty()) hint = fmt::format("; known: {}", fmt::join(known, ", "));
  const std::string where = section.empty() ? "" : fmt::format(" in '{}'", section);
  throw config_error(place.source, place.mark,
                     fmt::format("unknown key {}{}{}", quoted_text(name), where, hint));
}

JobReader::Position JobReader::place_of(const YAML::Mark& mark, const Source& source) {
  return {source.name, source.is_override ? YAML::Mark::null_mark() : mark};
}

void JobReader::fail_at(std::string_view path, const std::string& message) const {
  const auto place = places_.find(path);
  if (place == places_.end()) throw config_error(file_, YAML::Mark::null_mark(), message);
  throw config_error(place->second.source, place->second.mark, message);
}

}  // namespace lockstep
