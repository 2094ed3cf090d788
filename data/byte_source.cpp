// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading files with plain read(2), and memory.
#include "data/byte_source.hpp"

#include "common/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace lockstep {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

/// Not blocking, so that a FIFO of that name is refused and not waited for.
int open_for_reading(const std::string& name) {
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor >= 0) return descriptor;
  if (errno == ENOENT || errno == ENOTDIR)
    throw MissingDataError(fmt::format("{}: no such file; check the path", name));
  throw IoError(fmt::format("{}: cannot be opened: {}; check its permissions", name, reason(errno)));
}

}  // namespace

std::size_t MemorySource::read(std::span<std::uint8_t> out) {
  const std::size_t count = std::min(out.size(), bytes_.size() - offset_);
  if (count > 0) std::memcpy(out.data(), bytes_.data() + offset_, count);
  offset_ += count;
  return count;
}

FileSource::FileSource(const std::filesystem::path& path)
    : name_(path.string()), descriptor_(open_for_reading(name_)) {
  struct stat status {};
  const int failed = ::fstat(descriptor_, &status);
  if (failed == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  const int error = errno;
  ::close(descriptor_);
  if (failed != 0) throw IoError(fmt::format("{}: cannot be examined: {}", name_, reason(error)));
  throw DataError(fmt::format("{}: not a regular file; put the file itself there", name_));
}

FileSource::~FileSource() {
  ::close(descriptor_);
}

std::size_t FileSource::read(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = ::read(descriptor_, out.data() + done, out.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw IoError(fmt::format("{}: offset {}: reading failed: {}", name_, offset_, reason(errno)));
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
    offset_ += static_cast<std::uint64_t>(count);
  }
  return done;
}

void fail_at(const ByteSource& source, std::uint64_t offset, const std::string& cause) {
  throw DataError(fmt::format("{}: offset {}{}: {}; {}", source.name(), offset, source.offset_unit(), cause,
                              kFixForData));
}

}  // namespace lockstep
