// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Lanes of 64-bit words, mixed by steps that can each be undone, so that no difference is lost on the way.
#include "common/quick_digest.hpp"

#include "common/sha256.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace lockstep {
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
