// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory of the emulated device. Global memory lies between red zones, and the shared memory of a block is poisoned
/// before it is written.
#pragma once

#include "kernels/emulation/errors.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::emulation {

// The memory of the emulated device. It is pieces of host memory, each exactly as large as asked for, between red
// zones, and filled with 0xFF.

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
  /// True if all these bytes lie within one piece.
  bool contains(const void* memory, std::size_t bytes);
  /// Empty, or what was written outside of a piece: "byte 512 of an array of 512 bytes". Reported once: the
  /// red zone is closed again.
  std::string damage();

 private:
  std::mutex mutex_;
  std::map<unsigned char*, std::size_t> pieces_;  // bytes of each
  std::size_t used_bytes_ = 0;
};

// The shared memory of the block that runs: each array exactly as large as asked for, between red zones.

/// Shared memory that a block of the emulated GPU may have, in bytes: that of an A100.
inline constexpr std::size_t kMaxSharedBytesPerBlock = 163 * 1024;
/// That, or fewer where a test plays a smaller GPU.
std::size_t most_shared_bytes();

/// Belongs to one OS thread, which runs one block at a time.
class BlockSharedMemory {
 public:
  BlockSharedMemory();
  ~BlockSharedMemory();

  /// A new block starts: it has only the dynamic array, of `dynamic_bytes`.
  void start_block(std::size_t dynamic_bytes);
  /// The array of a place in the source, named by the address `site`. One for all threads of the block.
  /// Filled with 0xFF (NaN, -1) when the block first asks for it. Aligned to 16 bytes or `alignment`.
  /// @throws InternalError if a block cannot have that much
  void* array(const void* site, const CallSite& call, std::size_t bytes, std::size_t alignment);
  void* dynamic() const { return arrays_.front().data; }
  /// Empty, or what was written outside of an array: "byte 512 of the shared array of
  /// conv.cu:30, which has 512".
  std::string damage() const;

 private:
  struct Array {
    const void* site;
    CallSite call;
    unsigned char* data;
    std::size_t bytes;
  };
  void* append(const void* site, const CallSite& call, std::size_t bytes, std::size_t alignment);

  std::unique_ptr<unsigned char[]> memory_;
  unsigned char* end_;  // end of the last red zone
  std::vector<Array> arrays_;
};

// The bytes around a piece of memory that no kernel may touch. In every build a write to them shows when
// they are looked at; AddressSanitizer also reports reads, and at once.

/// Fills the bytes and poisons them.
void close_redzone(unsigned char* begin, std::size_t bytes);
/// The first byte that was written to, or null.
const unsigned char* find_damage(const unsigned char* begin, std::size_t bytes);

}  // namespace lockstep::emulation
