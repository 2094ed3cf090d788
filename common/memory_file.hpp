// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory of a process that other processes of its host map, too: a file without a name, in no directory. It is gone
/// with the last of them, whenever and however they end, and /dev/shm may be small.
#pragma once

#include "common/descriptor.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lockstep {

/// The address of such memory for another process: plain bytes, to be sent to it.
struct MemoryFileOffer {
  std::int64_t pid = 0;  ///< 0: nothing is offered
  std::int64_t descriptor = -1;
  std::uint64_t bytes = 0;
  /// Random, and at the beginning of the memory, too. So it differs for a process of the same number on a host of the
  /// same name, or in another container.
  std::array<std::uint64_t, 2> key{};
};

class MemoryFile {
 public:
  /// Makes memory of zeros, which all may write. All of it is there now, so that no write is a SIGBUS later.
  /// @returns null: this system has none to give; go on without
  static std::shared_ptr<MemoryFile> of_zeros(std::size_t bytes);
  /// Joins these parts, each from the next multiple of kPartAlignment on. No process can write into it.
  /// @returns null: this system has none to give; go on without
  static std::shared_ptr<MemoryFile> of_parts(std::span<const std::span<const std::byte>> parts);
  /// Opens memory that another process of this host has made and still holds. Never waits, and opens only such memory.
  /// @returns null: it cannot be opened here, as in another container or by another user; go on without
  static std::shared_ptr<MemoryFile> open(const MemoryFileOffer& offer);

  static constexpr std::size_t kPartAlignment = 64;
  /// Start of a part whose predecessor ends at `end`.
  static constexpr std::uint64_t next_part(std::uint64_t end) {
    return (end + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  }

  ~MemoryFile();

  /// Good as long as this lives.
  MemoryFileOffer offer() const;
  /// Aligned to kPartAlignment. Only read, if it was made of parts: a write is a SIGSEGV.
  std::span<std::byte> bytes() const;

 private:
  explicit MemoryFile(int descriptor) : descriptor_(descriptor) {}
  static std::shared_ptr<MemoryFile> make(std::size_t bytes);
  bool seal(int seals);
  bool map(bool is_constant);

  Descriptor descriptor_;
  std::uint64_t size_ = 0;  ///< with the key
  std::array<std::uint64_t, 2> key_{};
  std::byte* map_ = nullptr;
};

}  // namespace lockstep
