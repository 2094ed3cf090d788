// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Bytes in order, from a file or from memory, so that one parser serves both.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class StoredFile;  // data/stored_file.hpp

/// Bytes of a file as text. Borrowed.
inline std::string_view as_text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A whole number of `count` bytes from `at` on, which are there, the least significant first.
inline std::uint64_t little_endian(std::span<const std::uint8_t> bytes, std::size_t at, std::size_t count) {
  std::uint64_t number = 0;
  for (std::size_t i = count; i-- > 0;) number = number << 8 | bytes[at + i];
  return number;
}

/// The first bytes of a gzip file.
inline constexpr std::array<std::uint8_t, 2> kGzipMagic = {0x1F, 0x8B};

/// Advice about a damaged file of a data set, for messages: "fetch it again with launch/get-data, or ...".
std::string fix_for_data();

/// A stream of bytes with a name for messages and an upper bound on its length. Both are known before anything is
/// read.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// Reads up to out.size() bytes; fewer only at the end, so 0 for a non-empty `out` means the end.
  virtual std::size_t read(std::span<std::uint8_t> out) = 0;
  /// True if the bytes to come begin as a gzip file does, where that is known before they are read.
  virtual bool is_gzip() const { return false; }
  /// A bound of the bytes that are still to come. It bounds what may be allocated because a header
  /// says so.
  virtual std::uint64_t remaining_at_most() const = 0;
  /// So much memory may be taken before anything has been read; more only as data arrive.
  virtual std::uint64_t worth_reserving() const { return remaining_at_most(); }
  /// Bytes read so far; a message adds what they are bytes of ("" or " of the uncompressed data").
  virtual std::uint64_t offset() const = 0;
  virtual const char* offset_unit() const { return ""; }
  virtual const std::string& name() const = 0;
};

/// Borrows bytes in memory.
class MemorySource final : public ByteSource {
 public:
  MemorySource(std::span<const std::uint8_t> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  std::size_t read(std::span<std::uint8_t> out) override;
  bool is_gzip() const override;
  std::uint64_t remaining_at_most() const override { return bytes_.size() - offset_; }
  std::uint64_t offset() const override { return offset_; }
  const std::string& name() const override { return name_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t offset_ = 0;
  std::string name_;
};

/// A regular file, or a part of it, without a buffer: ask for large pieces.
class FileSource final : public ByteSource {
 public:
  /// @param offset  byte at which reading begins; of messages, too
  /// @param most    bytes to read; of a shorter file as many as it had when it was opened
  /// @throws MissingDataError  there is no such file
  /// @throws DataError         it is not a regular file
  /// @throws IoError           it cannot be opened; read() too, as StoredFile's
  explicit FileSource(const std::filesystem::path& path, std::uint64_t offset = 0,
                      std::uint64_t most = UINT64_MAX);
  ~FileSource() override;

  std::size_t read(std::span<std::uint8_t> out) override;
  bool is_gzip() const override;
  std::uint64_t remaining_at_most() const override { return left_; }
  std::uint64_t offset() const override { return offset_; }
  const std::string& name() const override;

 private:
  std::unique_ptr<const StoredFile> file_;
  std::uint64_t offset_, left_;
};

/// All of a file. @param complaint  after "FILE: 12 bytes" where it has more than `most`, which goes into its {}
/// @throws DataError  it has; as FileSource
std::vector<std::uint8_t> read_file(const std::filesystem::path& path, std::uint64_t most,
                                    const char* complaint);

/// @throws DataError  always: the file, the offset of what is wrong there, the cause, and what to do
[[noreturn]] void fail_at(const ByteSource& source, std::uint64_t offset, const std::string& cause);

// The inflated bytes of a gzip file, as a stream that never holds more than one buffer of input.

/// The largest window of zlib's, without a header, and with that of a gzip file.
inline constexpr int kRawDeflate = -15, kGzip = 15 + 16;

/// Inflates one gzip member straight into the caller's memory. Its CRC and length are checked when its end is
/// reached, and nothing may follow it: a file of several members is refused by name, since no data set is
/// published as one.
class GzipSource final : public ByteSource {
 public:
  static constexpr std::uint64_t kLargestExpansion = 1032;  ///< zlib's technical notes: 258 bytes from 2 bits

  /// @param compressed  borrowed; everything from its present position on
  /// @param form        kRawDeflate: as in archives that have checksums of their own
  explicit GzipSource(ByteSource& compressed, int form = kGzip);
  ~GzipSource() override;

  /// @throws DataError naming the offset in the compressed file: damaged, truncated, or followed by something
  std::size_t read(std::span<std::uint8_t> out) override;
  /// From the size of the compressed data: deflate expands at most 1032 times.
  std::uint64_t remaining_at_most() const override;
  /// Images and labels of real sets shrink to a fifth or less of this.
  std::uint64_t worth_reserving() const override;
  std::uint64_t offset() const override { return offset_; }
  const char* offset_unit() const override { return " of the uncompressed data"; }
  const std::string& name() const override { return compressed_.name(); }

 private:
  void inflate_some();
  void check_nothing_follows();
  std::uint64_t compressed_offset() const { return compressed_.offset() - stream_.avail_in; }

  ByteSource& compressed_;
  std::vector<std::uint8_t> input_;
  z_stream stream_{};
  std::uint64_t offset_ = 0;
  bool ended_ = false;
};

/// Calls parse(source) with the bytes of a file, inflated if it is a gzip file.
/// @throws DataError  it is empty
template <typename Parse>
auto parse_inflated(ByteSource& file, const Parse& parse) {
  if (file.remaining_at_most() == 0) fail_at(file, 0, "the file is empty");
  if (!file.is_gzip()) return parse(file);
  GzipSource inflated(file);
  return parse(static_cast<ByteSource&>(inflated));
}

// Pictures are stored pixel by pixel, kernels want channel by channel.

/// Each image from [pixel][channel] to [channel][pixel], in place. Nothing to do for one channel.
/// @param images  [sample][pixels * channels]
template <typename Value>
void separate_channels(std::span<Value> images, std::size_t pixels, int channels) {
  const auto count = static_cast<std::size_t>(channels);
  if (count <= 1) return;
  std::vector<Value> image(pixels * count);
  for (std::size_t at = 0; at < images.size(); at += image.size()) {
    std::copy_n(images.data() + at, image.size(), image.data());
    Value* out = images.data() + at;
    for (std::size_t c = 0; c < count; ++c)
      for (std::size_t p = 0; p < pixels; ++p) *out++ = image[p * count + c];
  }
}

/// The way back, for one image. @param from, to  of the same size, not overlapping
void interleave_channels(std::span<const std::uint8_t> from, std::size_t pixels, int channels,
                         std::span<std::uint8_t> to);

}  // namespace lockstep
