// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep devices [--json] [--emulated]
#include "common/console/output.hpp"
#include "common/error.hpp"
#include "common/text/json_text.hpp"
#include "kernels/device/device.hpp"
#include "kernels/device/nvml.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/commands/device_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace lockstep {
namespace {

constexpr const char* kFooter =
    R"(Without a GPU it lists the processors that ranks compute on instead, says why there
is no GPU, and the exit code is 69.

--json prints one object:
  {"versions": "driver 13.0, runtime 13.0",
   "devices": [{"index": 0, "name", "uuid", "pci_bus", "memory_total_bytes", "memory_free_bytes",
                "compute_capability": "9.0", "multiprocessors", "clock_mhz", "memory_clock_mhz",
                "memory_bus_bits", "l2_bytes", "shared_bytes_per_block", "max_shared_bytes_per_block"}],
   "links": [[null, {"p2p": true, "nvlink": true, "performance_rank": 0}], ...]}
memory_free_bytes is null where it is not known; links[a][b] is how a reaches b, the lowest rank is the fastest.
Without a GPU: {"devices": [], "reason": "..."}. "processors": {"model", "cores",
"simd": "AVX-512", "memory_free_bytes"} stands in both; cores are those that this process may use.)";

DeviceReport report_of(bool emulated) {
  if (emulated) return report_devices(emulated::platform(), nullptr);
  const auto nvml = Nvml::open();
  return report_devices(cuda::platform(), nvml.get());
}

int print_as_text(bool emulated) {
  try {
    print("{}", to_text(report_of(emulated)));
  } catch (const DeviceError&) {
    print("{}", to_text(report_processors()));
    throw;  // its line says why there is no GPU
  }
  return 0;
}

void print_json(nlohmann::json report) {
  report["processors"] = to_json(report_processors());
  print("{}\n", json_text(report, 2));
}

int print_as_json(bool emulated) {
  try {
    print_json(to_json(report_of(emulated)));
    return 0;
  } catch (const DeviceError& error) {
    print_json({{"devices", nlohmann::json::array()}, {"reason", error.what()}});
    return static_cast<int>(error.code());
  }
}

}  // namespace

void add_devices_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("devices", "The GPUs of this machine and how they are connected, or its processors");
  auto json = std::make_shared<bool>(false);
  auto emulated = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "For programs");
  command->add_flag("--emulated", *emulated, "The device that parallel.device=emulated trains on");
  command->footer(kFooter);
  command->callback(
      [=, &action] { action = [=] { return *json ? print_as_json(*emulated) : print_as_text(*emulated); }; });
}

}  // namespace lockstep
