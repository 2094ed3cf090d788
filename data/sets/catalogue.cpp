// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading the catalogue of data sets, once.
#include "data/sets/catalogue.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/yaml.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace lockstep {
namespace {

/// A line, taken word by word.
class Line {
 public:
  Line(std::string_view text, int number) : rest_(trimmed(text)), number_(number) {}

  bool is_empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  std::string word(const char* what) {
    if (rest_.empty()) fail(fmt::format("{} is missing", what));
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \t"));
    rest_ = trimmed(rest_.substr(word.size()));
    return std::string(word);
  }
  std::int64_t count(const char* what) {
    const std::string text = word(what);
    const auto number = parse_int64(text);
    if (!number || *number < 1) fail(fmt::format("'{}' is not a {}", text, what));
    return *number;
  }
  std::vector<double> numbers() {
    std::vector<double> all;
    do {
      const std::string text = word("a number");
      const auto number = parse_double(text);
      if (!number) fail(fmt::format("'{}' is not a number", text));
      all.push_back(*number);
    } while (!is_empty() && rest_.front() != '#');
    return all;
  }
  [[noreturn]] void fail(const std::string& cause) const {
    throw ConfigError(fmt::format("catalogue of data sets, line {}: {}", number_, cause));
  }

 private:
  std::string_view rest_;
  int number_;
};

ImageShape read_shape(Line& line) {
  const std::string text = line.word("CHANNELSxHEIGHTxWIDTH");
  ImageShape shape{0, 0, 0};
  char x = 0, another_x = 0;
  std::istringstream stream(text);
  stream >> shape.channels >> x >> shape.height >> another_x >> shape.width;
  const bool whole = !stream.fail() && stream.peek() == std::char_traits<char>::eof();
  if (whole && x == 'x' && another_x == 'x' && shape.channels > 0 && shape.height > 0 && shape.width > 0)
    return shape;
  line.fail(fmt::format("'{}' is not CHANNELSxHEIGHTxWIDTH", text));
}

SetEntry read_set(Line& line, std::string name) {
  SetEntry entry;
  entry.name = std::move(name);
  entry.format = line.word("the format");
  if (line.is_empty()) return entry;
  entry.shape = read_shape(line);
  entry.train_samples = line.count("number of training samples");
  entry.test_samples = line.count("number of test samples");
  return entry;
}

void read_pictures(Line& line, SetEntry& entry) {
  const std::string kind = line.word("the kind of pictures");
  if (kind == "whole" || kind == "photo") {
    entry.frame = {.share = 1, .centre_by_mass = false, .one_figure = false, .is_photo = kind == "photo"};
  } else if (kind == "none") {
    entry.is_fp32 = true;
  } else if (kind != "written") {  // as frames are otherwise
    line.fail(fmt::format("'{}' is none of written, whole, photo, none", kind));
  }
}

void read_classes(std::string_view names, SetEntry& entry) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    if (!trimmed(name).empty()) entry.class_names.emplace_back(trimmed(name));
  }
}

/// @returns true if a line of this kind is for the program; those about downloads are for launch/get-data
bool read_property(const std::string& kind, Line& line, SetEntry& entry) {
  if (kind == "mean") {
    entry.mean = line.numbers();
  } else if (kind == "std") {
    entry.std = line.numbers();
  } else if (kind == "pictures") {
    read_pictures(line, entry);
  } else if (kind == "classes") {
    read_classes(line.rest(), entry);
  } else if (kind == "names") {
    entry.names_file = line.word("the file");
  } else if (kind == "pickles") {
    entry.pickles = line.word("the file");
  } else if (kind == "folder" || kind == "place") {
    entry.folders.push_back(line.word("the folder"));
  } else if (kind == "file") {
    entry.files.push_back(line.word("the file"));
  } else {
    return kind == "mirror" || kind == "package" || kind == "archive";
  }
  return true;
}

void read_line(Line line, std::vector<SetEntry>& entries) {
  if (line.is_empty() || line.rest().front() == '#') return;
  const std::string kind = line.word("the kind of line"), name = line.word("the set");
  const auto entry = std::ranges::find(entries, name, &SetEntry::name);
  if (kind == "set") {
    if (entry != entries.end()) line.fail(fmt::format("set '{}' is there already", name));
    entries.push_back(read_set(line, name));
  } else if (entry == entries.end()) {
    line.fail(fmt::format("no line 'set {} ...' before it", name));
  } else if (!read_property(kind, line, *entry)) {
    line.fail(fmt::format("unknown kind of line '{}'", kind));
  }
}

}  // namespace

std::vector<SetEntry> parse_catalogue(std::string_view text) {
  std::vector<SetEntry> entries;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    read_line(Line(line, number), entries);
  }
  return entries;
}

const std::vector<SetEntry>& catalogue() {
  static const std::vector<SetEntry> entries = parse_catalogue(kCatalogueText);
  return entries;
}

std::vector<std::string_view> set_names() {
  std::vector<std::string_view> names;
  for (const SetEntry& entry : catalogue()) names.push_back(entry.name);
  return names;
}

const SetEntry& own_set() {
  return *std::ranges::find(catalogue(), false, &SetEntry::is_known_by_name);
}

const SetEntry& find_set(const std::string& name) {
  const auto found = std::ranges::find(catalogue(), name, &SetEntry::name);
  if (found != catalogue().end()) return *found;
  throw ConfigError(fmt::format("unknown data set '{}'; one of {}", name, fmt::join(set_names(), ", ")));
}

}  // namespace lockstep
