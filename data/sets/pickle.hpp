// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Python's pickles of plain data: dictionaries, lists, texts, whole numbers, and numpy's arrays of these. Nothing is
/// imported and nothing is called: a closed list of opcodes and names builds values, and all others are refused.
/// https://github.com/python/cpython/blob/main/Lib/pickletools.py describes the opcodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A value in a pickle. Values may be in several lists, also within themselves.
struct PickledValue {
  enum class Kind { kNone, kNumber, kText, kList, kDictionary, kArray, kElementType, kName };

  Kind kind = Kind::kNone;
  std::int64_t number = 0;     ///< also of True and False
  std::string_view text = {};  ///< str in UTF-8, bytes, "numpy.dtype"; of an array its elements
  std::vector<PickledValue*>
      items{};  ///< elements of a list or tuple; in a dictionary key, value, key, value, ...
  std::vector<std::int64_t> dims{};  ///< an array's
  std::size_t item = 0;              ///< bytes of an element, 1, 2, 4 or 8
  bool is_signed = false;            ///< its elements
  bool is_fortran = false;           ///< its order: the first dimension is innermost
};

/// A pickle of protocol 0 to 5, read whole. Takes 200 MB at most beside twice the file, and time that grows as the file.
class Pickle {
 public:
  /// CIFAR-100's files have 700,000 where Python 3 wrote them in protocol 0.
  static constexpr std::size_t kMostOpcodes = 1'000'000;

  /// Borrows the file.
  /// @param name  for messages
  /// @throws DataError  naming offset and cause: an opcode or a name that is not read here, a damaged file
  Pickle(std::span<const std::uint8_t> file, std::string name);

  /// The value under this key of the dictionary that the pickle is. @throws DataError  there is none
  const PickledValue& at(std::string_view key) const;
  /// The numbers in a list or a one-dimensional array under a key. @throws DataError  there are none
  std::vector<std::int64_t> numbers_at(std::string_view key) const;
  /// The texts in a list under a key. @throws DataError  there are none
  std::vector<std::string> texts_at(std::string_view key) const;
  /// @throws DataError  always: the file, the cause, and what to do
  [[noreturn]] void fail(const std::string& cause) const;

 private:
  class Reader;

  std::string name_;
  std::deque<PickledValue> values_;
  std::deque<std::string> texts_;  ///< that are not in the file as they are
  const PickledValue* value_ = nullptr;
};

/// The number in the lowest `bytes` bytes of `bits`.
std::int64_t signed_number(std::uint64_t bits, std::size_t bytes);

// Texts of pickles. Nothing: it has an escape or a character that is not read.

/// The bytes that Python 2 wrote as its repr, without the quotes.
std::optional<std::string> bytes_of_repr(std::string_view text);
/// Latin-1 with \uXXXX up to \u00ff, as protocol 0 has it.
std::optional<std::string> utf8_of_raw_unicode(std::string_view text);
/// A byte for each character, all of them up to U+00FF.
std::optional<std::string> latin1_of_utf8(std::string_view utf8);

}  // namespace lockstep
