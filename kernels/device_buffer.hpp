// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Owners of memory of a device, and of pinned host memory.
#pragma once

#include "kernels/device.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace lockstep {

/// Owns `size` elements of T in memory of a device, which these two of its methods give and take. Movable.
template <typename T, auto kAllocate, auto kFree>
class OwnedMemory {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  OwnedMemory() = default;
  OwnedMemory(Device& device, std::size_t size)
      : data_(size == 0 ? nullptr : static_cast<T*>((device.*kAllocate)(size * sizeof(T))), Deleter{&device}),
        size_(size) {}

  T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }

 private:
  struct Deleter {
    Device* device = nullptr;
    void operator()(T* p) const noexcept { (device->*kFree)(p); }
  };
  std::unique_ptr<T[], Deleter> data_;
  std::size_t size_ = 0;
};

/// In device memory.
template <typename T>
using DeviceBuffer = OwnedMemory<T, &Device::allocate, &Device::free>;

/// Device memory with these values, once the stream has come so far. They must stay until then.
template <typename Values>
auto upload(Device& device, Stream& stream, const Values& values) {
  DeviceBuffer<typename Values::value_type> buffer(device, values.size());
  stream.copy_to_device(buffer.data(), values.data(), buffer.bytes());
  return buffer;
}

/// The values of device memory, after what is queued on the stream. Waits for it.
template <typename T>
std::vector<T> download(Stream& stream, const T* device, std::size_t size) {
  std::vector<T> values(size);
  stream.copy_to_host(values.data(), device, size * sizeof(T));
  stream.synchronize();
  return values;
}

/// In pinned host memory, zeroed.
template <typename T>
class PinnedBuffer : public OwnedMemory<T, &Device::allocate_pinned, &Device::free_pinned> {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(Device& device, std::size_t size) : PinnedBuffer::OwnedMemory(device, size) {
    std::ranges::fill(span(), T{});
  }

  std::span<T> span() const noexcept { return {this->data(), this->size()}; }
  T& operator[](std::size_t i) const { return this->data()[i]; }
};

}  // namespace lockstep
