// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The part of CUDA that kernels/cuda uses, for the host compiler (docs/gpu.md). The names are in a namespace of
/// ours, so that a program can hold the emulator and the CUDA runtime at once.
#pragma once

#include "kernels/emulation/builtins.hpp"
#include "kernels/emulation/device_functions.hpp"
#include "kernels/emulation/runtime_api.hpp"

/// The target that kernels are compiled for. With it fmaf() is one instruction, five times as fast as a call. The
/// launch asks the processor first.
#ifdef __x86_64__
#define LOCKSTEP_KERNEL_TARGET __attribute__((target("fma")))
#else
#define LOCKSTEP_KERNEL_TARGET
#endif

// NOLINTBEGIN(bugprone-reserved-identifier)
#define __global__ LOCKSTEP_KERNEL_TARGET
#define __device__ LOCKSTEP_KERNEL_TARGET
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// NOLINTEND(bugprone-reserved-identifier)

using namespace lockstep::emulation;  // NOLINT(google-global-names-in-headers): as in CUDA's header
