// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Record of a file in a manifest: size, SHA-256, and a CRC-32 for every 64 KiB of every tensor. The CRCs locate damage.
#pragma once

#include "common/safetensors.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

inline constexpr std::size_t kChecksumBlockBytes = 65536;

/// A part of a file. Its blocks start at `begin`; the last may be shorter.
struct SectionRecord {
  std::string name;                   ///< the tensor's; empty for the file's header
  std::size_t begin = 0, end = 0;     ///< in bytes from the start of the file
  std::vector<std::uint32_t> crc32s;  ///< one a block
  friend bool operator==(const SectionRecord&, const SectionRecord&) = default;
};

/// Sections in the order of the file, without gaps; the first is the header.
struct FileRecord {
  std::string name;  ///< inside the checkpoint's directory
  std::size_t bytes = 0;
  std::string sha256;
  std::vector<SectionRecord> sections;
  friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

/// One place where a checkpoint is not what its manifest says.
struct Damage {
  std::string path;    ///< the file's
  std::string tensor;  ///< empty if no tensor is hit
  std::string cause;
};

/// "runs/a/checkpoints/step-00000100/model.safetensors: tensor 'conv1.weight': ..."
std::string to_string(const Damage& damage);

/// Blocks that a section of so many bytes has.
std::size_t checksum_blocks(std::size_t bytes);

/// The record of a safetensors file that begins so (safetensors_head) and has these tensors.
FileRecord record_of(const std::string& name, std::span<const std::byte> head,
                     std::span<const TensorView> tensors);

/// Describes a file of another size than recorded: names the first tensor that is not whole.
Damage size_damage(const FileRecord& record, std::uint64_t size, const std::string& path);

/// Compares; empty if every byte is as recorded.
std::vector<Damage> check_against(const FileRecord& record, std::span<const std::byte> bytes,
                                  const std::string& path);

}  // namespace lockstep
