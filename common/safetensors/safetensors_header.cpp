// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checks of a safetensors header that need no JSON: sizes, ranges, names.
#include "common/safetensors/safetensors_header.hpp"

#include "common/error.hpp"
#include "common/safetensors/safetensors_json.hpp"
#include "common/text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

namespace lockstep {
namespace {

constexpr std::array<std::pair<std::string_view, std::size_t>, 17> kDtypes = {{{"BOOL", 1},
                                                                               {"U8", 1},
                                                                               {"I8", 1},
                                                                               {"F8_E5M2", 1},
                                                                               {"F8_E4M3", 1},
                                                                               {"F8_E8M0", 1},
                                                                               {"I16", 2},
                                                                               {"U16", 2},
                                                                               {"F16", 2},
                                                                               {"BF16", 2},
                                                                               {"I32", 4},
                                                                               {"U32", 4},
                                                                               {"F32", 4},
                                                                               {"F64", 8},
                                                                               {"I64", 8},
                                                                               {"U64", 8},
                                                                               {"C64", 8}}};

void check_entry(const SafetensorsEntry& entry, const std::string& file) {
  std::size_t bytes = 0;
  if (safetensors_dtype_bytes(entry.dtype) == 0)
    throw DataError(fmt::format("{}: tensor {}: unknown dtype {}", file, quoted_text(entry.name),
                                quoted_text(entry.dtype)));
  if (!safetensors_tensor_bytes(entry.dtype, entry.shape, &bytes))
    throw DataError(
        fmt::format("{}: tensor {}: its shape is too large for any file", file, quoted_text(entry.name)));
  if (entry.end < entry.begin || entry.end - entry.begin != bytes)
    throw DataError(fmt::format("{}: tensor {}: data_offsets [{}, {}] do not hold the {} bytes of its shape",
                                file, quoted_text(entry.name), entry.begin, entry.end, bytes));
}

/// The ranges, in order, must cover the data with neither overlap nor hole.
void check_tiling(const std::vector<SafetensorsEntry>& entries, std::size_t data_bytes,
                  const std::string& file) {
  std::size_t position = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != position)
      throw DataError(fmt::format("{}: tensor {}: starts at byte {} of the data where {} was expected: {}",
                                  file, quoted_text(entry.name), entry.begin, position,
                                  entry.begin < position ? "tensors overlap" : "there is a hole"));
    position = entry.end;
  }
  if (position != data_bytes)
    throw DataError(
        fmt::format("{}: tensors take {} bytes, the file holds {}: it is {}", file, position, data_bytes,
                    position > data_bytes ? "truncated" : "followed by bytes that belong to nothing"));
}

void check_names(const std::vector<SafetensorsEntry>& entries, const std::string& file) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin != names.end())
    throw DataError(fmt::format("{}: tensor {}: is there twice", file, quoted_text(*twin)));
}

}  // namespace

std::size_t safetensors_dtype_bytes(std::string_view dtype) {
  for (const auto& [name, bytes] : kDtypes)
    if (name == dtype) return bytes;
  return 0;
}

bool safetensors_tensor_bytes(std::string_view dtype, const std::vector<std::size_t>& shape,
                              std::size_t* bytes) {
  std::size_t product = safetensors_dtype_bytes(dtype);
  if (product == 0) return false;
  for (const std::size_t dimension : shape) {
    if (dimension != 0 && product > std::numeric_limits<std::size_t>::max() / dimension) return false;
    product *= dimension;
  }
  *bytes = product;
  return true;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::size_t data_bytes,
                                           const std::string& file) {
  SafetensorsHeader header = read_safetensors_json(json, file);
  for (const SafetensorsEntry& entry : header.entries) check_entry(entry, file);
  check_names(header.entries, file);
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_tiling(header.entries, data_bytes, file);
  return header;
}

}  // namespace lockstep
