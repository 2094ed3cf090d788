// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Records of event files, and the names of these.
#include "common/machine.hpp"
#include "trainer/tensorboard/event_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace lockstep {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.", kSuffix = ".lockstep";

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
    table[i] = crc;
  }
  return table;
}

/// So that a CRC of bytes that hold CRCs says something.
std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

template <typename Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof number; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = make_crc_table();
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::string event_record(std::string_view bytes) {
  const std::string length = little_endian(static_cast<std::uint64_t>(bytes.size()));
  std::string record = length + little_endian(masked(crc32c(length)));
  record += bytes;
  return record += little_endian(masked(crc32c(bytes)));
}

bool is_event_file(std::string_view name) {
  return name.starts_with(kPrefix) && name.ends_with(kSuffix);
}

/// Two files of one second would be read in any order.
std::string next_event_file(Env& env, const std::string& directory) {
  auto seconds = static_cast<std::int64_t>(now_seconds());
  for (const std::string& name : env.list(directory)) {
    if (!is_event_file(name)) continue;
    std::int64_t taken = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), taken);
    constexpr std::int64_t kMost = 9'999'999'999;  // of as many digits
    if (taken < kMost) seconds = std::max(seconds, taken + 1);
  }
  return fmt::format("{}/{}{:010}{}", directory, kPrefix, seconds, kSuffix);
}

}  // namespace lockstep
