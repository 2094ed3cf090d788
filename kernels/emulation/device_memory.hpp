// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The memory of the emulated device: pieces of host memory, each exactly as large as asked for, between red
/// zones, and filled with 0xFF.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace lockstep::emulation {

/// One for the process; any OS thread may call it.
class DeviceMemory {
 public:
  static constexpr std::size_t kTotalBytes = std::size_t{4} << 30;

  static DeviceMemory& instance();

  /// Aligned to 256 bytes; null if the device has not that much left.
  void* allocate(std::size_t bytes);
  /// False if it is not the start of a piece.
  bool free(void* memory);
  std::size_t free_bytes();
  /// Whether all these bytes lie within one piece.
  bool contains(const void* memory, std::size_t bytes);
  /// Empty, or what was written outside of a piece: "byte 512 of an array of 512 bytes". Reported once: the
  /// red zone is closed again.
  std::string damage();

 private:
  using Pieces = std::map<unsigned char*, std::size_t>;

  std::mutex mutex_;
  Pieces pieces_;  // bytes of each
  std::size_t used_bytes_ = 0;
};

}  // namespace lockstep::emulation
