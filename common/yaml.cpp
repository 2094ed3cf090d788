// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Strict YAML: check the bytes, check the events, and only then build the node.
#include "common/yaml.hpp"

#include "common/descriptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <sstream>
#include <system_error>
#include <vector>

namespace lockstep {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Watches yaml-cpp's events and refuses what YAML::Load would silently accept. Throws ConfigError at the first
/// event that breaks the contract of load_strict_yaml. Builds nothing.
class StrictHandler final : public YAML::EventHandler {
 public:
  /// Borrows both: the text that is being parsed, and its name for messages.
  StrictHandler(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    const bool marker =
        text_.substr(std::min(static_cast<std::size_t>(mark.pos), text_.size())).starts_with("---");
    if (in_document_ && marker) fail(mark, "a second document starts here; keep one document in a file");
    if (in_document_)
      fail(mark, "this does not fit the text before it; check quotes, brackets and indentation");
    in_document_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    if (expects_key()) fail(mark, "a key is missing or null; write 'key: value'");
    value_is_complete();
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    fail(mark, "aliases (*name) are not accepted; write the value out");
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    fail(mark, fmt::format("anchors (&name) are not accepted; remove {}", quoted_text("&" + name)));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    refuse_tag(mark, tag);
    if (!expects_key()) return value_is_complete();
    Level& level = levels_.back();
    const auto [existing, added] = level.first_line.emplace(value, mark.line + 1);
    if (!added)
      fail(mark, fmt::format("key {} is given twice (first on line {}); remove one", quoted_text(value),
                             existing->second));
    level.expects_key = false;
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, false);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, true);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  /// A map or sequence that is open.
  struct Level {
    bool is_map;
    bool expects_key;                            ///< in a map: the next node is a key
    std::map<std::string, int> first_line = {};  ///< in a map: the keys so far, and the line of each
  };

  bool expects_key() const { return !levels_.empty() && levels_.back().expects_key; }

  void open(const YAML::Mark& mark, const std::string& tag, bool is_map) {
    refuse_tag(mark, tag);
    if (expects_key()) fail(mark, "a key must be text, not a list or a map");
    if (levels_.size() == kMaxYamlDepth)
      fail(mark, fmt::format("more than {} levels of nesting", kMaxYamlDepth));
    levels_.push_back({is_map, is_map});
  }
  void close() {
    levels_.pop_back();
    value_is_complete();
  }
  void value_is_complete() {
    if (!levels_.empty() && levels_.back().is_map) levels_.back().expects_key = true;
  }

  /// yaml-cpp's tags are "?" (plain) and "!" (quoted); a tag "!" in the text looks like the latter.
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    const auto at = static_cast<std::size_t>(mark.pos);
    const bool own_tag = tag.empty() || tag == "?" || tag == "!";
    const bool bare_tag = tag == "!" && at < text_.size() && text_[at] == '!';
    if (!own_tag || bare_tag) fail(mark, "tags (!name) are not accepted; write the plain value");
  }
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw config_error(file_, mark, message);
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<Level> levels_;
  bool in_document_ = false;
};

YAML::Mark mark_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  YAML::Mark mark;
  mark.line = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  mark.column = static_cast<int>(offset - line_start);
  return mark;
}

/// Ahead of parsing, because yaml-cpp looks for the end of "[[[[..." before it reports the first bracket.
void check_brackets(std::string_view text, const std::string& file) {
  std::size_t brackets = 0;
  for (std::size_t at = text.find_first_of("[{"); at != text.npos; at = text.find_first_of("[{", at + 1)) {
    if (++brackets > kMaxYamlBrackets)
      throw config_error(file, mark_of(text, at), fmt::format("more than {} brackets", kMaxYamlBrackets));
  }
}

/// yaml-cpp's words about tabs name neither the tab nor its place.
void check_indentation(std::string_view text, const std::string& file) {
  for (std::size_t line = 0; line < text.size();) {
    const std::size_t first = text.find_first_not_of(' ', line);
    if (first != text.npos && text[first] == '\t')
      throw config_error(file, mark_of(text, first), "a tab in the indentation; YAML takes spaces only");
    const std::size_t end = text.find('\n', line);
    line = end == text.npos ? text.size() : end + 1;
  }
}

[[noreturn]] void fail(const std::string& path, const char* action, int error) {
  const auto reason = error == ETIMEDOUT ? "nothing writes into it" : std::generic_category().message(error);
  throw IoError(fmt::format("{}: cannot be {}: {}", path, action, reason));
}

/// @throws IoError  also after ten seconds without a byte
void wait_until_readable(int file, const std::string& path) {
  constexpr int kMilliseconds = 10'000;
  pollfd ready{file, POLLIN, 0};
  int result = ::poll(&ready, 1, kMilliseconds);
  while (result < 0 && errno == EINTR) result = ::poll(&ready, 1, kMilliseconds);
  if (result <= 0) fail(path, "read", result == 0 ? ETIMEDOUT : errno);
}

void check_events(const std::string& text, const std::string& file) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  StrictHandler handler(text, file);
  while (parser.HandleNextDocument(handler)) {
  }
}

}  // namespace

YAML::Node load_strict_yaml(const std::string& given, const std::string& file) {
  if (given.size() > kMaxYamlBytes)
    throw config_error(file, YAML::Mark(),
                       fmt::format("more than {} bytes; is this the right file?", kMaxYamlBytes));
  const std::string text = given.substr(given.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  if (text.starts_with(kByteOrderMark))
    throw config_error(file, mark_of(text, 0), "a second byte order mark; a YAML file is plain UTF-8 text");
  if (const auto bad = find_unprintable(text))
    throw config_error(file, mark_of(text, bad->offset),
                       fmt::format("{}; a YAML file is plain UTF-8 text", bad->cause));
  check_brackets(text, file);
  try {
    check_events(text, file);
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    check_indentation(text, file);
    throw config_error(file, error.mark, fmt::format("not valid YAML: {}", error.msg));
  }
}

std::string read_yaml_file(const std::string& path) {
  // Not blocking: a FIFO without a writer must not hang us. One with a writer is fine, as
  // in `lockstep train <(make-job)`, and is waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file < 0 && errno == ENOENT)
    throw MissingDataError(fmt::format("{}: no such file; check the path", path));
  if (file < 0) fail(path, "opened", errno);
  std::string text(kMaxYamlBytes + 1, '\0');
  std::size_t size = 0;
  for (ssize_t count = 1; count != 0 && size < text.size();) {
    wait_until_readable(file, path);
    count = ::read(file, text.data() + size, text.size() - size);
    if (count < 0 && errno != EINTR && errno != EAGAIN) fail(path, "read", errno);
    size += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  text.resize(size);
  return text;
}

ConfigError config_error(const std::string& file, const YAML::Mark& mark, const std::string& message) {
  if (mark.is_null()) return ConfigError(fmt::format("{}: {}", file, message));
  return ConfigError(fmt::format("{}:{}:{}: {}", file, mark.line + 1, mark.column + 1, message));
}

}  // namespace lockstep
