// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the kernels of kernels/cuda name themselves, start and share memory in the emulator. For the host, what the
/// header of this name in kernels/cuda/include is for GPUs.
#pragma once

#include "kernels/cuda/error.hpp"
#include "kernels/emulation/block.hpp"
#include "kernels/emulation/builtins.hpp"
#include "kernels/emulation/errors.hpp"
#include "kernels/emulation/stream.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <tuple>

/// The namespace of everything in kernels/cuda: lockstep::emulated here, lockstep::cuda on a GPU.
#define LOCKSTEP_GPU emulated

/// `type name[count]` in the shared memory of a block, where count is a constant. Filled with 0xFF.
#define LOCKSTEP_SHARED(type, name, count) \
  auto& name =                             \
      ::lockstep::emulation::shared_array<type, count>([] {}, ::lockstep::emulation::CallSite::here())

/// `type* name`: the dynamic shared memory of the launch, aligned to 16 bytes. Once in a kernel.
#define LOCKSTEP_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::lockstep::emulation::BlockRunner::here().shared_memory().dynamic())

namespace lockstep::emulation {

/// The array that belongs to Site, a type which only one place in the source has.
template <typename T, std::size_t kCount, typename Site>
T (&shared_array(Site /*site*/, const CallSite& call))
[kCount] {
  static const char site = 0;
  void* memory = BlockRunner::here().shared_memory().array(&site, call, kCount * sizeof(T), alignof(T));
  return *static_cast<T(*)[kCount]>(memory);
}

}  // namespace lockstep::emulation

namespace lockstep::emulated {

using emulation::LaunchShape;

/// A number that the kernel only reads.
template <typename T>
LOCKSTEP_KERNEL_TARGET inline T load_input(const T* address) {
  return *address;
}

/// Runs kernel(args...), or records it if the stream captures.
/// @throws InternalError if the launch is not possible, or for a fault of the kernel (run_grid())
template <typename... Parameters, typename... Arguments>
void launch(cudaStream_t stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  emulation::check_shape(shape);
  emulation::queue(
      stream, [shape, kernel, parameters = std::tuple<Parameters...>(static_cast<Parameters>(arguments)...)] {
        const auto one_thread = [&] { std::apply(kernel, parameters); };
        const auto run = [](const void* context) { (*static_cast<decltype(&one_thread)>(context))(); };
        emulation::run_grid(shape, {run, &one_thread});
      });
}

}  // namespace lockstep::emulated
