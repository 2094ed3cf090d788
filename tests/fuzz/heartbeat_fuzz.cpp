// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Bytes from the network: whatever they are, what comes out of them is what encode() would have written.
#include "comm/watch/message.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::watchdog;
  const std::span<const std::uint8_t> bytes(data, size);
  if (bytes.empty()) return 0;
  // The first byte says in which pieces the others come.
  const std::size_t piece = 1 + bytes[0];
  Parser parser;
  for (std::size_t i = 1; i < size && !parser.is_bad(); i += piece) {
    parser.feed(bytes.subspan(i, std::min(piece, size - i)));
    while (const auto message = parser.next()) {
      const auto again = encode(*message);
      if (again.size() > kHeadBytes + kMostBytes) std::abort();
      Parser second;
      second.feed(again);
      const auto same = second.next();
      if (!same || encode(*same) != again) std::abort();
    }
  }
  return 0;
}
