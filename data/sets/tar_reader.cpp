// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Blocks of 512 bytes. The format: POSIX.1-2017, pax, "ustar Interchange Format"; GNU tar's manual, "Basic Tar Format".
#include "common/env.hpp"
#include "common/error.hpp"
#include "common/yaml.hpp"
#include "data/sets/tar_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kMostExtended = std::uint64_t{1} << 20;  // bytes of a header with more facts
constexpr std::uint64_t kMostNumber = std::uint64_t{1} << 62;

using Block = std::array<std::uint8_t, kBlock>;

/// A field of a header.
std::span<const std::uint8_t> field(const Block& block, std::size_t offset, std::size_t bytes) {
  return std::span(block).subspan(offset, bytes);
}

/// Up to its NUL, if it has one.
std::string_view text_of(std::span<const std::uint8_t> field) {
  const std::string_view text(reinterpret_cast<const char*>(field.data()), field.size());
  return text.substr(0, text.find('\0'));
}

/// Octal digits between spaces; or GNU's way for large ones: a first byte of 128, and the rest big-endian. Nothing: it
/// is none of them, negative or too large.
std::optional<std::uint64_t> number_of(std::span<const std::uint8_t> field) {
  if (field[0] >= 0x80) {
    if (field[0] != 0x80) return std::nullopt;
    std::uint64_t number = 0;
    for (const std::uint8_t byte : field.subspan(1)) {
      if (number >= kMostNumber >> 8) return std::nullopt;
      number = number << 8 | byte;
    }
    return number;
  }
  std::string_view digits = text_of(field);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  digits = digits.substr(0, digits.find(' '));
  return parse_whole<std::uint64_t>(digits, 8);
}

/// The sum of all bytes, with its field as if that were spaces.
bool has_its_checksum(const Block& block) {
  constexpr std::size_t kAt = 148, kBytes = 8;
  const auto of_field = field(block, kAt, kBytes);
  const std::uint64_t all = std::accumulate(block.begin(), block.end(), std::uint64_t{0});
  const std::uint64_t own = std::accumulate(of_field.begin(), of_field.end(), std::uint64_t{0});
  return number_of(of_field) == all - own + kBytes * ' ';
}

/// Its name in the header, whose first part may be in the field after it.
std::string short_name(const Block& block) {
  const std::string_view name = text_of(field(block, 0, 100)), prefix = text_of(field(block, 345, 155));
  const bool is_ustar = text_of(field(block, 257, 6)) == "ustar";
  return is_ustar && !prefix.empty() ? fmt::format("{}/{}", prefix, name) : std::string(name);
}

/// Names an entry that is no file; null: it is unknown.
const char* kind_of_tar_entry(char type) {
  if (type == '1') return "a hard link";
  if (type == '2') return "a symbolic link";
  if (type == 'S') return "a sparse file";
  return type == '3' || type == '4' || type == '6' ? "a device or FIFO" : nullptr;
}

}  // namespace

void TarReader::fail(std::uint64_t offset, const std::string& cause) const {
  throw DataError(
      fmt::format("{}: offset {}: {}; copy the archive again, or make it again", name_, offset, cause));
}

void TarReader::read(std::uint64_t offset, std::span<std::uint8_t> to) const {
  if (offset > bytes_ || to.size() > bytes_ - offset || read_(offset, to) != to.size())
    fail(offset, fmt::format("the archive is cut off at byte {}", bytes_));
}

