// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Owners of memory of a device, and of pinned host memory.
#pragma once

#include "kernels/device.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace lockstep {

/// Owns `size` elements of T in device memory. Movable.
template <typename T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceBuffer() = default;
  DeviceBuffer(Device& device, std::size_t size)
      : data_(size == 0 ? nullptr : static_cast<T*>(device.allocate(size * sizeof(T))), Deleter{&device}),
        size_(size) {}

  T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }

 private:
  struct Deleter {
    Device* device = nullptr;
    void operator()(T* p) const noexcept { device->free(p); }
  };
  std::unique_ptr<T[], Deleter> data_;
  std::size_t size_ = 0;
};

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

/// Owns `size` elements of T in pinned host memory, zeroed. Movable.
template <typename T>
class PinnedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  PinnedBuffer() = default;
  PinnedBuffer(Device& device, std::size_t size)
      : data_(size == 0 ? nullptr : static_cast<T*>(device.allocate_pinned(size * sizeof(T))),
              Deleter{&device}),
        size_(size) {
    for (T& element : span()) element = T{};
  }

  T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }
  std::span<T> span() const noexcept { return {data_.get(), size_}; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  struct Deleter {
    Device* device = nullptr;
    void operator()(T* p) const noexcept { device->free_pinned(p); }
  };
  std::unique_ptr<T[], Deleter> data_;
  std::size_t size_ = 0;
};

}  // namespace lockstep
