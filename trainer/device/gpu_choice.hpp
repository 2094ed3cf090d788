// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Choice of a rank's GPU, ready with its kernels and a path to the other ranks.
#pragma once

#include "comm/backend.hpp"
#include "comm/communicator.hpp"
#include "kernels/platform.hpp"
#include "trainer/device/gpu.hpp"
#include "trainer/device/options.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace lockstep {

/// Chooses the index of a rank's GPU: the one that was asked for. Otherwise its local rank, if this host has
/// as many GPUs as ranks; else the only visible one, exclusive or shared. It never wraps around: that would
/// silently put two ranks on one GPU.
/// @param visible    how many GPUs this process sees, at least one
/// @param requested  of cuda:N
/// @throws DeviceError  with the launcher's option that helps
int choose_gpu(int local_rank, int local_size, int visible, std::optional<int> requested);

/// Why this process cannot use a GPU; no problem: it can.
struct GpuProblem {
  std::string text;
  bool is_worth_a_word = false;  ///< there is something that looks like a GPU, and its user may wonder
};

/// Tries the GPU that this rank would take; with too few for all ranks, any: set_up_gpu() refuses that.
GpuProblem gpu_problem(const Platform& gpus, const Communicator& comm);

struct GpuRequest {
  Kernels kernels = Kernels::kNative;
  std::optional<int> index = {};          ///< N of cuda:N
  std::optional<GradientPath> path = {};  ///< for gradients; nothing: the best that works
};

struct ReadyGpu {
  std::shared_ptr<Gpu> gpu;
  /// "NCCL 2.28.9", "mpi through pinned memory: ranks 0 and 1 share a GPU"
  std::string path;
  std::string backend;  ///< "nccl"; or the control plane's: "mpi", "thread"
};

/// Collective. @throws AgreedError  with DeviceError's code: that GPU, its kernels or that path cannot be used here
ReadyGpu set_up_gpu(const Platform& platform, const GpuRequest& request, Communicator& comm);

/// The least bytes of a bucket: as many as PyTorch's DDP has, where they leave while backward runs. One bucket, where
/// the host sends it after backward.
std::size_t bucket_bytes_of(const Gpu& gpu);

}  // namespace lockstep
