// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "data/trailing_hash.hpp"

namespace lockstep {
namespace {

/// Hashing less takes about as long as starting a thread.
constexpr std::size_t kSmallBytes = std::size_t{1} << 17;

}  // namespace

TrailingHash::TrailingHash(Sha256& hash, std::span<const std::uint8_t> bytes) : hash_(hash), bytes_(bytes) {
  const auto when = bytes.size() > kSmallBytes ? std::launch::async : std::launch::deferred;
  following_ = std::async(when, [this] { follow(); });
}

TrailingHash::~TrailingHash() {
  if (following_.valid()) reached(kGivenUp);
}

void TrailingHash::reached(std::size_t count) {
  reached_.store(count, std::memory_order_release);
  reached_.notify_one();
}

void TrailingHash::finish() {
  reached(bytes_.size());
  following_.get();
}

void TrailingHash::follow() {
  for (std::size_t done = 0; done < bytes_.size();) {
    const std::size_t reached = reached_.load(std::memory_order_acquire);
    if (reached == kGivenUp) return;
    if (reached == done) {
      reached_.wait(done, std::memory_order_acquire);
      continue;
    }
    hash_.update(std::as_bytes(bytes_.subspan(done, reached - done)));
    done = reached;
  }
}

}  // namespace lockstep
