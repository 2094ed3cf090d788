// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Devices by name, and what `auto` means on the machines at hand.
#include "trainer/ranks/device_choice.hpp"

#include "comm/agreement.hpp"
#include "comm/backends/device_reducers.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/text_layout.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/vendor/vendor.hpp"
#include "trainer/config/job_values.hpp"
#include "trainer/device/gradient_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

/// Why this process cannot use a GPU; no problem: it can.
struct GpuProblem {
  std::string text;
  bool is_worth_a_word = false;  ///< there is something that looks like a GPU, and its user may wonder
};

/// Tries the GPU that this rank would take; with too few for all ranks, any: make_gpu() refuses that.
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

struct KindChoice {
  DeviceKind kind = DeviceKind::kCpu;
  std::string remark;
};

/// Resolves `auto`: GPUs if every rank can use one, the CPU if none can.
KindChoice choose_kind(const ParallelSection& parallel, const Platform& gpus, Communicator& comm) {
  const GpuProblem problem = gpu_problem(gpus, comm);
  const auto with_gpu = gather(comm, problem.text.empty() ? 1 : 0);
  if (std::ranges::count(with_gpu, 0) == 0) return {DeviceKind::kCuda, ""};
  agree(comm, [&] {
    if (backend_named(parallel.backend).needs_gpus && !problem.text.empty()) {
      throw DeviceError(fmt::format("parallel.backend={}: {}", parallel.backend, problem.text));
    }
    if (std::ranges::count(with_gpu, 1) > 0 && !problem.text.empty()) {
      throw DeviceError(fmt::format(
          "parallel.device=auto: other ranks have a GPU, but on {} there is none to use: {}; leave "
          "this host out, or set parallel.device=cpu",
          comm.host(), problem.text));
    }
  });
  return {DeviceKind::kCpu, problem.is_worth_a_word ? "no GPU is used: " + problem.text : ""};
}

std::shared_ptr<Gpu> make_gpu(const Platform& platform, const ParallelSection& parallel,
                              std::optional<int> requested, const Communicator& comm) {
  const int visible = static_cast<int>(platform.devices().size());
  auto gpu = std::make_shared<Gpu>();
  gpu->device = platform.make_device(choose_gpu(comm.local_rank(), comm.local_size(), visible, requested));
  gpu->ops =
      parallel.kernels == Kernels::kVendor ? make_vendor_ops(*gpu->device) : platform.make_ops(*gpu->device);
  return gpu;
}

/// Remark about slow instructions in use; else empty.
std::string simd_remark() {
  return cpu::simd_fuses() ? ""
                           : fmt::format(
                                 "{} has no fused multiply-add (FMA): several instructions take its "
                                 "place, to the same bits, but slowly",
                                 cpu::simd_name());
}

DeviceChoice choose_cpu(Communicator& comm, const std::string& remark) {
  const std::string slow = simd_remark();
  return {.kind = "cpu",
          .description = "cpu (" + cpu::simd_name() + ")",
          .backend = std::string(comm.backend()),
          .remark = remark.empty() || slow.empty() ? remark + slow : remark + "; " + slow};
}

DeviceChoice choose_gpu_of(const Platform& platform, const ParallelSection& parallel,
                           std::optional<int> requested, Communicator& comm) {
  std::shared_ptr<Gpu> gpu;
  agree(comm, [&] { gpu = make_gpu(platform, parallel, requested, comm); });
  AllReduceSetup setup = set_up_all_reduce(comm, *gpu->device, backend_named(parallel.backend).gradients);
  gpu->all_reduce = std::move(setup.all_reduce);
  if (setup.path != GradientPath::kNone) gpu->make_link = device_reducer(setup.path).make_link;
  return {.kind = std::string(gpu->device->kind()),
          .description = gpu->device->properties().name,
          .gpu = gpu,
          .communication = "gradients: " + setup.description,
          .backend = setup.backend};
}

}  // namespace

DeviceChoice choose_device(const ParallelSection& parallel, Communicator& comm, const Platform& gpus) {
  const auto name = parse_device_name(parallel.device);
  if (!name) throw ConfigError(fmt::format("'{}' is not a device: {}", parallel.device, kDeviceNames));
  KindChoice choice{name->kind, ""};
  if (name->kind == DeviceKind::kAuto) choice = choose_kind(parallel, gpus, comm);
  if (choice.kind == DeviceKind::kCuda) return choose_gpu_of(gpus, parallel, name->index, comm);
  if (choice.kind == DeviceKind::kEmulated) {
    return choose_gpu_of(emulated::platform(), parallel, /*requested=*/0, comm);
  }
  return choose_cpu(comm, choice.remark);
}

ParallelSection for_precision(ParallelSection parallel, Precision precision) {
  if (precision == Precision::kFp32 || parallel.device == "cpu") return parallel;
  if (parallel.device != "auto")
    throw ConfigError(
        fmt::format("{} has no train.precision int16; use cpu, or a run in fp32", parallel.device));
  parallel.device = "cpu";
  return parallel;
}

// Local rank to index.

namespace {

[[noreturn]] void throw_too_few(int local_size, int visible) {
  throw DeviceError(
      fmt::format("{} on this host see {}: start at most {} a host (mpirun --map-by ppr:{}:node, srun "
                  "--ntasks-per-node={}), or give each rank a GPU of its own (srun --gpus-per-task=1)",
                  counted(local_size, "rank"), counted(visible, "GPU"), visible, visible, visible));
}

}  // namespace

int choose_gpu(int local_rank, int local_size, int visible, std::optional<int> requested) {
  LOCKSTEP_CHECK(visible >= 1 && local_rank >= 0 && local_rank < local_size);
  if (requested) {
    if (*requested < visible) return *requested;
    throw DeviceError(
        fmt::format("parallel.device=cuda:{}: this process sees {}, and they count from 0; use "
                    "parallel.device=cuda, or see CUDA_VISIBLE_DEVICES and 'lockstep devices'",
                    *requested, counted(visible, "GPU")));
  }
  if (local_size <= visible) return local_rank;
  if (visible == 1) return 0;
  throw_too_few(local_size, visible);
}

}  // namespace lockstep
