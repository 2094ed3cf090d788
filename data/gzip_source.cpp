// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stream-inflating with zlib.
#include "data/gzip_source.hpp"

#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace lockstep {
namespace {

constexpr std::size_t kInputBytes = std::size_t{256} << 10;
constexpr std::size_t kLargestPiece = std::size_t{1} << 30;  // zlib counts in 32 bits
constexpr std::uint64_t kLargestExpansion = 1032;            // zlib's technical notes: 258 bytes from 2 bits
constexpr std::uint64_t kUsualExpansion = 8;
constexpr std::uint64_t kHeldByZlib = 64;  // more than it keeps in its bit buffer
constexpr int kGzipOnly = 15 + 16;         // the largest window, a gzip header

}  // namespace

GzipSource::GzipSource(ByteSource& compressed, std::span<const std::uint8_t> already_read)
    : compressed_(compressed), input_(already_read.begin(), already_read.end()) {
  stream_.next_in = input_.data();
  stream_.avail_in = static_cast<uInt>(input_.size());
  if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
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
  if (stream_.avail_in == 0) refill();
  const int result = inflate(&stream_, Z_NO_FLUSH);
  if (result == Z_STREAM_END) {
    ended_ = true;
    check_nothing_follows();
  } else if (result != Z_OK) {
    throw DataError(fmt::format("{}: offset {}: damaged gzip data ({}); {}", name(), compressed_offset(),
                                stream_.msg != nullptr ? stream_.msg : "no progress", kFixForData));
  }
}

void GzipSource::refill() {
  input_.resize(std::min<std::uint64_t>(kInputBytes, compressed_.remaining_at_most()));
  const std::size_t count = compressed_.read(input_);
  stream_.next_in = input_.data();
  stream_.avail_in = static_cast<uInt>(count);
  if (count == 0) {
    throw DataError(fmt::format("{}: offset {}: gzip data ends before its end mark: truncated; {}", name(),
                                compressed_offset(), kFixForData));
  }
}

void GzipSource::check_nothing_follows() {
  const std::uint64_t end = compressed_offset();
  std::array<std::uint8_t, 2> next{};
  std::size_t count = std::min<std::size_t>(stream_.avail_in, next.size());
  std::copy_n(stream_.next_in, count, next.begin());
  count += compressed_.read(std::span(next).subspan(count));
  if (count == 0) return;
  const char* what = next == kMagic ? "a second gzip member" : "trailing bytes";
  throw DataError(
      fmt::format("{}: offset {}: {} after the end of the gzip data; {}", name(), end, what, kFixForData));
}

}  // namespace lockstep
