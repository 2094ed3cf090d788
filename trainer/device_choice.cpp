// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/device_choice.hpp"

#include "kernels/cpu/cpu_ops.hpp"
#include "kernels/runtime/error.hpp"

namespace lockstep {

DeviceChoice choose_device(const ParallelSection& parallel) {
  if (parallel.device == "cuda") {
    throw DeviceError(
        "parallel.device=cuda: this build has no CUDA kernels; use parallel.device=cpu or auto");
  }
  return {.kind = "cpu", .description = "cpu (" + cpu::simd_name() + ")", .make_ops = [] {
            return cpu::make_ops();
          }};
}

}  // namespace lockstep
