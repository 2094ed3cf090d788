// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Readers of tables: text of rows and fields, as RFC 4180 has it, and numpy's arrays.
#pragma once

#include "data/byte_source.hpp"
#include "kernels/shapes.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Rows end with LF, CR LF or CR; empty ones do not count, and neither does a byte order mark. A field in quotes may
/// hold separators, line ends and, twice, quotes. A quote inside of a field that does not begin with one is a
/// character.
class CsvReader {
 public:
  static constexpr std::size_t kMostRowBytes = std::size_t{64} << 20, kMostColumns = std::size_t{1} << 20;

  /// Borrows the source.
  CsvReader(ByteSource& source, char separator) : source_(source), separator_(separator) {}

  /// @returns false: there are no more
  /// @throws DataError  naming the line: a quote is never closed, the row is longer than kMostRowBytes or has more than
  ///                    kMostColumns; IoError
  bool next();
  /// Fields of the row. Valid until the next one is read.
  std::span<const std::string> fields() const { return {fields_.data(), count_}; }
  /// In which the row began, from 1.
  std::uint64_t line() const { return first_line_; }
  /// True if something followed a closing quote, which no field may.
  bool has_stray_text() const { return has_stray_text_; }

 private:
  int get();
  int peek();
  std::string& begin_field();
  int read_quoted(std::string& field);
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

// numpy's arrays as streams: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, and the archives
// of them that numpy.savez writes.
//
//   93 "NUMPY" | version, two bytes | length of the header, 2 bytes little-endian, of versions 2 and 3 four
//   {'descr': '<f4', 'fortran_order': False, 'shape': (150, 4), } | the numbers, the last dimension innermost

/// Contents of the header.
struct NpyHeader {
  char kind = 'f';       ///< f, i, u, b, or of texts S (bytes) and U (UTF-32)
  std::size_t item = 4;  ///< bytes of an element
  std::vector<std::int64_t> dims;

  bool is_text() const { return kind == 'S' || kind == 'U'; }
  /// Elements of one entry of the first dimension.
  std::uint64_t row_elements() const;
  /// Shape of such an entry: [channels], [height][width], or [channels][height][width].
  ImageShape row_shape() const;
};

/// The rows of an array, one after another.
class NpyRows {
 public:
  /// Reads the header. @throws DataError  naming offset and cause: no such array, or one that is not read here
  explicit NpyRows(std::unique_ptr<ByteSource> source);

  const NpyHeader& header() const { return header_; }
  const ByteSource& source() const { return *source_; }
  std::int64_t size() const { return header_.dims.front(); }
  /// The next row as fp32: each element rounded once. @param row  [row_elements], overwritten
  /// @returns the index of the first element that is not finite, or no more fp32; -1: there is none
  /// @throws DataError  the file ends before; not an array of numbers
  std::int64_t next(std::span<float> row);
  /// The next element, of a one-dimensional array, as a label: a whole number, or text.
  /// @returns false: it is no label
  bool next_label(std::string& label);

 private:
  std::span<const std::uint8_t> next_bytes();

  std::unique_ptr<ByteSource> source_;
  NpyHeader header_;
  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;  ///< in bytes_, which holds some rows
  std::int64_t left_;   ///< rows that were not taken
};

/// A zip archive of arrays, stored or deflated: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, also with
/// the sizes of its 64-bit extension.
class NpzArchive {
 public:
  struct Entry {
    std::uint64_t header, packed, size;  ///< place of its header; bytes
    std::uint32_t crc;
    int method;
  };

  /// @throws DataError  it is no such archive, or lies; MissingDataError, IoError
  explicit NpzArchive(std::filesystem::path file);

  /// Without ".npy", in the order of the archive, and each once.
  const std::vector<std::string>& names() const { return names_; }
  bool has(std::string_view array) const;
  /// The bytes of one that it has, which names itself FILE:ARRAY. Their CRC and length are checked when the end is
  /// reached.
  /// @throws DataError  it is packed in a way that is not read here
  std::unique_ptr<ByteSource> open(std::string_view array) const;

 private:
  Entry read_entry(std::span<const std::uint8_t> record, std::span<const std::uint8_t> extra) const;
  std::vector<std::uint8_t> bytes_at(std::uint64_t offset, std::uint64_t count) const;
  [[noreturn]] void fail(const std::string& cause) const;

  std::filesystem::path file_;
  std::uint64_t size_;
  std::vector<Entry> entries_;
  std::vector<std::string> names_;
};

}  // namespace lockstep
