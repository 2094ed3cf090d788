// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// CsvReader, and what its fields say.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "data/tables/readers.hpp"
#include "data/tables/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <locale>
#include <sstream>
#include <string>
#include <utility>

namespace lockstep {

// CsvReader.

int CsvReader::peek() {
  if (at_ == filled_) {
    constexpr std::size_t kPiece = std::size_t{256} << 10;
    buffer_.resize(std::min<std::uint64_t>(kPiece, source_.remaining_at_most()));
    filled_ = buffer_.empty() ? 0 : source_.read(buffer_);
    at_ = 0;
    if (filled_ == 0) return -1;
  }
  return buffer_[at_];
}

int CsvReader::get() {
  const int c = peek();
  if (c < 0) return c;
  ++at_;
  if (++row_bytes_ > kMostRowBytes) fail("the row that begins there is longer than 64 MiB");
  if (c == '\n' || (c == '\r' && peek() != '\n')) ++line_;
  return c;
}

void CsvReader::fail(const char* cause) const {
  throw DataError(fmt::format("{}: line {}: {}; look for a quote that is never closed", source_.name(),
                              first_line_, cause));
}

std::string& CsvReader::begin_field() {
  if (count_ == kMostColumns)
    throw DataError(fmt::format("{}: line {}: more than {} columns; is the separator another one?",
                                source_.name(), first_line_, kMostColumns));
  if (count_ == fields_.size()) fields_.emplace_back();
  fields_[count_].clear();
  return fields_[count_++];
}

/// Reads what follows the opening quote. @returns the character after the field
int CsvReader::read_quoted(std::string& field) {
  for (;;) {
    int c = get();
    if (c < 0) fail("the file ends within quotes");
    if (c == '"') {
      c = get();
      if (c != '"') {
        has_stray_text_ = has_stray_text_ || (c != separator_ && !ends_row(c));
        return c;
      }
    }
    field.push_back(static_cast<char>(c));
  }
}

bool CsvReader::next() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (!std::exchange(is_begun_, true) && peek() >= 0 &&
      as_text(std::span(buffer_).first(filled_)).starts_with(kMark))
    at_ = kMark.size();
  for (;;) {
    first_line_ = line_;
    row_bytes_ = count_ = 0;
    has_stray_text_ = false;
    if (peek() < 0) return false;
    bool is_quoted = false;
    int c = 0;
    do {
      std::string& field = begin_field();
      c = get();
      if (c == '"') {
        is_quoted = true;
        c = read_quoted(field);
      }
      for (; c != separator_ && !ends_row(c); c = get()) field.push_back(static_cast<char>(c));
      if (c == '\r' && peek() == '\n') get();
    } while (c == separator_);
    if (count_ > 1 || !fields_[0].empty() || is_quoted) return true;
  }
}

// Fields.

bool is_missing(std::string_view text) {
  constexpr std::array<std::string_view, 11> kMissing = {"",     "NA",   "N/A",  "n/a",  "NaN", "nan",
                                                         "null", "NULL", "None", "none", "?"};
  return text.size() <= 4 && std::ranges::find(kMissing, text) != kMissing.end();
}

const char* read_feature(std::string_view text, float& value) {
  std::string_view digits = trimmed(text);
  if (is_missing(digits)) return "is missing";
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size()) return "is not a number";
  if (error == std::errc::result_out_of_range) {  // infinite, or 0: from_chars does not say which
    std::istringstream in{std::string(digits)};
    in.imbue(std::locale::classic());
    if (!(in >> number)) return kBeyondFp32;
  }
  value = static_cast<float>(number);
  return std::isfinite(value) ? nullptr : kBeyondFp32;
}

}  // namespace lockstep
