// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading files, and memory.
#include "data/byte_source.hpp"

#include "common/error.hpp"
#include "common/installed.hpp"
#include "data/stored_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace lockstep {

std::size_t MemorySource::read(std::span<std::uint8_t> out) {
  const std::size_t count = std::min(out.size(), bytes_.size() - offset_);
  if (count > 0) std::memcpy(out.data(), bytes_.data() + offset_, count);
  offset_ += count;
  return count;
}

bool MemorySource::is_gzip() const {
  return as_text(bytes_.subspan(offset_)).starts_with(as_text(kGzipMagic));
}

FileSource::FileSource(const std::filesystem::path& path, std::uint64_t offset, std::uint64_t most)
    : file_(std::make_unique<const StoredFile>(path, "check the path", "check its permissions")),
      offset_(offset),
      left_(std::min(most, file_->size() - std::min(offset, file_->size()))) {}

FileSource::~FileSource() = default;

const std::string& FileSource::name() const {
  return file_->name();
}

std::size_t FileSource::read(std::span<std::uint8_t> out) {
  const std::size_t count = file_->read(offset_, out.first(std::min<std::uint64_t>(out.size(), left_)));
  offset_ += count;
  left_ -= count;
  return count;
}

bool FileSource::is_gzip() const {
  std::array<std::uint8_t, kGzipMagic.size()> begin{};
  file_->read(offset_, begin);
  return begin == kGzipMagic;
}

std::vector<std::uint8_t> read_file(const std::filesystem::path& path, std::uint64_t most,
                                    const char* complaint) {
  FileSource file(path);
  const std::uint64_t size = file.remaining_at_most();
  if (size > most)
    throw DataError(
        fmt::format("{}: {} bytes{}", file.name(), size, fmt::format(fmt::runtime(complaint), most)));
  std::vector<std::uint8_t> bytes(size);
  bytes.resize(file.read(bytes));
  return bytes;
}

std::string fix_for_data() {
  return fmt::format("fetch it again with {}, or make it again if it is yours", script_command("get-data"));
}

void fail_at(const ByteSource& source, std::uint64_t offset, const std::string& cause) {
  throw DataError(fmt::format("{}: offset {}{}: {}; {}", source.name(), offset, source.offset_unit(), cause,
                              fix_for_data()));
}

// Stream-inflating with zlib.

namespace {

constexpr std::size_t kInputBytes = std::size_t{256} << 10;
constexpr std::size_t kLargestPiece = std::size_t{1} << 30;  // zlib counts in 32 bits
constexpr std::uint64_t kUsualExpansion = 8;
constexpr std::uint64_t kHeldByZlib = 64;  // more than it keeps in its bit buffer

}  // namespace

GzipSource::GzipSource(ByteSource& compressed, int form) : compressed_(compressed) {
  if (inflateInit2(&stream_, form) != Z_OK) throw std::bad_alloc();
}

GzipSource::~GzipSource() {
  inflateEnd(&stream_);
}

std::uint64_t GzipSource::remaining_at_most() const {
  if (ended_) return 0;
  return (compressed_.remaining_at_most() + stream_.avail_in + kHeldByZlib) * kLargestExpansion;
}

std::uint64_t GzipSource::worth_reserving() const {
  return kUsualExpansion * (compressed_.remaining_at_most() + stream_.avail_in) + kInputBytes;
}

std::size_t GzipSource::read(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size() && !ended_) {
    const std::size_t piece = std::min(out.size() - done, kLargestPiece);
    stream_.next_out = out.data() + done;
    stream_.avail_out = static_cast<uInt>(piece);
    inflate_some();
    done += piece - stream_.avail_out;
    offset_ += piece - stream_.avail_out;
  }
  return done;
}

void GzipSource::inflate_some() {
  if (stream_.avail_in == 0) {
    input_.resize(std::min<std::uint64_t>(kInputBytes, compressed_.remaining_at_most()));
    stream_.avail_in = static_cast<uInt>(compressed_.read(input_));
    stream_.next_in = input_.data();
    if (stream_.avail_in == 0)
      throw DataError(fmt::format("{}: offset {}: gzip data ends before its end mark: truncated; {}", name(),
                                  compressed_offset(), fix_for_data()));
  }
  const int result = inflate(&stream_, Z_NO_FLUSH);
  if (result == Z_STREAM_END) {
    ended_ = true;
    check_nothing_follows();
  } else if (result != Z_OK) {
    throw DataError(fmt::format("{}: offset {}: damaged gzip data ({}); {}", name(), compressed_offset(),
                                stream_.msg != nullptr ? stream_.msg : "no progress", fix_for_data()));
  }
}

void GzipSource::check_nothing_follows() {
  const std::uint64_t end = compressed_offset();
  std::array<std::uint8_t, 2> next{};
  std::size_t count = std::min<std::size_t>(stream_.avail_in, next.size());
  std::copy_n(stream_.next_in, count, next.begin());
  count += compressed_.read(std::span(next).subspan(count));
  if (count == 0) return;
  const char* what = next == kGzipMagic ? "a second gzip member" : "trailing bytes";
  throw DataError(
      fmt::format("{}: offset {}: {} after the end of the gzip data; {}", name(), end, what, fix_for_data()));
}

// From pixels side by side to those of a channel together, and back.

void interleave_channels(std::span<const std::uint8_t> from, std::size_t pixels, int channels,
                         std::span<std::uint8_t> to) {
  const auto count = static_cast<std::size_t>(channels);
  std::size_t at = 0;
  for (std::size_t p = 0; p < pixels; ++p)
    for (std::size_t c = 0; c < count; ++c) to[at++] = from[c * pixels + p];
}

}  // namespace lockstep
