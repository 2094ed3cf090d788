// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every allocation is remembered, so that a pointer can be told to be inside of one, and damage found.
#include "kernels/emulation/memory.hpp"

#include "kernels/emulation/sanitizer.hpp"

#include <fmt/format.h>

#include <cstring>
#include <iterator>
#include <new>

namespace lockstep::emulation {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kRedzoneBytes = 256;

std::string describe(const unsigned char* at, const unsigned char* data, std::size_t bytes) {
  return fmt::format("byte {} of an array of {} bytes in device memory", at - data, bytes);
}

}  // namespace

DeviceMemory& DeviceMemory::instance() {
  static DeviceMemory memory;
  return memory;
}

void* DeviceMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > kTotalBytes - used_bytes_) return nullptr;
  void* memory = ::operator new (bytes + 2 * kRedzoneBytes, std::align_val_t{kAlignment}, std::nothrow);
  if (memory == nullptr) return nullptr;
  unsigned char* data = static_cast<unsigned char*>(memory) + kRedzoneBytes;
  close_redzone(data - kRedzoneBytes, kRedzoneBytes);
  std::memset(data, 0xFF, bytes);
  close_redzone(data + bytes, kRedzoneBytes);
  pieces_.emplace(data, bytes);
  used_bytes_ += bytes;
  return data;
}

bool DeviceMemory::free(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto piece = pieces_.find(static_cast<unsigned char*>(memory));
  if (piece == pieces_.end()) return false;
  used_bytes_ -= piece->second;
  unsigned char* begin = piece->first - kRedzoneBytes;
  unpoison(begin, piece->second + 2 * kRedzoneBytes);
  ::operator delete (begin, std::align_val_t{kAlignment});
  pieces_.erase(piece);
  return true;
}

std::size_t DeviceMemory::free_bytes() {
  const std::lock_guard lock(mutex_);
  return kTotalBytes - used_bytes_;
}

bool DeviceMemory::contains(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto* begin = static_cast<unsigned char*>(const_cast<void*>(memory));
  const auto after = pieces_.upper_bound(begin);
  if (after == pieces_.begin()) return false;
  const auto& [data, size] = *std::prev(after);
  const auto offset = static_cast<std::size_t>(begin - data);
  return offset <= size && bytes <= size - offset;
}

std::string DeviceMemory::damage() {
  const std::lock_guard lock(mutex_);
  for (const auto& [data, bytes] : pieces_)
    for (unsigned char* zone : {data - kRedzoneBytes, data + bytes}) {
      const unsigned char* at = find_damage(zone, kRedzoneBytes);
      if (at == nullptr) continue;
      std::string what = describe(at, data, bytes);
      close_redzone(zone, kRedzoneBytes);
      return what;
    }
  return {};
}

// Red zones are filled with a pattern, and closed to AddressSanitizer where it runs.

namespace {

constexpr unsigned char kFill = 0xA5;

}  // namespace

void close_redzone(unsigned char* begin, std::size_t bytes) {
  unpoison(begin, bytes);
  std::memset(begin, kFill, bytes);
  poison(begin, bytes);
}

__attribute__((no_sanitize("address"))) const unsigned char* find_damage(const unsigned char* begin,
                                                                         std::size_t bytes) {
  for (const unsigned char* at = begin; at != begin + bytes; ++at)
    if (*at != kFill) return at;
  return nullptr;
}

}  // namespace lockstep::emulation
