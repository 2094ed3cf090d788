// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// lockstep devices [--json] [--emulated | --cuda]
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/device.hpp"
#include "kernels/nvml.hpp"
#include "kernels/platform.hpp"
#include "trainer/commands/command_line.hpp"
#include "trainer/commands/machine_report.hpp"
#include "trainer/ranks/checks.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>

namespace lockstep {

namespace {

constexpr const char* kFooter =
    R"(Without a GPU it lists the processors that ranks compute on instead, and says why
there is no GPU. With --cuda the exit code is 69 then, for scripts that need one.

--json prints one object:
  {"versions": "driver 13.0, runtime 13.0",
   "devices": [{"index": 0, "name", "uuid", "pci_bus", "memory_total_bytes", "memory_free_bytes",
                "compute_capability": "9.0", "multiprocessors", "clock_mhz", "memory_clock_mhz",
                "memory_bus_bits", "l2_bytes", "shared_bytes_per_block", "max_shared_bytes_per_block"}],
   "links": [[null, {"p2p": true, "nvlink": true, "performance_rank": 0}], ...]}
memory_free_bytes is null where it is not known; links[a][b] is how a reaches b, the lowest rank is the fastest.
Without a GPU: {"devices": [], "reason": "..."}. "processors": {"model", "cores",
"simd": "AVX-512", "int16": "vnni", "memory_free_bytes"} stands in both; cores are those that this process
may use, int16 is the engine of train.precision: int16.)";

DeviceReport report_of(bool emulated) {
  if (emulated) return report_devices(emulated::platform(), nullptr);
  const auto nvml = Nvml::open();
  return report_devices(cuda::platform(), nvml.get());
}

struct DevicesOptions {
  bool json = false, emulated = false, cuda = false;
};

int print_as_text(const DevicesOptions& options) {
  try {
    print("{}", to_text(report_of(options.emulated)));
  } catch (const DeviceError& error) {
    print("{}", processors_text(processors_json()));
    if (options.cuda) throw;  // its line says why there is no GPU
    print("\n{}\n", fold(error.what(), output_columns()));
  }
  return 0;
}

int print_as_json(const DevicesOptions& options) {
  nlohmann::json report;
  int code = 0;
  try {
    report = to_json(report_of(options.emulated));
  } catch (const DeviceError& error) {
    report = {{"devices", nlohmann::json::array()}, {"reason", error.what()}};
    if (options.cuda) code = static_cast<int>(error.code());
  }
  report["processors"] = processors_json();
  print("{}\n", json_text(report, 2));
  return code;
}

}  // namespace

void add_devices_command(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("devices", "The GPUs of this machine and how they are connected, or its processors");
  auto options = std::make_shared<DevicesOptions>();
  command->add_flag("--json", options->json, "For programs");
  auto* emulated = command->add_flag("--emulated", options->emulated,
                                     "The device that parallel.device=emulated trains on");
  command->add_flag("--cuda", options->cuda, "End with exit code 69 where there is no GPU")
      ->excludes(emulated);
  command->footer(kFooter);
  on_choice(*command, action,
            [=] { return options->json ? print_as_json(*options) : print_as_text(*options); });
}

// Lays out the answers of runtime, driver and /proc as tables.

