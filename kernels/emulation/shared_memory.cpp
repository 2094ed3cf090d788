// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Arrays are handed out one behind the other, and looked after when the block ends.
#include "common/error.hpp"
#include "kernels/emulation/memory.hpp"
#include "kernels/emulation/sanitizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace lockstep::emulation {
namespace {

constexpr std::size_t kRedzoneBytes = 128;
constexpr std::size_t kMaxArrays = 64;
constexpr std::size_t kMemoryBytes = kMaxSharedBytesPerBlock + (kMaxArrays + 1) * 3 * kRedzoneBytes;

unsigned char* align_up(unsigned char* p, std::size_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  return p + (alignment - address % alignment) % alignment;
}

}  // namespace

SharedMemory::SharedMemory() : memory_(new unsigned char[kMemoryBytes]), end_(memory_.get()) {
  arrays_.reserve(kMaxArrays);
}

SharedMemory::~SharedMemory() {
  unpoison(memory_.get(), kMemoryBytes);
}

void SharedMemory::start_block(std::size_t dynamic_bytes) {
  arrays_.clear();
  close_redzone(memory_.get(), kRedzoneBytes);
  end_ = memory_.get() + kRedzoneBytes;
  append(this, {}, dynamic_bytes, 16);
}

void* SharedMemory::array(const void* site, const CallSite& call, std::size_t bytes, std::size_t alignment) {
  for (const Array& array : arrays_)
    if (array.site == site) return array.data;
  return append(site, call, bytes, std::max<std::size_t>(alignment, 16));
}

void* SharedMemory::append(const void* site, const CallSite& call, std::size_t bytes, std::size_t alignment) {
  std::size_t total = bytes;
  for (const Array& array : arrays_) total += array.bytes;
  if (total > kMaxSharedBytesPerBlock || arrays_.size() == kMaxArrays || alignment > kRedzoneBytes)
    throw InternalError(fmt::format("a block cannot have {} bytes of shared memory in {} arrays (at most {})",
                                    total, arrays_.size() + 1, kMaxSharedBytesPerBlock));
  unsigned char* data = align_up(end_, alignment);
  close_redzone(end_, static_cast<std::size_t>(data - end_));
  unpoison(data, bytes);
  std::memset(data, 0xFF, bytes);
  close_redzone(data + bytes, kRedzoneBytes);
  end_ = data + bytes + kRedzoneBytes;
  arrays_.push_back({site, call, data, bytes});
  return data;
}

std::string SharedMemory::damage() const {
  if (find_damage(memory_.get(), kRedzoneBytes) != nullptr) return "before the first shared array";
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
