// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Bytes in order, from a file or from memory, so that one parser serves both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace lockstep {

/// What to do about a damaged file of a data set, for messages.
inline constexpr const char* kFixForData =
    "fetch it again with launch/get-data, or make it again if it is yours";

/// A stream of bytes with a name for messages and an upper bound on its length, known before anything is
/// read.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// Reads up to out.size() bytes; fewer only at the end, so 0 for a non-empty `out` means the end.
  virtual std::size_t read(std::span<std::uint8_t> out) = 0;
  /// No more than so many bytes are still to come. What may be allocated on the word of a header is bounded
  /// by this.
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
  std::uint64_t remaining_at_most() const override { return bytes_.size() - offset_; }
  std::uint64_t offset() const override { return offset_; }
  const std::string& name() const override { return name_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t offset_ = 0;
  std::string name_;
};

/// Owns an open regular file and reads it without a buffer of its own: ask for large pieces.
class FileSource final : public ByteSource {
 public:
  /// @throws MissingDataError  there is no such file
  /// @throws DataError         it is not a regular file
  /// @throws IoError           it cannot be opened; read() too, if the device fails
  explicit FileSource(const std::filesystem::path& path);
  ~FileSource() override;

  std::size_t read(std::span<std::uint8_t> out) override;
  std::uint64_t remaining_at_most() const override { return size_ > offset_ ? size_ - offset_ : 0; }
  std::uint64_t offset() const override { return offset_; }
  const std::string& name() const override { return name_; }

 private:
  std::string name_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = 0;
};

/// @throws DataError  always: the file, the offset of what is wrong there, the cause, and what to do
[[noreturn]] void fail_at(const ByteSource& source, std::uint64_t offset, const std::string& cause);

}  // namespace lockstep