namespace {

/// 0 if the device cannot be used, which is no reason not to list it.
std::size_t free_bytes(const Platform& platform, const Nvml* nvml, const DeviceProperties& device) {
  if (const auto known = nvml != nullptr ? nvml->free_bytes(device.uuid) : std::nullopt) return *known;
  try {
    return platform.make_device(device.index)->properties().free_bytes;
  } catch (const DeviceError&) {
    return 0;
  }
}

void ask_about_nvlink(const Nvml& nvml, DeviceReport& report) {
  const auto& devices = report.devices;
  for (std::size_t a = 0; a < devices.size(); ++a)
    for (std::size_t b = 0; b < devices.size(); ++b)
      if (bool& nvlink = report.links[a][b].nvlink; a != b)
        nvlink = nvml.nvlink(devices[a].uuid, devices[b].uuid).value_or(nvlink);
}

std::string in_units_of(double unit, std::size_t bytes, int decimals) {
  return bytes == 0 ? "?" : fmt::format("{:.{}f}", static_cast<double>(bytes) / unit, decimals);
}

std::string compute_capability(const DeviceProperties& device) {
  return fmt::format("{}.{}", device.compute_major, device.compute_minor);
}

std::string facts_table(const DeviceReport& report) {
  constexpr double kKib = 1 << 10, kMib = 1 << 20, kGib = 1 << 30;
  TableRows rows = {{"GPU", "name", "compute", "SMs", "MHz", "GiB", "free", "GB/s", "L2 MiB", "shared KiB"}};
  for (const DeviceProperties& device : report.devices)  // memory sends twice a clock
    rows.push_back({fmt::to_string(device.index), device.name, compute_capability(device),
                    fmt::to_string(device.multiprocessors), fmt::to_string(device.clock_mhz),
                    in_units_of(kGib, device.total_bytes, 1), in_units_of(kGib, device.free_bytes, 1),
                    fmt::format("{:.0f}", 2.0 * device.memory_clock_mhz * device.memory_bus_bits / 8 / 1000),
                    in_units_of(kMib, device.l2_bytes, 0),
                    in_units_of(kKib, device.max_shared_bytes_per_block, 0)});
  return align_columns(rows);
}

std::string names_table(const DeviceReport& report) {
  TableRows rows = {{"GPU", "PCI bus", "UUID"}};
  for (const DeviceProperties& device : report.devices)
    rows.push_back({fmt::to_string(device.index), device.pci_bus, device.uuid});
  return align_columns(rows);
}

std::string links_table(const DeviceReport& report) {
  std::vector<std::string> head = {"GPU"};
  for (const DeviceProperties& device : report.devices) head.push_back(fmt::to_string(device.index));
  TableRows rows = {head};
  for (std::size_t from = 0; from < report.links.size(); ++from) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(head[from + 1]);
    for (std::size_t to = 0; to < report.links[from].size(); ++to) {
      const PeerLink& link = report.links[from][to];
      row.emplace_back(from == to ? "." : link.nvlink ? "NVL" : link.access ? "P2P" : "-");
    }
  }
  return align_columns(rows) + "NVL: NVLink; P2P: reads the other's memory directly; -: through the host\n";
}

nlohmann::json device_json(const DeviceProperties& device) {
  return {{"index", device.index},
          {"name", device.name},
          {"uuid", device.uuid},
          {"pci_bus", device.pci_bus},
          {"memory_total_bytes", device.total_bytes},
          {"memory_free_bytes", device.free_bytes > 0 ? std::optional(device.free_bytes) : std::nullopt},
          {"compute_capability", compute_capability(device)},
          {"multiprocessors", device.multiprocessors},
          {"clock_mhz", device.clock_mhz},
          {"memory_clock_mhz", device.memory_clock_mhz},
          {"memory_bus_bits", device.memory_bus_bits},
          {"l2_bytes", device.l2_bytes},
          {"shared_bytes_per_block", device.shared_bytes_per_block},
          {"max_shared_bytes_per_block", device.max_shared_bytes_per_block}};
}

}  // namespace

static void to_json(nlohmann::json& json, const PeerLink& link) {
  json = {{"p2p", link.access}, {"nvlink", link.nvlink}, {"performance_rank", link.performance_rank}};
}

nlohmann::json processors_json(const std::filesystem::path& root) {
  return {{"model", model_of_processor(root)},
          {"cores", available_cores(root)},
          {"simd", cpu::simd_name()},
          {"int16", cpu::int16::engine_name()},
          {"memory_free_bytes", free_memory(1, root).bytes}};
}

std::string processors_text(const nlohmann::json& processors) {
  const auto text = [&](const char* key) { return processors[key].get<std::string>(); };
  return "no GPU: ranks compute on processors\n\n" +
         align_columns({{"cores", "name", "instructions", "int16 by", "memory free"},
                        {processors["cores"].dump(), text("model"), text("simd"), text("int16"),
                         format_memory(processors["memory_free_bytes"].get<std::uint64_t>())}});
}

DeviceReport report_devices(const Platform& platform, const Nvml* nvml) {
  DeviceReport report;
  report.devices = platform.devices();  // says best why there is none
  report.links = platform.links();
  report.versions = platform.versions();
  for (DeviceProperties& device : report.devices) device.free_bytes = free_bytes(platform, nvml, device);
  if (nvml == nullptr) return report;
  ask_about_nvlink(*nvml, report);
  if (const auto version = nvml->driver_version()) report.versions += ", kernel module " + *version;
  return report;
}

std::string to_text(const DeviceReport& report) {
  const std::size_t count = report.devices.size();
  std::string text = fmt::format("{}; {}\n\n", counted(count, "GPU"), report.versions) + facts_table(report) +
                     "\n" + names_table(report);
  return count == 1 ? text : text + "\n" + links_table(report);
}

nlohmann::json to_json(const DeviceReport& report) {
  const auto devices = json_list<nlohmann::json>(report.devices, device_json);
  nlohmann::json links = report.links;
  for (std::size_t i = 0; i < links.size(); ++i) links[i][i] = nullptr;
  return {{"versions", report.versions}, {"devices", devices}, {"links", links}};
}

}  // namespace lockstep
