// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Launches with a thread for each of many elements.
#pragma once

#include "common/error.hpp"

#include <gpu/launch.cuh>

#include <cstddef>
#include <cstdint>

namespace lockstep::LOCKSTEP_GPU {

/// Elements are numbered in 31 bits, which divisor.cuh counts on.
inline std::uint32_t thread_count(std::size_t elements) {
  LOCKSTEP_CHECK(elements < (std::size_t{1} << 31));
  return static_cast<std::uint32_t>(elements);
}

inline LaunchShape thread_each(std::uint32_t count) {
  constexpr unsigned kThreads = 256;
  return {dim3((count + kThreads - 1) / kThreads), dim3(kThreads)};
}

/// Which element is this thread's; those from the count on belong to none.
__device__ inline std::uint32_t thread_number() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}

}  // namespace lockstep::LOCKSTEP_GPU
