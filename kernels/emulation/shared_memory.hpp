// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The shared memory of the block that runs: each array exactly as large as asked for, between red zones.
#pragma once

#include "kernels/emulation/call_site.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::emulation {

/// What a block of the emulated GPU may have, in bytes: that of an A100.
inline constexpr std::size_t kSharedBytesPerBlock = 48 * 1024;
inline constexpr std::size_t kMaxSharedBytesPerBlock = 163 * 1024;

/// Belongs to one OS thread, which runs one block at a time.
class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  /// A new block starts: it has only the dynamic array, of `dynamic_bytes`.
  void start_block(std::size_t dynamic_bytes);
  /// The array of a place in the source, named by the address `site`: the same for all threads of the block.
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
  unsigned char* end_;  // of the last red zone
  std::vector<Array> arrays_;
};

}  // namespace lockstep::emulation
