// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Writing IDX files of bytes, as they are made.
#pragma once

#include "common/files/env.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// The first bytes of an IDX file: two zeros, element type, number of dimensions, sizes big-endian.
std::vector<std::byte> idx_file_head(std::uint8_t type, std::span<const std::int64_t> dims);
inline constexpr std::uint8_t kIdxUint8 = 0x08, kIdxFp32 = 0x0d;

/// A new file of unsigned bytes whose sizes are known beforehand. Needs little memory, however large it gets.
class IdxWriter {
 public:
  /// Creates the file, which must not be there, with its header. @throws IoError
  IdxWriter(Env& env, const std::string& path, std::span<const std::int64_t> dims);

  /// Appends elements. @throws IoError
  void write(std::span<const std::uint8_t> elements);
  /// When all elements are there: the file will survive a power loss then. @throws IoError
  void finish();

 private:
  void flush();

  std::unique_ptr<WritableFile> file_;
  std::vector<std::byte> buffer_;
  std::uint64_t missing_ = 1;  ///< elements, the product of the sizes to begin with
};

}  // namespace lockstep
