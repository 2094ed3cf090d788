// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The contents of a pickle: the values under its keys, and the bytes of its texts.
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/printable.hpp"
#include "data/byte_source.hpp"
#include "data/sets/pickle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace lockstep {
namespace {

using Kind = PickledValue::Kind;

std::vector<std::int64_t> elements_of(const PickledValue& array) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at < array.text.size(); at += array.item) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, array.text.data() + at, array.item);
    numbers.push_back(array.is_signed ? signed_number(bits, array.item) : static_cast<std::int64_t>(bits));
  }
  return numbers;
}

/// So many hexadecimal digits for a byte, taken off the text. @returns false: they are none
bool take_hex(std::string_view& text, std::size_t digits, std::uint8_t& byte) {
  const std::string_view taken = text.substr(0, digits);
  const auto number = parse_whole<std::uint8_t>(taken, 16);
  text.remove_prefix(taken.size());
  byte = number.value_or(0);
  return taken.size() == digits && number;
}

}  // namespace

void Pickle::fail(const std::string& cause) const {
  throw DataError(fmt::format("{}: {}; {}", name_, cause, fix_for_data()));
}

const PickledValue& Pickle::at(std::string_view key) const {
  const auto& items = value_->items;
  if (value_->kind == Kind::kDictionary)
    for (std::size_t i = items.size(); i > 0; i -= 2)  // a later value replaces an earlier one
      if (items[i - 2]->kind == Kind::kText && items[i - 2]->text == key) return *items[i - 1];
  fail(fmt::format("has nothing under the key {}, so it is not such a file", quoted_text(key)));
}

std::vector<std::int64_t> Pickle::numbers_at(std::string_view key) const {
  const PickledValue& value = at(key);
  const auto is_number = [](const PickledValue* item) { return item->kind == Kind::kNumber; };
  if (value.kind == Kind::kArray && value.dims.size() == 1) return elements_of(value);
  if (value.kind != Kind::kList || !std::ranges::all_of(value.items, is_number))
    fail(fmt::format("holds no list of whole numbers under {}", quoted_text(key)));
  std::vector<std::int64_t> numbers;
  for (const PickledValue* item : value.items) numbers.push_back(item->number);
  return numbers;
}

std::vector<std::string> Pickle::texts_at(std::string_view key) const {
  const PickledValue& value = at(key);
  const auto is_text = [](const PickledValue* item) { return item->kind == Kind::kText; };
  if (value.kind != Kind::kList || !std::ranges::all_of(value.items, is_text))
    fail(fmt::format("holds no list of texts under {}", quoted_text(key)));
  std::vector<std::string> texts;
  for (const PickledValue* item : value.items) texts.emplace_back(item->text);
  return texts;
}

std::int64_t signed_number(std::uint64_t bits, std::size_t bytes) {
  const std::size_t unused = 64 - 8 * bytes;
  return bytes == 0 ? 0 : static_cast<std::int64_t>(bits << unused) >> unused;
}

std::optional<std::string> bytes_of_repr(std::string_view text) {
  constexpr std::string_view kEscapes = "\\'\"ntr", kMeant = "\\'\"\n\t\r";
  std::string bytes;
  while (!text.empty()) {
    const auto escape = std::min(text.find('\\'), text.size());
    bytes += text.substr(0, escape);
    text.remove_prefix(escape);
    if (text.empty()) break;
    const auto known = text.size() > 1 ? kEscapes.find(text[1]) : kEscapes.npos;
    std::uint8_t byte = known < kMeant.size() ? static_cast<std::uint8_t>(kMeant[known]) : 0;
    const bool is_hex = text.starts_with("\\x");
    text.remove_prefix(std::min<std::size_t>(2, text.size()));
    if (is_hex ? !take_hex(text, 2, byte) : known == kEscapes.npos) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

std::optional<std::string> utf8_of_raw_unicode(std::string_view text) {
  std::string utf8;
  while (!text.empty()) {
    const bool is_escape = text.starts_with("\\u");
    auto c = static_cast<std::uint8_t>(text.front());
    text.remove_prefix(is_escape ? 2 : 1);
    if (is_escape && !take_hex(text, 4, c)) return std::nullopt;
    if (c >= 0x80) utf8.push_back(static_cast<char>(0xC0 | c >> 6));
    utf8.push_back(static_cast<char>(c < 0x80 ? c : 0x80 | (c & 0x3F)));
  }
  return utf8;
}

std::optional<std::string> latin1_of_utf8(std::string_view utf8) {
  std::string bytes;
  bytes.reserve(utf8.size());
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto c = static_cast<unsigned char>(utf8[i]);
    const bool is_pair = (c == 0xC2 || c == 0xC3) && i + 1 < utf8.size();
    if (c >= 0x80 && !is_pair) return std::nullopt;
    bytes.push_back(is_pair ? static_cast<char>((c & 3) << 6 | (utf8[++i] & 0x3F)) : utf8[i]);
  }
  return bytes;
}

}  // namespace lockstep
