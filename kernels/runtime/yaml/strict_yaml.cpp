// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Strict YAML: check the bytes, check the events, and only then build the node.
#include "kernels/runtime/yaml/strict_yaml.hpp"

#include "kernels/runtime/yaml/printable.hpp"
#include "kernels/runtime/yaml/strict_handler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace lockstep {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

YAML::Mark mark_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  YAML::Mark mark;
  mark.pos = static_cast<int>(offset);
  mark.line = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  mark.column = static_cast<int>(offset - line_start);
  return mark;
}

void check_bytes(std::string_view text, const std::string& file) {
  if (const auto bad = find_unprintable(text)) {
    throw config_error(file, mark_of(text, bad->offset),
                       fmt::format("{}; a YAML file is plain UTF-8 text", bad->cause));
  }
}

/// Ahead of parsing, because yaml-cpp looks for the end of "[[[[..." before it reports the first bracket.
void check_brackets(std::string_view text, const std::string& file) {
  std::size_t brackets = 0;
  for (std::size_t at = text.find_first_of("[{"); at != text.npos; at = text.find_first_of("[{", at + 1)) {
    if (++brackets > kMaxYamlBrackets) {
      throw config_error(file, mark_of(text, at), fmt::format("more than {} brackets", kMaxYamlBrackets));
    }
  }
}

void check_events(const std::string& text, const std::string& file) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  StrictHandler handler(text, file);
  while (parser.HandleNextDocument(handler)) {
  }
}

}  // namespace

YAML::Node load_strict_yaml(const std::string& text, const std::string& file) {
  if (text.size() > kMaxYamlBytes) {
    throw config_error(file, YAML::Mark(),
                       fmt::format("more than {} bytes; is this the right file?", kMaxYamlBytes));
  }
  if (text.starts_with(kByteOrderMark)) return load_strict_yaml(text.substr(kByteOrderMark.size()), file);
  check_bytes(text, file);
  check_brackets(text, file);
  try {
    check_events(text, file);
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw config_error(file, error.mark, fmt::format("not valid YAML: {}", error.msg));
  }
}

std::string read_yaml_file(const std::string& path) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    if (errno == ENOENT) throw MissingDataError(fmt::format("{}: no such file; check the path", path));
    throw IoError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  std::string text(kMaxYamlBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw IoError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

ConfigError config_error(const std::string& file, const YAML::Mark& mark, const std::string& message) {
  if (mark.is_null()) return ConfigError(fmt::format("{}: {}", file, message));
  return ConfigError(fmt::format("{}:{}:{}: {}", file, mark.line + 1, mark.column + 1, message));
}

}  // namespace lockstep
