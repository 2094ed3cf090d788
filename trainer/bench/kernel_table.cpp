// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Peaks from what a device says of itself; times, shares of them, and the best rival beside.
#include "trainer/bench/kernel_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::bench {
namespace {

/// What the table shows as 1.00.
constexpr double kAsFast = 0.995;

/// fp32 units of a multiprocessor. Source: CUDA C++ Programming Guide, "Throughput of Native Arithmetic
/// Instructions".
int fp32_units(const DeviceProperties& properties) {
  const bool has_half =
      properties.compute_major == 7 || (properties.compute_major == 8 && properties.compute_minor == 0);
  return has_half ? 64 : 128;
}

/// "12.34   1.50" or dashes.
std::string rival(std::optional<double> seconds, double native) {
  if (!seconds) return fmt::format("{:>9} {:>6}", "-", "-");
  return fmt::format("{:>9.2f} {:>6.2f}", *seconds * 1e6, *seconds / native);
}

std::string arithmetic(const KernelRow& row) {
  return row.kernel.flops > 0 ? fmt::format("{:>8.0f}", row.kernel.flops / row.times.native * 1e-9)
                              : fmt::format("{:>8}", "");
}

/// The best that a rival reached.
std::optional<double> fastest_rival(const KernelTimes& times) {
  if (!times.vendor || !times.library) return times.vendor ? times.vendor : times.library;
  return std::min(*times.vendor, *times.library);
}

}  // namespace

double nominal_flops_per_second(const DeviceProperties& properties) {
  return 2.0 * fp32_units(properties) * properties.multiprocessors * properties.clock_mhz * 1e6;
}

double nominal_memory_bytes_per_second(const DeviceProperties& properties) {
  return 2.0 * properties.memory_clock_mhz * 1e6 * properties.memory_bus_bits / 8;
}

double limit_seconds(const KernelCase& kernel, const GpuLimits& limits) {
  return limits.launch_seconds +
         std::max(kernel.flops / limits.flops_per_second, kernel.bytes / limits.bytes_per_second);
}

std::string table_header() {
  return fmt::format("{:<53} {:>9} {:>9} {:>8} {:>8} | {:>9} {:>6} | {:>9} {:>6}", "op", "us", "limit us",
                     "GFLOP/s", "GB/s", "vendor us", "ratio", "alone us", "ratio");
}

std::string table_line(const KernelRow& row, const GpuLimits& limits) {
  const double seconds = row.times.native;
  return fmt::format("{:<53} {:>9.2f} {:>9.2f} {} {:>8.0f} | {} | {}", row.kernel.name, seconds * 1e6,
                     limit_seconds(row.kernel, limits) * 1e6, arithmetic(row),
                     row.kernel.bytes / seconds * 1e-9, rival(row.times.vendor, seconds),
                     rival(row.times.library, seconds));
}

std::string verdict(const std::vector<KernelRow>& rows) {
  std::string slower;
  int compared = 0;
  for (const KernelRow& row : rows) {
    const auto rival = fastest_rival(row.times);
    if (!rival) continue;
    ++compared;
    if (*rival < kAsFast * row.times.native) {
      slower += fmt::format("\n  {} ({:.2f})", row.kernel.name, *rival / row.times.native);
    }
  }
  if (compared == 0) return {};
  if (slower.empty()) return fmt::format("native is at least as fast on all {} ops compared", compared);
  return "native is slower than the vendor's op or the library's call alone on:" + slower;
}

}  // namespace lockstep::bench
