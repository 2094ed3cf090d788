// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Text of rows and fields, as RFC 4180 has it.
#pragma once

#include "data/byte_source.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Rows end with LF, CR LF or CR; empty ones do not count, and neither does a byte order mark. A field in quotes may
/// hold separators, line ends and, twice, quotes. A quote inside of a field that does not begin with one is a
/// character.
class CsvReader {
 public:
  static constexpr std::size_t kMostRowBytes = std::size_t{64} << 20;

  /// Borrows the source.
  CsvReader(ByteSource& source, char separator) : source_(source), separator_(separator) {}

  /// @returns false: there are no more
  /// @throws DataError  naming the line: a quote is never closed, or the row is longer than kMostRowBytes; IoError
  bool next();
  /// Of the row. Valid until the next one is read.
  std::span<const std::string> fields() const { return {fields_.data(), count_}; }
  /// In which the row began, from 1.
  std::uint64_t line() const { return first_line_; }
  /// Whether something followed a closing quote, which no field may.
  bool has_stray_text() const { return has_stray_text_; }

 private:
  int get();
  int peek();
  void begin_field();
  int read_quoted(std::string& field);
  int read_plain(int c, std::string& field);
  [[noreturn]] void fail(const char* cause) const;
  bool ends_row(int c) const { return c == '\n' || c == '\r' || c < 0; }

  ByteSource& source_;
  char separator_;
  std::vector<std::uint8_t> buffer_;
  std::size_t at_ = 0, filled_ = 0;
  bool is_begun_ = false, has_stray_text_ = false;
  std::uint64_t line_ = 1, first_line_ = 1;
  std::size_t row_bytes_ = 0, count_ = 0;
  std::vector<std::string> fields_;  ///< the first count_ are the row's; the others keep their memory
};

}  // namespace lockstep
