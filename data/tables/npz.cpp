// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Zip archives: the directory at their end, and the entries that it names.
#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/printable.hpp"
#include "data/tables/readers.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint64_t kMostDirectoryBytes = std::uint64_t{1} << 20;
constexpr std::size_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kRecordBytes = 46,
                      kHeaderBytes = 30;
constexpr std::uint64_t kNone32 = 0xFFFFFFFF;
constexpr int kStored = 0, kDeflated = 8;

using Bytes = std::span<const std::uint8_t>;

// The numbers of archives, by their bits.
std::uint64_t u16(Bytes bytes, std::size_t at) {
  return little_endian(bytes, at, 2);
}
std::uint64_t u32(Bytes bytes, std::size_t at) {
  return little_endian(bytes, at, 4);
}
std::uint64_t u64(Bytes bytes, std::size_t at) {
  return little_endian(bytes, at, 8);
}

/// An entry's bytes as they were before they were packed.
class EntrySource final : public ByteSource {
 public:
  EntrySource(const std::filesystem::path& file, std::uint64_t begin, std::string name,
              const NpzArchive::Entry& entry)
      : packed_(file, begin, entry.packed), name_(std::move(name)), entry_(entry) {
    if (entry.method == kDeflated) inflated_.emplace(packed_, kRawDeflate);
  }

  std::size_t read(std::span<std::uint8_t> out) override {
    out = out.first(std::min<std::uint64_t>(out.size(), entry_.size - offset_));
    const std::size_t count = inflated_ ? inflate_into(out) : packed_.read(out);
    found_crc_ = static_cast<std::uint32_t>(crc32_z(found_crc_, out.data(), count));
    offset_ += count;
    if (count < out.size()) fail("ends too early");
    if (count > 0 && offset_ == entry_.size && found_crc_ != entry_.crc)
      fail("its CRC is not that of the archive");
    return count;
  }
  std::uint64_t remaining_at_most() const override { return entry_.size - offset_; }
  std::uint64_t offset() const override { return offset_; }
  const char* offset_unit() const override { return " of the uncompressed data"; }
  const std::string& name() const override { return name_; }

 private:
  [[noreturn]] void fail(const char* cause) const {
    throw DataError(
        fmt::format("{}: damaged at byte {}: {}; save it again, or copy it again", name_, offset_, cause));
  }
  std::size_t inflate_into(std::span<std::uint8_t> out) {
    try {
      return inflated_->read(out);
    } catch (const DataError&) {
      fail("it cannot be inflated");
    }
  }

  FileSource packed_;
  std::optional<GzipSource> inflated_;
  std::string name_;
  NpzArchive::Entry entry_;
  std::uint64_t offset_ = 0;
  std::uint32_t found_crc_ = 0;
};

}  // namespace

void NpzArchive::fail(const std::string& cause) const {
  throw DataError(
      fmt::format("{}: no archive of arrays: {}; save it again with numpy.savez", file_.string(), cause));
}

std::vector<std::uint8_t> NpzArchive::bytes_at(std::uint64_t offset, std::uint64_t count) const {
  std::vector<std::uint8_t> bytes(count);
  if (FileSource(file_, offset).read(bytes) != count) fail("it ends too early");
  return bytes;
}

