// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep::gpu(): the device that was asked for, as a Trainer takes it.
#include "comm/agreement.hpp"
#include "common/error.hpp"
#include "common/installed.hpp"
#include "trainer/device/device_data_parallel.hpp"
#include "trainer/device/device_name.hpp"
#include "trainer/device/gpu_choice.hpp"
#include "trainer/library/inside.hpp"

#include <fmt/format.h>
#include <lockstep/gpu.hpp>

#include <algorithm>

namespace lockstep::v0 {

namespace {

/// True if every rank can use a GPU, false if none can. Collective.
bool have_gpus(lockstep::Communicator& comm) {
  const GpuProblem problem = gpu_problem(cuda::platform(), comm);
  const auto with_gpu = gather(comm, problem.text.empty() ? 1 : 0);
  agree_in_words(comm, [&] {
    if (std::ranges::count(with_gpu, 1) == 0 || problem.text.empty()) return;
    throw DeviceError(fmt::format(
        "device auto: other ranks have a GPU, but on {} there is none to use: {}; leave this host "
        "out, or take device cpu",
        comm.host(), problem.text));
  });
  return std::ranges::count(with_gpu, 0) == 0;
}

}  // namespace

Device gpu(Communicator& comm, const std::string& name, const std::string& plugins) {
  lockstep::Communicator& all = comm.inside().comm;
  const auto asked = parse_device_name(name);
  if (!asked) throw ConfigError(fmt::format("'{}' is not a device: {}", name, kDeviceNames));
  if (!plugins.empty()) look_for_plugins_in(plugins);
  const bool emulated = asked->kind == DeviceKind::kEmulated;
  if (asked->kind == DeviceKind::kCpu || (asked->kind == DeviceKind::kAuto && !have_gpus(all))) return {};
  const Platform& platform = emulated ? emulated::platform() : cuda::platform();
  ReadyGpu ready;
  in_words(all, [&] { ready = set_up_gpu(platform, {.index = emulated ? 0 : asked->index}, all); });
  const auto make = [gpu = ready.gpu](const TrainingSetup& setup, lockstep::Communicator& ranks) {
    return make_device_data_parallel(setup, {.gpu = gpu}, ranks);
  };
  return Device(std::make_shared<const Device::Inside>(
      Device::Inside{ready.gpu->device->properties().name, bucket_bytes_of(*ready.gpu), make}));
}

}  // namespace lockstep::v0
