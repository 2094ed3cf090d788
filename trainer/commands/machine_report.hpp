// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Facts about the program and the machine. lockstep --version --verbose: the facts that a bug report should give.
#pragma once

#include "kernels/device.hpp"
#include "kernels/nvml.hpp"
#include "kernels/platform.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// Known when the program is built.
struct BuildFacts {
  std::string commit;    ///< the sources', "... and changes" if they had any; or "not known"
  std::string compiler;  ///< "GNU 12.2.0"
  std::string flags;
  std::string gpu;  ///< "with CUDA 13.0 (/usr/local/cuda/bin/nvcc)", or why not
};
BuildFacts build_facts();

/// "lockstep 0.1.0".
std::string version_line();

/// That line, and one for each fact: build, MPI, instruction sets, GPUs and their libraries, places of files. Loads the
/// plugins that are there.
std::string version_report();
/// Version for programs, on one line.
std::string version_json();

// lockstep devices: GPUs, and the processors that ranks compute on without any.

struct DeviceReport {
  std::string versions;                   ///< "driver 13.0, runtime 13.0, kernel module 580.65.06"
  std::vector<DeviceProperties> devices;  ///< free_bytes is 0 where it is not known
  std::vector<std::vector<PeerLink>> links;
};

/// Processors for ranks without a GPU: {"model": ..., "cores": ..., "simd": ..., "int16": ...,
/// "memory_free_bytes": ...}. The model is the architecture where Linux does not say; cores are those that
/// this process may use.
/// @param root  where /proc lies
nlohmann::json processors_json(const std::filesystem::path& root = "/");
/// Describes the processors for people.
std::string processors_text(const nlohmann::json& processors);

/// @param nvml  null: ask CUDA for free memory, which occupies some.
/// Then of NVLink only this is known: whether atomics work across a
/// link
DeviceReport report_devices(const Platform& platform, const Nvml* nvml);

/// Tables with aligned columns.
std::string to_text(const DeviceReport& report);
/// {"versions": ..., "devices": [{...}], "links": [[{...}]]}, null on the diagonal of links.
nlohmann::json to_json(const DeviceReport& report);

}  // namespace lockstep