NpzArchive::NpzArchive(std::filesystem::path file)
    : file_(std::move(file)), size_(FileSource(file_).remaining_at_most()) {
  constexpr std::uint64_t kLongestComment = 65535;
  const std::uint64_t tail_bytes =
      std::min<std::uint64_t>(size_, kLocatorBytes + kEndBytes + kLongestComment);
  const auto tail = bytes_at(size_ - tail_bytes, tail_bytes);
  std::size_t at = tail.size() < kEndBytes ? 0 : tail.size() - kEndBytes + 1;
  const auto is_end = [&] {
    return u32(tail, at) == 0x06054B50 && at + kEndBytes + u16(tail, at + 20) == tail.size();
  };
  do {
    if (at == 0) fail("it has no directory at its end");
    --at;
  } while (!is_end());
  std::uint64_t bytes = u32(tail, at + 12), offset = u32(tail, at + 16);
  if (at >= kLocatorBytes && u32(tail, at - kLocatorBytes) == 0x07064B50) {
    const auto end64 = bytes_at(u64(tail, at - kLocatorBytes + 8), kEnd64Bytes);
    if (u32(end64, 0) != 0x06064B50) fail("its 64-bit end is none");
    bytes = u64(end64, 40);
    offset = u64(end64, 48);
  }
  if (bytes > kMostDirectoryBytes) fail("its directory is larger than 1 MiB");
  const auto directory = bytes_at(offset, bytes);
  for (Bytes rest = directory; !rest.empty();) {
    if (rest.size() < kRecordBytes || u32(rest, 0) != 0x02014B50) fail("its directory is damaged");
    const std::uint64_t name = u16(rest, 28), extra = u16(rest, 30), comment = u16(rest, 32);
    if (rest.size() - kRecordBytes < name + extra + comment) fail("its directory is damaged");
    entries_.push_back(read_entry(rest.first(kRecordBytes), rest.subspan(kRecordBytes + name, extra)));
    std::string text(as_text(rest.subspan(kRecordBytes, name)));
    if (text.ends_with(".npy")) text.resize(text.size() - 4);
    if (has(text)) fail("two arrays have one name");
    names_.push_back(std::move(text));
    rest = rest.subspan(kRecordBytes + name + extra + comment);
  }
}

/// @param extra  has the sizes that 32 bits do not hold, in this order, under the number 1
NpzArchive::Entry NpzArchive::read_entry(Bytes record, Bytes extra) const {
  Entry entry{.header = u32(record, 42),
              .packed = u32(record, 20),
              .size = u32(record, 24),
              .crc = static_cast<std::uint32_t>(u32(record, 16)),
              .method = static_cast<int>(u16(record, 10))};
  if ((u16(record, 8) & 1) != 0) fail("it is encrypted");
  while (extra.size() >= 4) {
    const std::size_t length = std::min<std::size_t>(u16(extra, 2), extra.size() - 4);
    auto field = extra.subspan(4, length);
    if (u16(extra, 0) == 1)
      for (std::uint64_t* number : {&entry.size, &entry.packed, &entry.header}) {
        if (*number != kNone32) continue;
        if (field.size() < 8) fail("its directory is damaged");
        *number = u64(field, 0);
        field = field.subspan(8);
      }
    extra = extra.subspan(4 + length);
  }
  return entry;
}

bool NpzArchive::has(std::string_view array) const {
  return std::ranges::find(names_, array) != names_.end();
}

std::unique_ptr<ByteSource> NpzArchive::open(std::string_view array) const {
  const Entry& entry = at(entries_, std::ranges::find(names_, array) - names_.begin());
  const std::string name = fmt::format("{}:{}", file_.string(), printable_line(array));
  const auto header = bytes_at(entry.header, kHeaderBytes);
  if (u32(header, 0) != 0x04034B50) fail("no entry at the place that its directory gives");
  const std::uint64_t begin = entry.header + kHeaderBytes + u16(header, 26) + u16(header, 28);
  if (begin > size_ || entry.packed > size_ - begin) fail("an entry reaches beyond the end");
  const bool is_deflated = entry.method == kDeflated;
  if (!is_deflated && (entry.method != kStored || entry.packed != entry.size))
    fail(fmt::format("{} is packed by method {}, and stored or deflated ones are read", name, entry.method));
  if (is_deflated && entry.size / GzipSource::kLargestExpansion > entry.packed)
    fail("an entry claims more than it can hold");
  return std::make_unique<EntrySource>(file_, begin, name, entry);
}

}  // namespace lockstep
