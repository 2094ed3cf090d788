// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checks a launch as the runtime does, then runs its blocks one by one.
#include "common/error.hpp"
#include "kernels/emulation/block.hpp"
#include "kernels/emulation/builtins.hpp"
#include "kernels/emulation/memory.hpp"

#include <fmt/format.h>

#include <string>

namespace lockstep::emulation {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxBlockZ = 64;
constexpr unsigned kMaxGridX = 0x7FFFFFFF, kMaxGridYZ = 65535;

std::string to_string(const dim3& d) {
  return fmt::format("({},{},{})", d.x, d.y, d.z);
}

std::size_t volume(const dim3& d) {
  return std::size_t{d.x} * d.y * d.z;
}

uint3 position(std::uint32_t number, const dim3& d) {
  return {number % d.x, number / d.x % d.y, number / d.x / d.y};
}

/// Kernels are compiled with it, see include/cuda_runtime.h.
bool processor_has_fma() {
#ifdef __x86_64__
  return __builtin_cpu_supports("fma") != 0;
#else
  return true;
#endif
}

}  // namespace

void check_shape(const LaunchShape& shape) {
  const dim3 &grid = shape.grid, &block = shape.block;
  const bool grid_fits =
      volume(grid) > 0 && grid.x <= kMaxGridX && grid.y <= kMaxGridYZ && grid.z <= kMaxGridYZ;
  const bool block_fits = volume(block) > 0 && volume(block) <= kMaxThreads && block.z <= kMaxBlockZ;
  if (grid_fits && block_fits && shape.shared_bytes <= most_shared_bytes()) return;
  throw InternalError(
      fmt::format("kernel launched at {}: no GPU runs grid {} of blocks {} with {} bytes of shared memory",
                  emulation::to_string(shape.call), to_string(grid), to_string(block), shape.shared_bytes));
}

void run_grid(const LaunchShape& shape, const Kernel& kernel) {
  static const bool has_fma = processor_has_fma();
  if (!has_fma)
    throw DeviceError(advice("the emulated device needs a processor with FMA instructions: use {device}cpu"));
  gridDim = {shape.grid.x, shape.grid.y, shape.grid.z};
  blockDim = {shape.block.x, shape.block.y, shape.block.z};
  for (const std::uint32_t number : BlockRunner::here().order().permutation(volume(shape.grid))) {
    blockIdx = position(number, shape.grid);
    try {
      BlockRunner::here().run(kernel, shape.shared_bytes);
    } catch (const InternalError& error) {
      throw InternalError(fmt::format("kernel launched at {}: block ({},{},{}): {}",
                                      emulation::to_string(shape.call), blockIdx.x, blockIdx.y, blockIdx.z,
                                      error.what()));
    }
  }
  const std::string damage = DeviceMemory::instance().damage();
  if (damage.empty()) return;
  throw InternalError(fmt::format("kernel launched at {}: a thread wrote out of bounds: {}",
                                  emulation::to_string(shape.call), damage));
}

}  // namespace lockstep::emulation
