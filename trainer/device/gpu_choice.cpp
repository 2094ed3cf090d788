// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a rank's place on its host to a GPU that is ready.
#include "trainer/device/gpu_choice.hpp"

#include "comm/agreement.hpp"
#include "comm/backends/device_reducers.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "kernels/vendor/vendor.hpp"
#include "trainer/device/gradient_path.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace lockstep {

GpuProblem gpu_problem(const Platform& gpus, const Communicator& comm) {
  try {
    const int visible = static_cast<int>(gpus.devices().size());
    gpus.make_device(comm.local_rank() < visible ? comm.local_rank() : 0);
    return {};
  } catch (const NoGpuError& error) {
    return {error.what(), false};
  } catch (const Error& error) {
    return {error.what(), true};
  }
}

ReadyGpu set_up_gpu(const Platform& platform, const GpuRequest& request, Communicator& comm) {
  const auto gpu = std::make_shared<Gpu>();
  agree(comm, [&] {
    const int visible = static_cast<int>(platform.devices().size());
    gpu->device =
        platform.make_device(choose_gpu(comm.local_rank(), comm.local_size(), visible, request.index));
    gpu->ops =
        request.kernels == Kernels::kVendor ? make_vendor_ops(*gpu->device) : platform.make_ops(*gpu->device);
  });
  AllReduceSetup setup = set_up_all_reduce(comm, *gpu->device, request.path);
  gpu->all_reduce = std::move(setup.all_reduce);
  if (setup.path != GradientPath::kNone) gpu->make_link = device_reducer(setup.path).make_link;
  return {gpu, setup.description, setup.backend};
}

/// NCCL moves 25 MiB in 130 us between eight H100 (200 GB/s), of which its latency is 15 %. The networks of MNIST stay in
/// one bucket.
std::size_t bucket_bytes_of(const Gpu& gpu) {
  constexpr std::size_t kOnStream = std::size_t{25} << 20;
  return gpu.all_reduce && gpu.all_reduce->on_stream() ? kOnStream : SIZE_MAX;
}

// Local rank to index.

int choose_gpu(int local_rank, int local_size, int visible, std::optional<int> requested) {
  LOCKSTEP_CHECK(visible >= 1 && local_rank >= 0 && local_rank < local_size);
  if (requested) {
    if (*requested < visible) return *requested;
    throw DeviceError(fmt::format(
        fmt::runtime(advice("{device}cuda:{{}}: this process sees {{}}, and they count from 0; use "
                            "{device}cuda, or see CUDA_VISIBLE_DEVICES and 'lockstep devices'")),
        *requested, counted(visible, "GPU")));
  }
  if (local_size <= visible) return local_rank;
  if (visible == 1) return 0;
  throw DeviceError(
      fmt::format("{} on this host see {}: start at most {} a host (mpirun --map-by ppr:{}:node, srun "
                  "--ntasks-per-node={}), or give each rank a GPU of its own (srun --gpus-per-task=1)",
                  counted(local_size, "rank"), counted(visible, "GPU"), visible, visible, visible));
}

}  // namespace lockstep
