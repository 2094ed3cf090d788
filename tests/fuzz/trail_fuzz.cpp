// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Trails: any file either is one, or is refused with a word. Once as it comes, and once with the head's seal put
/// right, so that what lies behind it is reached.
#include "common/digest.hpp"
#include "common/error.hpp"
#include "trainer/checkpoint/trail_file.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace {

void read(std::vector<std::byte> bytes) {
  try {
    const lockstep::Trail trail(std::move(bytes), "t");
    for (std::int64_t i = 0; i < trail.records(); ++i) static_cast<void>(trail.find(trail.step(i)));
  } catch (const lockstep::DataError&) {  // what users see
  } catch (const lockstep::ConfigError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  read({input.begin(), input.end()});
  constexpr std::size_t kSeal = sizeof(lockstep::Sha256Digest), kLengthAt = 12;
  std::uint32_t head = 0;
  if (size < kLengthAt + sizeof head) return 0;
  std::memcpy(&head, data + kLengthAt, sizeof head);
  if (head < kSeal + kLengthAt + sizeof head || head > size) return 0;
  std::vector<std::byte> sealed(input.begin(), input.end());
  const auto seal = lockstep::sha256(std::span(sealed).first(head - kSeal));
  std::ranges::copy(seal, sealed.begin() + static_cast<std::ptrdiff_t>(head - kSeal));
  read(std::move(sealed));
  return 0;
}
