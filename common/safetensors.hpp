// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The safetensors format: named tensors in one file that Python reads with no code of ours.
///
/// Layout: 8 bytes little-endian header length N, N bytes JSON, then the tensors' bytes.
/// Source: https://github.com/huggingface/safetensors, "Format".
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A tensor inside a file that is in memory, or one to be written. Bytes are borrowed.
struct TensorView {
  std::string name;
  std::string dtype;               ///< "F32", "I64", "U8", "I32", ...
  std::vector<std::size_t> shape;  ///< elements per dimension; empty for a scalar
  std::span<const std::byte> bytes;
};

struct SafetensorsEntry;

/// Serialises tensors in the given order; metadata goes under "__metadata__". Names, dtypes and sizes that do
/// not fit are bugs of the caller: InternalError.
std::vector<std::byte> write_safetensors(std::span<const TensorView> tensors,
                                         const std::map<std::string, std::string>& metadata = {});
/// The first bytes of that file: its tensors' own follow them end to end.
std::vector<std::byte> safetensors_head(std::span<const TensorView> tensors,
                                        const std::map<std::string, std::string>& metadata = {});

/// The parsed contents of a file. Owns the bytes that its tensors point into, in the order of the data.
/// Moves, does not copy. In a file that Python wrote a tensor may start at any address: read numbers with
/// memcpy.
class SafetensorsFile {
 public:
  SafetensorsFile(SafetensorsFile&&) noexcept = default;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept = default;

  /// Treats the bytes as hostile. The header is bounded, offsets must tile the data exactly, products are checked for
  /// overflow, sizes are known before anything is allocated.
  /// @throws DataError naming `file`, tensor and what is wrong
  static SafetensorsFile parse(std::vector<std::byte> bytes, const std::string& file);
  /// Tensors of another format that lie in `bytes` from `start` on, each with the bytes that it says.
  static SafetensorsFile of_entries(std::vector<SafetensorsEntry> entries, std::vector<std::byte> bytes,
                                    std::size_t start, const std::string& file);

  const std::vector<TensorView>& tensors() const { return tensors_; }
  /// @throws DataError if there is no such tensor, or its dtype or shape is another
  const TensorView& require(const std::string& name, const std::string& dtype,
                            const std::vector<std::size_t>& shape) const;
  const TensorView* find(const std::string& name) const;

 private:
  SafetensorsFile() = default;

  std::string file_;
  std::vector<std::byte> bytes_;
  std::vector<TensorView> tensors_;
  std::map<std::string_view, const TensorView*> by_name_;
};

// The JSON header, checked for everything that can be checked without the data.

/// One entry of the header. Offsets count from the end of the header.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<std::size_t> shape;
  std::size_t begin = 0, end = 0;
};

/// Our bound on dimensions.
inline constexpr std::size_t kMaxSafetensorsRank = 32;
inline constexpr std::size_t kSafetensorsPrefixBytes = 8;

/// Parses and checks a header. Structure, known dtypes, no duplicates, sizes that agree with dtype and shape, and
/// ranges that cover exactly [0, data_bytes) without overlap or hole. Memory stays proportional to the text.
/// @returns the entries by position in the data
/// @throws DataError naming `file`, the tensor and what is wrong
std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view json, std::size_t data_bytes,
                                                       const std::string& file);

/// Elements times bytes an element. Nothing on overflow or for an unknown dtype.
std::optional<std::size_t> safetensors_tensor_bytes(std::string_view dtype,
                                                    const std::vector<std::size_t>& shape);

}  // namespace lockstep
