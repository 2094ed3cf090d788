// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Numbers and texts of a trail as bytes, and back. For this room alone.
#pragma once

#include "common/error.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "trails are little-endian, as memory is here");

inline constexpr std::size_t kTrailHeadBytesAt = 12;  ///< in the head: how long it is
inline constexpr std::size_t kTrailRecordFacts = 24;  ///< bytes of a record before its fingerprints

class TrailBytesWriter {
 public:
  explicit TrailBytesWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void u32(std::uint32_t number) { raw(std::as_bytes(std::span(&number, 1))); }
  void u64(std::uint64_t number) { raw(std::as_bytes(std::span(&number, 1))); }
  void text(const std::string& text) {
    u32(static_cast<std::uint32_t>(text.size()));
    raw(std::as_bytes(std::span(text)));
  }

 private:
  std::vector<std::byte>& bytes_;
};

/// Nothing in the bytes is believed.
class TrailBytesReader {
 public:
  /// @param file  for messages; borrowed
  TrailBytesReader(std::span<const std::byte> bytes, const std::string& file) : rest_(bytes), file_(file) {}

  std::span<const std::byte> raw(std::size_t size) {
    if (size > rest_.size()) throw DataError(fmt::format("{}: its head ends too early", file_));
    const auto part = rest_.first(size);
    rest_ = rest_.subspan(size);
    return part;
  }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::string text() {
    const auto bytes = raw(u32());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::size_t left() const { return rest_.size(); }

 private:
  template <typename Number>
  Number number() {
    Number number{};
    std::memcpy(&number, raw(sizeof number).data(), sizeof number);
    return number;
  }

  std::span<const std::byte> rest_;
  const std::string& file_;
};

}  // namespace lockstep
