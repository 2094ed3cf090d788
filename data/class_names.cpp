// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checks the names of classes.txt, line by line.
#include "data/class_names.hpp"

#include "common/error.hpp"
#include "common/printable.hpp"
#include "data/byte_source.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    lines.push_back(trimmed(line));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace

const char* trouble_with_class_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kLongestClassName) return "is longer than 200 bytes";
  const bool one_line = name.find_first_of("\n\r\t") == name.npos;
  return one_line && printable_line(name) == name ? nullptr : "is not printable UTF-8";
}

std::vector<std::string> parse_class_names(std::string_view text, const std::string& file, std::size_t most) {
  std::vector<std::string> names;
  for (const std::string_view line : lines_of(text)) {
    const std::size_t number = names.size() + 1;
    const auto fail = [&](const std::string& cause) {
      throw DataError(fmt::format("{}: line {}: {}; write one class name a line, in the order of the labels",
                                  file, number, cause));
    };
    if (number > most) fail(fmt::format("more than {} classes", most));
    if (const char* trouble = trouble_with_class_name(line)) fail(fmt::format("the name {}", trouble));
    if (const auto twin = std::find(names.begin(), names.end(), line); twin != names.end())
      fail(fmt::format("{} is the name of class {} already", quoted_text(line), twin - names.begin()));
    names.emplace_back(line);
  }
  if (names.empty()) throw DataError(fmt::format("{}: no class names; write one a line", file));
  return names;
}

std::vector<std::string> read_class_names(const std::filesystem::path& file, std::size_t most) {
  const std::uint64_t most_bytes = 2 * most * kLongestClassName;
  FileSource source(file);
  const std::uint64_t size = source.remaining_at_most();
  if (size > most_bytes) {
    throw DataError(fmt::format("{}: {} bytes are too many for a list of class names; at most {}",
                                file.string(), size, most_bytes));
  }
  std::vector<std::uint8_t> bytes(size);
  bytes.resize(source.read(bytes));
  return parse_class_names({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string(), most);
}

std::vector<std::string> numbered_classes(int classes) {
  std::vector<std::string> names;
  for (int i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace lockstep
