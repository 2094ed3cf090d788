// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The inflated bytes of a gzip file, as a stream that never holds more than one buffer of input.
#pragma once

#include "data/byte_source.hpp"

#include <zlib.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Inflates one gzip member straight into the caller's memory. Its CRC and length are checked when its end is
/// reached, and nothing may follow it: a file of several members is refused by name, since no data set is
/// published as one.
class GzipSource final : public ByteSource {
 public:
  static constexpr std::array<std::uint8_t, 2> kMagic = {0x1F, 0x8B};

  /// @param compressed    borrowed; everything from its present position on
  /// @param already_read  the first bytes of the gzip file, where the caller took them to look at the magic
  GzipSource(ByteSource& compressed, std::span<const std::uint8_t> already_read);
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
  void refill();
  void check_nothing_follows();
  std::uint64_t compressed_offset() const { return compressed_.offset() - stream_.avail_in; }

  ByteSource& compressed_;
  std::vector<std::uint8_t> input_;
  z_stream stream_{};
  std::uint64_t offset_ = 0;
  bool ended_ = false;
};

}  // namespace lockstep
