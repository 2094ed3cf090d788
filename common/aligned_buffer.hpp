// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A host array that starts on a cache line, as the SIMD kernels ask for.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace lockstep {

/// Owns `size` elements of T, zeroed, aligned to 64 bytes. Movable, not copyable.
template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t kAlignmentBytes = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size)
      : data_(size == 0 ? nullptr : new (std::align_val_t{kAlignmentBytes}) T[size]()), size_(size) {}

  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  std::span<T> span() noexcept { return {data_.get(), size_}; }
  std::span<const T> span() const noexcept { return {data_.get(), size_}; }

 private:
  struct Deleter {
    void operator()(T* p) const noexcept { ::operator delete[](p, std::align_val_t{kAlignmentBytes}); }
  };
  std::unique_ptr<T[], Deleter> data_;
  std::size_t size_ = 0;
};

}  // namespace lockstep