std::string TarReader::read_text(std::uint64_t offset, std::uint64_t bytes) const {
  if (bytes > kMostExtended)
    fail(offset, fmt::format("a header of {} bytes; at most {} are read", bytes, kMostExtended));
  std::string text(bytes, '\0');
  read(offset, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  return text;
}

/// Records of "LENGTH key=value\n".
void TarReader::take_pax(std::uint64_t offset, std::string_view text, Extended& of_next) const {
  while (!text.empty()) {
    const auto space = text.find(' ');
    const auto length = parse_int64(text.substr(0, std::min<std::size_t>(space, 8)));
    if (space == text.npos || !length || *length < static_cast<std::int64_t>(space) + 2 ||
        static_cast<std::uint64_t>(*length) > text.size() ||
        text[static_cast<std::size_t>(*length) - 1] != '\n')
      fail(offset, "a pax header is damaged");
    const std::string_view record = text.substr(space + 1, static_cast<std::size_t>(*length) - space - 2);
    text.remove_prefix(static_cast<std::size_t>(*length));
    const std::string_view key = record.substr(0, record.find('='));
    const std::string_view value = record.substr(std::min(key.size() + 1, record.size()));
    if (key == "path") of_next.path = value;
    if (key != "size") continue;
    const auto bytes = parse_int64(value);
    if (!bytes || *bytes < 0) fail(offset, "a pax header's size is not a number of bytes");
    of_next.bytes = static_cast<std::uint64_t>(*bytes);
  }
}

/// Whole blocks.
void TarReader::skip(std::uint64_t bytes) {
  const std::uint64_t whole = (bytes + kBlock - 1) / kBlock * kBlock;
  if (whole > bytes_ - at_)
    fail(at_, fmt::format("{} bytes should follow, and the archive is cut off at byte {}", bytes, bytes_));
  at_ += whole;
}

/// At a block of zeros.
void TarReader::require_end() const {
  constexpr std::uint64_t kMostZeros = std::uint64_t{1} << 20;
  std::array<std::uint8_t, 8 * kBlock> piece;
  for (std::uint64_t at = at_; at < bytes_; at += piece.size()) {
    if (at - at_ == kMostZeros) fail(at_, "more than 1 MiB of zeros follows, in place of the archive's rest");
    const auto here = std::span(piece).first(std::min<std::uint64_t>(piece.size(), bytes_ - at));
    read(at, here);
    if (const auto other = std::ranges::find_if(here, [](std::uint8_t byte) { return byte != 0; });
        other != here.end())
      fail(at + static_cast<std::uint64_t>(other - here.begin()),
           fmt::format("more follows the archive's end at byte {}; archives are joined by tar --concatenate, "
                       "not by cat",
                       at_));
  }
}

std::optional<TarEntry> TarReader::next() {
  for (Extended extended;;) {
    Block block;
    const std::uint64_t header = at_;
    read(header, block);
    if (std::ranges::count(block, 0) == kBlock) {
      require_end();
      return std::nullopt;
    }
    if (!has_its_checksum(block)) fail(header, "a header is damaged, or this is not a tar archive");
    auto bytes = number_of(field(block, 124, 12));
    if (!bytes) fail(header, "a header's size is not a number of bytes");
    const char type = static_cast<char>(block[156]);
    const bool is_file = type == '0' || type == '\0' || type == '7';
    if (is_file && extended.bytes) bytes = extended.bytes;
    at_ += kBlock;
    const std::uint64_t body = at_;
    if (type == 'x') take_pax(header, read_text(body, *bytes), extended);
    if (type == 'L') {
      extended.path = read_text(body, *bytes);
      extended.path.resize(std::min(extended.path.find('\0'), extended.path.size()));
    }
    skip(*bytes);
    if (is_file) {
      TarEntry entry{extended.path.empty() ? short_name(block) : std::move(extended.path), body, *bytes};
      if (entry.name.empty() || entry.name.find_first_of(std::string_view("\0\n", 2)) != entry.name.npos)
        fail(header, "a file's name is empty, or has more than one line");
      return entry;
    }
    if (const char* kind = kind_of_tar_entry(type))
      fail(header, fmt::format("{} is {}; the archive must hold the file itself", short_name(block), kind));
    if (type == '5') extended = {};
    if (std::string_view("xgLK5").find(type) == std::string_view::npos)
      fail(header, fmt::format("an entry of the unknown kind {}", static_cast<int>(block[156])));
  }
}

}  // namespace lockstep
