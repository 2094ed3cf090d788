// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Several neighbouring numbers that a thread loads or stores at once.
#pragma once

#include <gpu/launch.cuh>

#include <cstddef>
#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

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

/// Whether rows of `row_size` numbers from `start` on consist of whole aligned packs.
template <int kWidth, typename T>
bool is_packable(const T* start, std::size_t row_size = kWidth) {
  return reinterpret_cast<std::uintptr_t>(start) % sizeof(Pack<T, kWidth>) == 0 && row_size % kWidth == 0;
}

}  // namespace lockstep::LOCKSTEP_GPU
