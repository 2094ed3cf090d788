// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Devices by name, and what `auto` means on the machines at hand.
#include "trainer/ranks/device_choice.hpp"

#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "trainer/device/device_name.hpp"
#include "trainer/device/gpu_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

/// Resolves `auto`: GPUs if every rank can use one, the CPU if none can. @returns the kind, and a remark about it
std::pair<DeviceKind, std::string> choose_kind(const ParallelSection& parallel, const Platform& gpus,
                                               Communicator& comm) {
  const GpuProblem problem = gpu_problem(gpus, comm);
  const auto with_gpu = gather(comm, problem.text.empty() ? 1 : 0);
  if (std::ranges::count(with_gpu, 0) == 0) return {DeviceKind::kCuda, ""};
  agree(comm, [&] {
    if (problem.text.empty()) return;
    if (backend_named(parallel.backend).needs_gpus)
      throw DeviceError(fmt::format("parallel.backend={}: {}", parallel.backend, problem.text));
    if (std::ranges::count(with_gpu, 1) > 0)
      throw DeviceError(fmt::format(
          "parallel.device=auto: other ranks have a GPU, but on {} there is none to use: {}; leave "
          "this host out, or set parallel.device=cpu",
          comm.host(), problem.text));
  });
  return {DeviceKind::kCpu, problem.is_worth_a_word ? "no GPU is used: " + problem.text : ""};
}

DeviceChoice choose_cpu(Communicator& comm, const std::string& remark) {
  std::string slow;
  if (!cpu::simd_fuses())
    slow =
        cpu::simd_name() +
        " has no fused multiply-add (FMA): several instructions take its place, to the same bits, but slowly";
  return {.kind = "cpu",
          .description = "cpu (" + cpu::simd_name() + ")",
          .backend = std::string(comm.backend()),
          .remark = remark.empty() || slow.empty() ? remark + slow : remark + "; " + slow};
}

DeviceChoice choose_gpu_of(const Platform& platform, const ParallelSection& parallel,
                           std::optional<int> requested, Communicator& comm) {
  const ReadyGpu ready =
      set_up_gpu(platform, {parallel.kernels, requested, backend_named(parallel.backend).gradients}, comm);
  const Device& device = *ready.gpu->device;
  return {.kind = std::string(device.kind()),
          .description = device.properties().name,
          .gpu = ready.gpu,
          .communication = "gradients: " + ready.path,
          .backend = ready.backend};
}

}  // namespace

DeviceChoice choose_device(const ParallelSection& parallel, Communicator& comm, const Platform& gpus) {
  const auto name = parse_device_name(parallel.device);
  if (!name) throw ConfigError(fmt::format("'{}' is not a device: {}", parallel.device, kDeviceNames));
  const auto [kind, remark] = name->kind == DeviceKind::kAuto ? choose_kind(parallel, gpus, comm)
                                                              : std::pair(name->kind, std::string());
  DeviceChoice choice = kind == DeviceKind::kCuda ? choose_gpu_of(gpus, parallel, name->index, comm)
                        : kind == DeviceKind::kEmulated
                            ? choose_gpu_of(emulated::platform(), parallel, /*requested=*/0, comm)
                            : choose_cpu(comm, remark);
  comm.activity().device.set(choice.description);
  return choice;
}

ParallelSection for_precision(ParallelSection parallel, Precision precision) {
  if (precision == Precision::kFp32 || parallel.device == "cpu") return parallel;
  if (parallel.device != "auto")
    throw ConfigError(
        fmt::format("{} has no train.precision int16; use cpu, or a run in fp32", parallel.device));
  parallel.device = "cpu";
  return parallel;
}

}  // namespace lockstep
