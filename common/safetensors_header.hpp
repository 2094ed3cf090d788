// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The JSON header of a safetensors file, checked for everything that can be checked without the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// One entry of the header. Offsets count from the end of the header.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<std::size_t> shape;
  std::size_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< by position in the data
  std::map<std::string, std::string> metadata;
};

/// The format's own bound on the header, and ours on dimensions.
inline constexpr std::size_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::size_t kMaxSafetensorsRank = 32;
inline constexpr std::size_t kSafetensorsPrefixBytes = 8;

/// Parses and checks: structure, known dtypes, no duplicates, sizes that agree with dtype and shape, and
/// ranges that cover exactly [0, data_bytes) without overlap or hole. Memory stays proportional to the text.
/// @throws DataError naming `file`, the tensor and what is wrong
SafetensorsHeader parse_safetensors_header(std::string_view json, std::size_t data_bytes,
                                           const std::string& file);

/// Bytes of one element, 0 for a dtype that does not exist.
std::size_t safetensors_dtype_bytes(std::string_view dtype);

/// Elements times bytes an element. False on overflow or an unknown dtype.
bool safetensors_tensor_bytes(std::string_view dtype, const std::vector<std::size_t>& shape,
                              std::size_t* bytes);

}  // namespace lockstep
