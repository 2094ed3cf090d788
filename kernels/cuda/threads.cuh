// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How threads share the numbers of a tensor: one each, where it lies, and several at once.
#pragma once

#include "common/error.hpp"

#include <gpu/launch.cuh>

#include <cstddef>
#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

// Launches with a thread for each of many elements.

/// Elements are numbered in 31 bits, which Divisor counts on.
inline std::uint32_t thread_count(std::size_t elements) {
  LOCKSTEP_CHECK(elements < (std::size_t{1} << 31));
  return static_cast<std::uint32_t>(elements);
}

inline constexpr unsigned kThreadsOfEach = 256;  ///< threads of a block

inline LaunchShape thread_each(std::uint32_t count) {
  return {dim3((count + kThreadsOfEach - 1) / kThreadsOfEach), dim3(kThreadsOfEach)};
}

/// The element of this thread; those from the count on belong to none.
__device__ inline std::uint32_t thread_number() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}

// Division by a number that is known when a kernel is launched: one multiplication instead of twenty
// instructions.

/// Source: Granlund, Montgomery, "Division by invariant integers using multiplication", PLDI 1994.
struct Divisor {
  std::uint32_t value = 1;
  std::uint32_t multiplier = 1;  ///< floor(2^32 * (2^shift - value) / value) + 1
  std::uint32_t shift = 0;       ///< the least with 2^shift >= value

  Divisor() = default;
  /// @param divisor  at least 1
  explicit Divisor(int divisor) : value(static_cast<std::uint32_t>(divisor)) {
    while ((std::uint64_t{1} << shift) < value) ++shift;
    const std::uint64_t excess = (std::uint64_t{1} << shift) - value;
    multiplier = static_cast<std::uint32_t>((excess << 32) / value + 1);
  }
};

struct Division {
  std::uint32_t quotient, remainder;
};

/// @param number  below 2^31
__device__ inline Division divide(std::uint32_t number, const Divisor& by) {
  const auto high = static_cast<std::uint32_t>((std::uint64_t{number} * by.multiplier) >> 32);
  const std::uint32_t quotient = (high + number) >> by.shift;
  return {quotient, number - quotient * by.value};
}

// Several neighbouring numbers that a thread loads or stores at once.

/// At most 16 bytes, which is what one instruction moves.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T at[kWidth];
};

/// @param from  aligned like the pack, see is_packable()
template <int kWidth, typename T>
__device__ inline Pack<T, kWidth> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(from);
}

template <int kWidth, typename T>
__device__ inline void store_pack(T* to, const Pack<T, kWidth>& pack) {
  *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
}

/// True if rows of `row_size` numbers from `start` on consist of whole aligned packs.
template <int kWidth, typename T>
bool is_packable(const T* start, std::size_t row_size = kWidth) {
  return reinterpret_cast<std::uintptr_t>(start) % sizeof(Pack<T, kWidth>) == 0 && row_size % kWidth == 0;
}

/// Calls run.template operator()<kWidth>() if rows of `row_size` numbers from each start on are packable, or else that
/// of 1.
template <int kWidth, typename Run, typename... T>
void run_in_packs(const Run& run, std::size_t row_size, const T*... starts) {
  if ((is_packable<kWidth>(starts, row_size) && ...)) return run.template operator()<kWidth>();
  run.template operator()<1>();
}

}  // namespace lockstep::LOCKSTEP_GPU
