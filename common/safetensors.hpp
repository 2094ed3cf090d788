// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The safetensors format: named tensors in one file that Python reads with no code of ours.
///
/// Layout: 8 bytes little-endian header length N, N bytes JSON, then the tensors' bytes.
/// Source: https://github.com/huggingface/safetensors, "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A tensor inside a file that is in memory, or one to be written. Bytes are borrowed.
struct TensorView {
  std::string name;
  std::string dtype;               ///< "F32", "I64", "U8", "I32", ...
  std::vector<std::size_t> shape;  ///< elements per dimension; empty for a scalar
  std::span<const std::byte> bytes;
};

/// Serialises tensors in the given order; metadata goes under "__metadata__". Names, dtypes and sizes that do
/// not fit are bugs of the caller: InternalError.
std::vector<std::byte> write_safetensors(std::span<const TensorView> tensors,
                                         const std::map<std::string, std::string>& metadata = {});

/// The parsed contents of a file. Owns the bytes that its tensors point into, in the order of the data.
/// Moves, does not copy. In a file that Python wrote a tensor may start at any address: take numbers out with
/// memcpy.
class SafetensorsFile {
 public:
  SafetensorsFile(SafetensorsFile&&) noexcept = default;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept = default;

  /// Treats the bytes as hostile: bounded header, offsets that tile the data exactly, products checked for
  /// overflow, sizes known before anything is allocated.
  /// @throws DataError naming `file`, tensor and what is wrong
  static SafetensorsFile parse(std::vector<std::byte> bytes, const std::string& file);
  /// @throws MissingDataError, IoError, DataError
  static SafetensorsFile read(const std::string& path);

  const std::vector<TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// @throws DataError if there is no such tensor, or its dtype or shape is another
  const TensorView& require(const std::string& name, const std::string& dtype,
                            const std::vector<std::size_t>& shape) const;
  const TensorView* find(const std::string& name) const;

 private:
  SafetensorsFile() = default;

  std::string file_;
  std::vector<std::byte> bytes_;
  std::vector<TensorView> tensors_;
  std::vector<std::size_t> by_name_;  ///< positions in tensors_, sorted by name
  std::map<std::string, std::string> metadata_;
};

}  // namespace lockstep
