// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SHA-256 by OpenSSL's libcrypto.
#include "common/digest.hpp"

#include "common/error.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace lockstep {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  LOCKSTEP_CHECK(context_ != nullptr);
  LOCKSTEP_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::update(std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  LOCKSTEP_CHECK(
      EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1);
  return digest;
}

Sha256Digest Sha256::so_far() const {
  Sha256 copy;
  LOCKSTEP_CHECK(EVP_MD_CTX_copy_ex(copy.context_.get(), context_.get()) == 1);
  return copy.finish();
}

Sha256Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string hex(std::span<const std::byte> bytes) {
  const auto* numbers = reinterpret_cast<const unsigned char*>(bytes.data());
  return fmt::format("{:02x}", fmt::join(numbers, numbers + bytes.size(), ""));
}

constexpr std::string_view kDigits = "0123456789abcdef";

bool is_digest(std::string_view text) {
  return text.size() == 2 * sizeof(Sha256Digest) && text.find_first_not_of(kDigits) == text.npos;
}

Sha256Digest digest_of_hex(std::string_view text) {
  Sha256Digest digest{};
  if (!is_digest(text)) return digest;
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(16 * kDigits.find(text[2 * i]) + kDigits.find(text[2 * i + 1]));
  return digest;
}

// Lanes of 64-bit words, mixed by steps that can each be undone. So no difference is lost on the way.

namespace {

constexpr std::size_t kLanes = 8;
using Words = std::array<std::uint64_t, kLanes>;

constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;  // odd: 2^64 over the golden ratio
constexpr int kTurn = 29;                               // brings high bits down, which products never do

/// Xor, rotation and product with an odd number can each be undone.
void mix(Words& lanes, const std::byte* block) {
  Words words;
  std::memcpy(words.data(), block, sizeof words);
  for (std::size_t l = 0; l < kLanes; ++l) lanes[l] = std::rotl(lanes[l] ^ words[l], kTurn) * kFactor;
}

}  // namespace

std::string quick_digest(std::span<const std::byte> bytes) {
  Words lanes;
  for (std::size_t l = 0; l < kLanes; ++l) lanes[l] = kFactor * (l + 1);
  std::size_t done = 0;
  for (; bytes.size() - done >= sizeof(Words); done += sizeof(Words)) mix(lanes, bytes.data() + done);
  std::array<std::byte, sizeof(Words)> rest{};
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(done), bytes.end(), rest.begin());
  mix(lanes, rest.data());
  const std::uint64_t size = bytes.size();
  Sha256 hash;
  hash.update(std::as_bytes(std::span(lanes)));
  hash.update(std::as_bytes(std::span(&size, 1)));
  return hex(hash.finish());
}

}  // namespace lockstep
