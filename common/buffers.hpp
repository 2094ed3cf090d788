// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Host memory: arrays as the SIMD kernels ask for them, and sizes that strangers choose, checked before they are
/// allocated.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace lockstep {

// A host array that starts on a cache line, as the SIMD kernels ask for.

/// Owns `size` elements of T, zeroed, aligned to 64 bytes; or a part of memory that others share. Movable, not
/// copyable.
template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t kAlignmentBytes = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size)
      : data_(size == 0 ? nullptr : new (std::align_val_t{kAlignmentBytes}) T[size]()), size_(size) {}
  /// Elements in memory of `owner`, aligned in this way, too. If that may only be read, so may they.
  AlignedBuffer(T* data, std::size_t size, std::shared_ptr<const void> owner)
      : data_(data, Deleter{std::move(owner)}), size_(size) {}

  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  std::span<T> span() noexcept { return {data_.get(), size_}; }
  std::span<const T> span() const noexcept { return {data_.get(), size_}; }

 private:
  struct Deleter {
    std::shared_ptr<const void> owner = {};  ///< null: the buffer itself
    void operator()(T* p) const noexcept {
      if (owner == nullptr) ::operator delete[](p, std::align_val_t{kAlignmentBytes});
    }
  };
  std::unique_ptr<T[], Deleter> data_;
  std::size_t size_ = 0;
};

/// The entry of a list that has one for each rank, stage or thread.
decltype(auto) at(auto&& list, std::integral auto number) {
  return list[static_cast<std::size_t>(number)];
}

// Products and sums of sizes that strangers choose: shapes in files, numbers in jobs.

/// Stands for every size that 64 bits do not hold: it is beyond every limit.
inline constexpr std::uint64_t kTooLarge = std::numeric_limits<std::uint64_t>::max();

/// The product of all factors, or kTooLarge; also if one of them is negative, which no size is.
constexpr std::uint64_t checked_product(std::integral auto... factors) {
  std::uint64_t product = 1;
  bool fits = true;
  [[maybe_unused]] const auto multiply = [&](auto factor) {
    if constexpr (std::signed_integral<decltype(factor)>) fits = fits && factor >= 0;
    fits = fits && !__builtin_mul_overflow(product, static_cast<std::uint64_t>(factor), &product);
  };
  (multiply(factors), ...);
  return fits ? product : kTooLarge;
}

/// The sum of all terms, or kTooLarge; also if one of them is negative.
constexpr std::uint64_t checked_sum(std::integral auto... terms) {
  std::uint64_t sum = 0;
  bool fits = true;
  [[maybe_unused]] const auto add = [&](auto term) {
    if constexpr (std::signed_integral<decltype(term)>) fits = fits && term >= 0;
    fits = fits && !__builtin_add_overflow(sum, static_cast<std::uint64_t>(term), &sum);
  };
  (add(terms), ...);
  return fits ? sum : kTooLarge;
}

}  // namespace lockstep
