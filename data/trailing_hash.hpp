// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SHA-256 of a buffer that is still being filled.
#pragma once

#include "kernels/runtime/sha256.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <span>

namespace lockstep {

/// Hashes a buffer in a thread of its own while another thread fills it from the front, so that the hash is
/// complete a moment after the last byte. Small buffers are hashed by finish().
class TrailingHash {
 public:
  /// Borrows both until finish() has returned or the object is destroyed.
  /// @param hash  goes on with these bytes
  TrailingHash(Sha256& hash, std::span<const std::uint8_t> bytes);
  /// Gives up if finish() was not called: then the hash is of no use.
  ~TrailingHash();
  TrailingHash(const TrailingHash&) = delete;
  TrailingHash& operator=(const TrailingHash&) = delete;

  /// The first `count` bytes are in place and stay as they are. `count` never shrinks.
  void reached(std::size_t count);
  /// Says that all bytes are in place; when it returns, they are in the hash. Call once.
  void finish();

 private:
  void follow();

  static constexpr std::size_t kGivenUp = SIZE_MAX;

  Sha256& hash_;
  std::span<const std::uint8_t> bytes_;
  std::atomic<std::size_t> reached_{0};
  std::future<void> following_;
};

}  // namespace lockstep
