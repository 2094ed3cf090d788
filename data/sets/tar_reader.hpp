// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The files in a tar archive, found by reading its headers alone: ustar, pax, and GNU's long names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// A regular file in an archive.
struct TarEntry {
  std::string name;          ///< without NUL and line end
  std::uint64_t offset = 0;  ///< of its first byte
  std::uint64_t bytes = 0;   ///< all of them lie in the archive
};

/// Takes memory for one name, whatever the archive says.
class TarReader {
 public:
  /// Bytes from an offset on; fewer than asked for only at the end. @returns how many
  using ReadAt = std::function<std::size_t(std::uint64_t offset, std::span<std::uint8_t> to)>;

  /// @param bytes  of the archive
  /// @param name   for messages
  TarReader(ReadAt read, std::uint64_t bytes, std::string name)
      : read_(std::move(read)), bytes_(bytes), name_(std::move(name)) {}

  /// The next file, directories left out; nothing: the mark at the end was reached.
  /// @throws DataError  naming offset and cause: an archive that is cut off, a header that is damaged or as large as none
  /// is, links, devices; IoError
  std::optional<TarEntry> next();
  [[noreturn]] void fail(std::uint64_t offset, const std::string& cause) const;

 private:
  /// What headers in front of a file's say of it.
  struct Extended {
    std::string path{};
    std::optional<std::uint64_t> bytes{};
  };

  void read(std::uint64_t offset, std::span<std::uint8_t> to) const;
  std::string read_text(std::uint64_t offset, std::uint64_t bytes) const;
  void take_pax(std::uint64_t offset, std::string_view text, Extended& of_next) const;
  void skip(std::uint64_t bytes);

  ReadAt read_;
  std::uint64_t bytes_;
  std::string name_;
  std::uint64_t at_ = 0;
};

}  // namespace lockstep
