// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The IDX reader.
#include "data/idx.hpp"

#include "data/byte_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace lockstep {

namespace {

using Word = std::array<std::uint8_t, 4>;

Word read_word(ByteSource& source, const char* what) {
  Word word{};
  if (source.read(word) < word.size())
    fail_at(source, source.offset(), fmt::format("the file ends inside {}: truncated", what));
  return word;
}

/// Checks the magic and returns the number of dimensions.
int dimensions_of(const ByteSource& source, const Word& magic) {
  if (magic[0] != 0 || magic[1] != 0) {
    const char* hint = magic[0] == '<' ? " (it looks like a web page)" : "";
    fail_at(source, 0, fmt::format("not an IDX file: it begins with {:02x}{}", fmt::join(magic, " "), hint));
  }
  if (magic[2] != kIdxUint8)
    fail_at(source, 2,
            fmt::format("element type 0x{:02x} is not supported, only 0x08 (unsigned bytes)", magic[2]));
  if (magic[3] < 1 || magic[3] > kMaxIdxDims)
    fail_at(source, 3, fmt::format("{} dimensions, expected 1 to {}", magic[3], kMaxIdxDims));
  return magic[3];
}

std::vector<std::int64_t> read_dims(ByteSource& source, int count) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < count; ++i) {
    const Word word = read_word(source, "the header");
    dims.push_back(std::int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3]);
  }
  return dims;
}

/// The product of the sizes, if the file can hold that many bytes. Called before anything is allocated.
std::size_t plausible_size(const ByteSource& source, std::span<const std::int64_t> dims) {
  std::uint64_t size = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    size *= static_cast<std::uint64_t>(dims[i]);  // no overflow: below 2^31 times below 2^32
    if (size == 0)
      fail_at(source, 4 + 4 * i, fmt::format("the header says {}: no elements", to_string(dims)));
    if (size > kMaxIdxBytes)
      fail_at(source, 4 + 4 * i,
              fmt::format("the header says {}: more than {} bytes", to_string(dims), kMaxIdxBytes));
  }
  const std::uint64_t limit = source.remaining_at_most();
  if (size > limit)
    fail_at(source, source.offset(),
            fmt::format(
                "the header promises {} = {} bytes, and at most {} can follow: truncated, or a wrong header",
                to_string(dims), size, limit));
  return size;
}

/// The buffer grows as data arrive: what a header promises costs nothing yet.
AlignedBuffer<std::uint8_t> read_growing(ByteSource& source, std::size_t size) {
  AlignedBuffer<std::uint8_t> buffer(std::min<std::uint64_t>(size, source.worth_reserving()));
  std::size_t count = source.read(buffer.span());
  while (count == buffer.size() && count < size) {
    AlignedBuffer<std::uint8_t> larger(std::min(size, 2 * buffer.size()));
    std::copy_n(buffer.data(), count, larger.data());
    buffer = std::move(larger);
    count += source.read(buffer.span().subspan(count));
  }
  if (count < size)
    fail_at(source, source.offset(),
            fmt::format("{} of {} data bytes are missing: truncated", size - count, size));
  return buffer;
}

AlignedBuffer<std::uint8_t> read_elements(ByteSource& source, std::size_t size) {
  auto elements = read_growing(source, size);
  std::uint8_t extra = 0;  // asking for one more also makes gzip check its CRC
  const std::uint64_t end = source.offset();
  if (source.read({&extra, 1}) != 0)
    fail_at(source, end, "trailing bytes after the data that the header promises");
  return elements;
}

/// The part of a file that is wanted.
enum class ReadPart { kHeader, kAll };

IdxArray read_any(ByteSource& file, ReadPart part = ReadPart::kAll) {
  return parse_inflated(file, [part](ByteSource& source) {
    IdxArray array;
    array.dims = read_dims(source, dimensions_of(source, read_word(source, "the magic number")));
    const std::size_t size = plausible_size(source, array.dims);
    if (part == ReadPart::kAll) array.bytes = read_elements(source, size);
    return array;
  });
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path) {
  FileSource source(path);
  return read_any(source);
}

std::vector<std::int64_t> read_idx_dims(const std::filesystem::path& path) {
  FileSource source(path);
  return read_any(source, ReadPart::kHeader).dims;
}

IdxArray parse_idx(std::span<const std::uint8_t> file, std::string_view name) {
  MemorySource source(file, std::string(name));
  return read_any(source);
}

std::vector<std::int64_t> parse_idx_dims(std::span<const std::uint8_t> file, std::string_view name) {
  MemorySource source(file, std::string(name));
  return read_any(source, ReadPart::kHeader).dims;
}

std::string to_string(std::span<const std::int64_t> dims) {
  return fmt::format("{}", fmt::join(dims, " x "));
}

std::vector<std::byte> idx_file_head(std::uint8_t type, std::span<const std::int64_t> dims) {
  std::vector<std::byte> head = {std::byte{0}, std::byte{0}, std::byte{type},
                                 static_cast<std::byte>(dims.size())};
  for (const std::int64_t dim : dims)
    for (int shift = 24; shift >= 0; shift -= 8) head.push_back(static_cast<std::byte>(dim >> shift));
  return head;
}

}  // namespace lockstep
