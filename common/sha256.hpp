// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SHA-256, by which weights, files and replicas are compared.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

using Sha256Digest = std::array<std::byte, 32>;

/// Hashes bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  /// The digest of everything so far; more may follow.
  Sha256Digest so_far() const;
  /// The digest of everything. Call once; the object is spent.
  Sha256Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256Digest sha256(std::span<const std::byte> bytes);

/// Lower-case hexadecimal, two digits a byte.
std::string hex(std::span<const std::byte> bytes);
/// The reverse, of 64 such digits; of any other text, zeros.
Sha256Digest digest_of_hex(std::string_view text);

}  // namespace lockstep
