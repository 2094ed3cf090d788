// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory of the emulated device, and the shared memory of its blocks.
#include "kernels/emulation/memory.hpp"

#include "common/error.hpp"
#include "kernels/emulation/order.hpp"
#include "kernels/emulation/sanitizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>

namespace lockstep::emulation {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kRedzoneBytes = 256;

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
      const auto offset = at - data;
      close_redzone(zone, kRedzoneBytes);
      return fmt::format("byte {} of an array of {} bytes in device memory", offset, bytes);
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

// Shared memory: arrays are handed out one after the other, and checked when the block ends.

namespace {

constexpr std::size_t kSharedRedzoneBytes = 128;
constexpr std::size_t kMaxArrays = 64;
constexpr std::size_t kMemoryBytes = kMaxSharedBytesPerBlock + (kMaxArrays + 1) * 3 * kSharedRedzoneBytes;

std::atomic<std::size_t> shared_bytes_of_test{kMaxSharedBytesPerBlock};

unsigned char* align_up(unsigned char* p, std::size_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  return p + (alignment - address % alignment) % alignment;
}

}  // namespace

std::size_t most_shared_bytes() {
  return shared_bytes_of_test;
}

BlockSharedMemory::BlockSharedMemory() : memory_(new unsigned char[kMemoryBytes]), end_(memory_.get()) {
  arrays_.reserve(kMaxArrays);
}

BlockSharedMemory::~BlockSharedMemory() {
  unpoison(memory_.get(), kMemoryBytes);
}

void BlockSharedMemory::start_block(std::size_t dynamic_bytes) {
  arrays_.clear();
  close_redzone(memory_.get(), kSharedRedzoneBytes);
  end_ = memory_.get() + kSharedRedzoneBytes;
  append(this, {}, dynamic_bytes, 16);
}

void* BlockSharedMemory::array(const void* site, const CallSite& call, std::size_t bytes,
                               std::size_t alignment) {
  for (const Array& array : arrays_)
    if (array.site == site) return array.data;
  return append(site, call, bytes, std::max<std::size_t>(alignment, 16));
}

void* BlockSharedMemory::append(const void* site, const CallSite& call, std::size_t bytes,
                                std::size_t alignment) {
  std::size_t total = bytes;
  for (const Array& array : arrays_) total += array.bytes;
  if (total > most_shared_bytes() || arrays_.size() == kMaxArrays || alignment > kSharedRedzoneBytes)
    throw InternalError(fmt::format("a block cannot have {} bytes of shared memory in {} arrays (at most {})",
                                    total, arrays_.size() + 1, most_shared_bytes()));
  unsigned char* data = align_up(end_, alignment);
  close_redzone(end_, static_cast<std::size_t>(data - end_));
  unpoison(data, bytes);
  std::memset(data, 0xFF, bytes);
  close_redzone(data + bytes, kSharedRedzoneBytes);
  end_ = data + bytes + kSharedRedzoneBytes;
  arrays_.push_back({site, call, data, bytes});
  return data;
}

std::string BlockSharedMemory::damage() const {
  if (find_damage(memory_.get(), kSharedRedzoneBytes) != nullptr) return "before the first shared array";
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const Array& array = arrays_[i];
    const unsigned char* zone = array.data + array.bytes;
    const unsigned char* zone_end = i + 1 < arrays_.size() ? arrays_[i + 1].data : end_;
    const unsigned char* at = find_damage(zone, static_cast<std::size_t>(zone_end - zone));
    if (at == nullptr) continue;
    const std::string name =
        i == 0 ? "the dynamic shared memory" : "the shared array of " + to_string(array.call);
    return fmt::format("byte {} of {}, which has {}", at - array.data, name, array.bytes);
  }
  return {};
}

}  // namespace lockstep::emulation

void lockstep::emulated::set_most_shared_bytes(std::size_t bytes) {
  emulation::shared_bytes_of_test = std::min(bytes, emulation::kMaxSharedBytesPerBlock);
}
