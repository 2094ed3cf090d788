// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// IDX files, the format of MNIST and its relatives: https://yann.lecun.com/exdb/mnist, "file formats".
///
///   2 bytes 0 | element type (0x08: uint8, the only one read here) | number of dimensions D
///   D sizes, 32-bit big-endian | the elements, the last dimension innermost | nothing more
#pragma once

#include "common/buffers.hpp"
#include "common/env.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The contents of an IDX file of uint8. At least one dimension, none of them 0.
struct IdxArray {
  std::vector<std::int64_t> dims;
  AlignedBuffer<std::uint8_t> bytes;

  /// Offset of the elements in the (uncompressed) file.
  std::uint64_t data_offset() const { return 4 + 4 * dims.size(); }
};

/// The most elements that a file may hold: every count and index of a data set then fits 32 bits.
inline constexpr std::uint64_t kMaxIdxBytes = 0x7FFFFFFF;
inline constexpr int kMaxIdxDims = 4;

/// Reads an IDX file, plain or gzip, in one pass. Gzip is known by its first bytes, not by the name. The array is
/// read into its final place. Memory is allocated only after the sizes in the header were found possible for a file
/// of that length, and for compressed data beyond eight times their size only as they arrive.
/// @throws MissingDataError  there is no such file
/// @throws DataError         names file, offset and what is wrong: not IDX, another element type,
///                           sizes that do not agree with the file, gzip damage, trailing bytes
/// @throws IoError           the file cannot be read
IdxArray read_idx(const std::filesystem::path& path);

/// Only the sizes of such a file. @throws as read_idx, as far as the header is concerned
std::vector<std::int64_t> read_idx_dims(const std::filesystem::path& path);

/// read_idx of the bytes of a file in memory; `name` is for messages.
IdxArray parse_idx(std::span<const std::uint8_t> file, std::string_view name);
/// read_idx_dims of such bytes: of compressed data no more than the header is inflated.
std::vector<std::int64_t> parse_idx_dims(std::span<const std::uint8_t> file, std::string_view name);

/// "60000 x 28 x 28"
std::string to_string(std::span<const std::int64_t> dims);

/// The first bytes of an IDX file: two zeros, element type, number of dimensions, sizes big-endian.
std::vector<std::byte> idx_file_head(std::uint8_t type, std::span<const std::int64_t> dims);
inline constexpr std::uint8_t kIdxUint8 = 0x08, kIdxFp32 = 0x0d;

}  // namespace lockstep
