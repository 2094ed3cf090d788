// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// As much of an ELF file as these tests need: sections by name, and where symbols lie in them. 64 bits,
/// little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::machine_code {

struct Section {
  std::string_view name;
  std::string_view bytes;  ///< empty for one that takes no space in the file
  std::uint64_t size = 0;
};

struct Symbol {
  std::string_view name;
  std::size_t section = 0;  ///< index of the section
  std::uint64_t begin = 0, size = 0;
};

/// A view of the bytes it was made of.
struct ElfFile {
  /// @throws std::runtime_error if it is none, or ends early
  explicit ElfFile(std::string_view file);

  std::vector<Section> sections;
  std::vector<Symbol> symbols;  ///< in the order of the file, the empty one first
};

/// The part of a file.
/// @throws std::runtime_error if the file ends before
std::string_view part_of(std::string_view file, std::uint64_t begin, std::uint64_t size);

/// A number of the given type at a place of a file.
/// @throws std::runtime_error if the file ends before
template <typename T>
T read_at(std::string_view file, std::size_t place) {
  T value;
  std::memcpy(&value, part_of(file, place, sizeof value).data(), sizeof value);
  return value;
}

}  // namespace lockstep::machine_code
