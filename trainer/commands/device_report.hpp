// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What 'lockstep devices' says, of GPUs and of the processors that ranks compute on without any.
#pragma once

#include "kernels/device.hpp"
#include "kernels/nvml.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

struct DeviceReport {
  std::string versions;                   ///< "driver 13.0, runtime 13.0, kernel module 580.65.06"
  std::vector<DeviceProperties> devices;  ///< free_bytes is 0 where it is not known
  std::vector<std::vector<PeerLink>> links;
};

/// What ranks compute on where there is no GPU.
struct Processors {
  std::string model;  ///< "AMD EPYC 9575F 64-Core Processor"; the architecture where Linux does not say
  int cores = 0;      ///< that this process may use
  std::string simd;   ///< "AVX-512"
  std::uint64_t free_bytes = 0;
};

/// @param root  where /proc lies
Processors report_processors(const std::filesystem::path& root = "/");
std::string to_text(const Processors& processors);
/// {"model": ..., "cores": ..., "simd": ..., "memory_free_bytes": ...}
nlohmann::json to_json(const Processors& processors);

/// @param nvml  null: free memory is asked of CUDA, which occupies some for that; and what can be told of
///              NVLink is whether atomics work across a link
/// @throws DeviceError  why there is no device and what to do
DeviceReport report_devices(const Platform& platform, const Nvml* nvml);

/// Tables with aligned columns.
std::string to_text(const DeviceReport& report);
/// {"versions": ..., "devices": [{...}], "links": [[{...}]]}, null on the diagonal of links.
nlohmann::json to_json(const DeviceReport& report);

}  // namespace lockstep
