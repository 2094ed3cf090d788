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

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace lockstep {

using Sha256Digest = std::array<std::byte, 32>;

/// Hashes bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();

  void update(std::span<const std::byte> bytes);
  /// The digest of everything so far; more may follow.
  Sha256Digest so_far() const;
  /// The digest of everything. Call once; the object is spent.
  Sha256Digest finish();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

Sha256Digest sha256(std::span<const std::byte> bytes);

/// Lower-case hexadecimal, two digits a byte.
std::string hex(std::span<const std::byte> bytes);
/// True for 64 such digits.
bool is_digest(std::string_view text);
/// The digest with these 64 digits; for any other text, zeros.
Sha256Digest digest_of_hex(std::string_view text);

// Tells whether two ranks hold the same bytes, at the speed of memory. A data set is compared in
// milliseconds at every start. It finds accidents (another file, a flipped bit), not malice; what is kept on
// disk has its SHA-256.

/// 64 hexadecimal digits. Each of eight lanes mixes every eighth word of 64 bits; each step is a bijection of the
/// lane, so a change within one word always shows. SHA-256 of the lanes and the length is the digest.
std::string quick_digest(std::span<const std::byte> bytes);

}  // namespace lockstep
