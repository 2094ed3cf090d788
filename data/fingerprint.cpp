// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "data/fingerprint.hpp"

#include "data/dataset.hpp"
#include "kernels/runtime/sha256.hpp"

#include <array>

namespace lockstep {
namespace {

constexpr std::uint8_t kUint8 = 0x08, kFp32 = 0x0d;

std::string digest_of(std::uint8_t type, std::span<const std::int64_t> dims,
                      std::span<const std::byte> data) {
  Sha256 hash;
  hash.update(idx_file_head(type, dims));
  hash.update(data);
  return hex(hash.finish());
}

}  // namespace

std::vector<std::byte> idx_file_head(std::uint8_t type, std::span<const std::int64_t> dims) {
  std::vector<std::byte> header = {std::byte{0}, std::byte{0}, std::byte{type},
                                   static_cast<std::byte>(dims.size())};
  for (const std::int64_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) header.push_back(static_cast<std::byte>(dim >> shift));
  }
  return header;
}

Fingerprint fingerprint_of(const Dataset& set) {
  const std::vector<std::uint8_t> labels(set.labels.begin(), set.labels.end());
  const std::array<std::int64_t, 1> count{set.size()};
  Fingerprint fingerprint;
  fingerprint.labels = digest_of(kUint8, count, std::as_bytes(std::span(labels)));
  if (set.images.size() > 0) {
    const std::array<std::int64_t, 3> dims{set.size(), set.shape.height, set.shape.width};
    fingerprint.samples = digest_of(kUint8, dims, std::as_bytes(set.images.span()));
  } else {
    const std::array<std::int64_t, 2> dims{set.size(), set.shape.features()};
    fingerprint.samples = digest_of(kFp32, dims, std::as_bytes(set.features.span()));
  }
  return fingerprint;
}

}  // namespace lockstep
