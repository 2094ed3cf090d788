// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// SHA-256 by OpenSSL's libcrypto.
#include "common/sha256.hpp"

#include "common/error.hpp"

#include <openssl/evp.h>

namespace lockstep {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();

  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  LOCKSTEP_CHECK(context_->evp != nullptr);
  LOCKSTEP_CHECK(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1);
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  LOCKSTEP_CHECK(
      EVP_DigestFinal_ex(context_->evp, reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1);
  return digest;
}

Sha256Digest Sha256::so_far() const {
  Sha256 copy;
  LOCKSTEP_CHECK(EVP_MD_CTX_copy_ex(copy.context_->evp, context_->evp) == 1);
  return copy.finish();
}

Sha256Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15U];
  }
  return text;
}

Sha256Digest digest_of_hex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  Sha256Digest digest{};
  if (text.size() != 2 * digest.size() || text.find_first_not_of(kDigits) != text.npos) return digest;
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(16 * kDigits.find(text[2 * i]) + kDigits.find(text[2 * i + 1]));
  return digest;
}

}  // namespace lockstep
