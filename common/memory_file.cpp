// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A memfd, which other processes open as /proc/PID/fd/N. Its size is sealed: what is mapped cannot shrink.
#include "common/memory_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace lockstep {
namespace {

constexpr const char* kName = "lockstep";                        ///< for people who look at a process's maps
constexpr std::string_view kLink = "/memfd:lockstep (deleted)";  ///< its name in /proc
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

using Key = std::array<std::uint64_t, 2>;
constexpr std::uint64_t kKeyBytes =
    MemoryFile::kPartAlignment;  ///< the key itself is the first part of these bytes

/// Another process may have anything under that number, and opening some things waits, or does something.
bool is_memory_file(const std::string& path) {
  std::array<char, kLink.size() + 1> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) == kLink;
}

}  // namespace

std::shared_ptr<MemoryFile> MemoryFile::make(std::size_t bytes) {
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()) - kKeyBytes) return nullptr;
  const int descriptor = ::memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return nullptr;
  std::shared_ptr<MemoryFile> memory(new MemoryFile(descriptor));
  memory->size_ = kKeyBytes + bytes;
  const bool is_made = ::getentropy(memory->key_.data(), sizeof(Key)) == 0 &&
                       ::ftruncate(descriptor, static_cast<off_t>(memory->size_)) == 0 &&
                       write_all(descriptor, std::as_bytes(std::span(memory->key_))) == 0;
  return is_made ? memory : nullptr;
}

std::shared_ptr<MemoryFile> MemoryFile::of_zeros(std::size_t bytes) {
  auto memory = make(bytes);
  const bool is_made = memory != nullptr &&
                       ::posix_fallocate(memory->descriptor_, 0, static_cast<off_t>(memory->size_)) == 0 &&
                       memory->seal(kSizeSeals) && memory->map(false);
  return is_made ? memory : nullptr;
}

std::shared_ptr<MemoryFile> MemoryFile::of_parts(std::span<const std::span<const std::byte>> parts) {
  std::uint64_t bytes = 0;
  for (const auto part : parts) bytes = next_part(bytes) + part.size();
  auto memory = make(bytes);
  if (memory == nullptr) return nullptr;
  std::uint64_t offset = kKeyBytes;
  for (const auto part : parts) {
    offset = next_part(offset);
    const bool is_written = ::lseek(memory->descriptor_, static_cast<off_t>(offset), SEEK_SET) >= 0 &&
                            write_all(memory->descriptor_, part) == 0;
    if (!is_written) return nullptr;
    offset += part.size();
  }
  return memory->seal(kSizeSeals | F_SEAL_WRITE) && memory->map(true) ? memory : nullptr;
}

std::shared_ptr<MemoryFile> MemoryFile::open(const MemoryFileOffer& offer) {
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.pid, offer.descriptor);
  if (offer.pid <= 0 || !is_memory_file(path)) return nullptr;
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return nullptr;
  std::shared_ptr<MemoryFile> memory(new MemoryFile(descriptor));
  struct stat status {};
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  const bool is_fixed = seals >= 0 && (seals & kSizeSeals) == kSizeSeals;
  if (!is_fixed || ::fstat(descriptor, &status) != 0) return nullptr;
  memory->size_ = static_cast<std::uint64_t>(status.st_size);
  memory->key_ = offer.key;
  if (memory->size_ != kKeyBytes + offer.bytes || !memory->map((seals & F_SEAL_WRITE) != 0)) return nullptr;
  return std::memcmp(memory->map_, offer.key.data(), sizeof(Key)) == 0 ? memory : nullptr;
}

MemoryFile::~MemoryFile() {
  if (map_ != nullptr) ::munmap(map_, size_);
}

MemoryFileOffer MemoryFile::offer() const {
  return {.pid = ::getpid(), .descriptor = descriptor_, .bytes = size_ - kKeyBytes, .key = key_};
}

std::span<std::byte> MemoryFile::bytes() const {
  return {map_ + kKeyBytes, size_ - kKeyBytes};
}

bool MemoryFile::seal(int seals) {
  return ::fcntl(descriptor_, F_ADD_SEALS, seals | F_SEAL_SEAL) == 0;
}

/// Maps the memory. Mapped as shared, memory sealed against writes counts as written before Linux 6.7. Read only, a
/// private map has the same pages.
bool MemoryFile::map(bool is_constant) {
  void* map = ::mmap(nullptr, size_, is_constant ? PROT_READ : PROT_READ | PROT_WRITE,
                     is_constant ? MAP_PRIVATE : MAP_SHARED, descriptor_, 0);
  if (map == MAP_FAILED) return false;
  map_ = static_cast<std::byte*>(map);
  return true;
}

}  // namespace lockstep
